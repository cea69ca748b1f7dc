// What the card's memory gives to a kernel that only reads it: the measure that decoding is held against.
#include "tests/gpu/probe.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <vector>

namespace aerie::gpu_bench {
namespace {

__global__ void read_all(const uint4* data, int64_t n, uint4* sink) {
  uint4 x{0, 0, 0, 0};
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; i + 3 * step < n; i += 4 * step) {
    const uint4 a = __ldcs(data + i), b = __ldcs(data + i + step), c = __ldcs(data + i + 2 * step), d = __ldcs(data + i + 3 * step);
    x.x ^= a.x ^ b.x ^ c.x ^ d.x;
    x.y ^= a.y ^ b.y ^ c.y ^ d.y;
    x.z ^= a.z ^ b.z ^ c.z ^ d.z;
    x.w ^= a.w ^ b.w ^ c.w ^ d.w;
  }
  if (x.x == 1 && x.y == 2 && x.z == 3 && x.w == 5) *sink = x;  // so that the loads are needed
}

}  // namespace

double read_bandwidth() {
  constexpr size_t kBytes = size_t{4} << 30;
  char* data = nullptr;
  uint4* sink = nullptr;
  if (cudaMalloc(&data, kBytes) != cudaSuccess || cudaMalloc(&sink, 16) != cudaSuccess) return 0;
  (void)cudaMemset(data, 0, kBytes);
  cudaEvent_t begin, end;
  (void)cudaEventCreate(&begin);
  (void)cudaEventCreate(&end);
  cudaDeviceProp p;
  (void)cudaGetDeviceProperties(&p, 0);
  std::vector<float> ms;
  for (int i = 0; i < 30; ++i) {
    (void)cudaEventRecord(begin);
    read_all<<<p.multiProcessorCount * 8, 256>>>(reinterpret_cast<const uint4*>(data), kBytes / 16, sink);
    (void)cudaEventRecord(end);
    (void)cudaEventSynchronize(end);
    float t = 0;
    (void)cudaEventElapsedTime(&t, begin, end);
    ms.push_back(t);
  }
  (void)cudaFree(data);
  (void)cudaFree(sink);
  std::nth_element(ms.begin(), ms.begin() + 15, ms.end());
  return static_cast<double>(kBytes) / (ms[15] * 1e-3);
}

std::string describe() {
  cudaDeviceProp p;
  int driver = 0, runtime = 0;
  if (cudaGetDeviceProperties(&p, 0) != cudaSuccess) return "no device";
  (void)cudaDriverGetVersion(&driver);
  (void)cudaRuntimeGetVersion(&runtime);
  return std::string(p.name) + ", driver for CUDA " + std::to_string(driver / 1000) + "." + std::to_string(driver % 1000 / 10) +
         ", runtime " + std::to_string(runtime / 1000) + "." + std::to_string(runtime % 1000 / 10);
}

}  // namespace aerie::gpu_bench

// cuBLASLt beside our kernels: loaded if it is installed, so that nothing here depends on it.
#include <cublasLt.h>
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/gpu/probe.h"

namespace aerie::gpu_bench {
namespace {

constexpr size_t kWorkspace = size_t{32} << 20;

// The library's functions, of the types its header gives them.
struct Library {
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtMatmulDescCreate) desc_create = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) desc_set = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) layout_create = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic = nullptr;
  decltype(&cublasLtMatmul) matmul = nullptr;
  cublasLtHandle_t handle = nullptr;

  bool load() {
    void* lib = nullptr;
    for (const char* name : {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"})
      if (!lib) lib = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!lib) return false;
    const auto get = [&](auto& f, const char* name) { return (f = reinterpret_cast<std::decay_t<decltype(f)>>(dlsym(lib, name))) != nullptr; };
    return get(create, "cublasLtCreate") && get(desc_create, "cublasLtMatmulDescCreate") &&
           get(desc_set, "cublasLtMatmulDescSetAttribute") && get(layout_create, "cublasLtMatrixLayoutCreate") &&
           get(preference_create, "cublasLtMatmulPreferenceCreate") &&
           get(preference_set, "cublasLtMatmulPreferenceSetAttribute") &&
           get(heuristic, "cublasLtMatmulAlgoGetHeuristic") && get(matmul, "cublasLtMatmul") &&
           create(&handle) == CUBLAS_STATUS_SUCCESS;
  }
};

struct Memory {
  void* data = nullptr;
  explicit Memory(size_t bytes) {
    if (cudaMalloc(&data, bytes) != cudaSuccess) data = nullptr;
    else (void)cudaMemset(data, 0x3c, bytes);
  }
  ~Memory() { (void)cudaFree(data); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
};

}  // namespace

double cublaslt_us(int64_t n, int64_t k, int64_t rows) {
  static Library lib;
  static const bool there = lib.load();
  if (!there) return 0;
  const Memory w(static_cast<size_t>(n * k) * 2), x(static_cast<size_t>(rows * k) * 2), out(static_cast<size_t>(rows * n) * 4), room(kWorkspace);
  if (!w.data || !x.data || !out.data || !room.data) return 0;
  // Column-major: out (n, rows) = w (k, n)^T x (k, rows).
  cublasLtMatmulDesc_t desc;
  cublasLtMatrixLayout_t a, b, c;
  cublasLtMatmulPreference_t preference;
  const cublasOperation_t transposed = CUBLAS_OP_T;
  const auto un = static_cast<uint64_t>(n), uk = static_cast<uint64_t>(k), ur = static_cast<uint64_t>(rows);
  if (lib.desc_create(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F) || lib.desc_set(desc, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed) ||
      lib.layout_create(&a, CUDA_R_16BF, uk, un, k) || lib.layout_create(&b, CUDA_R_16BF, uk, ur, k) ||
      lib.layout_create(&c, CUDA_R_32F, un, ur, n) || lib.preference_create(&preference) ||
      lib.preference_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &kWorkspace, sizeof kWorkspace))
    return 0;
  cublasLtMatmulHeuristicResult_t found[8];
  int count = 0;
  if (lib.heuristic(lib.handle, desc, a, b, c, c, preference, 8, found, &count) || count == 0) return 0;
  cudaEvent_t begin, end;
  (void)cudaEventCreate(&begin);
  (void)cudaEventCreate(&end);
  const float one = 1, zero = 0;
  double best = 0;
  for (int i = 0; i < count; ++i) {
    std::vector<float> ms;
    for (int s = 0; s < 15; ++s) {
      (void)cudaEventRecord(begin);
      if (lib.matmul(lib.handle, desc, &one, w.data, a, x.data, b, &zero, out.data, c, out.data, c, &found[i].algo, room.data, kWorkspace, nullptr))
        break;
      (void)cudaEventRecord(end);
      (void)cudaEventSynchronize(end);
      float t = 0;
      (void)cudaEventElapsedTime(&t, begin, end);
      ms.push_back(t);
    }
    if (ms.size() < 15) continue;
    std::nth_element(ms.begin(), ms.begin() + 7, ms.end());
    if (best == 0 || ms[7] * 1e3 < best) best = ms[7] * 1e3;
  }
  (void)cudaEventDestroy(begin);
  (void)cudaEventDestroy(end);
  return best;
}

}  // namespace aerie::gpu_bench

// What the tests of the CUDA backend share: running ops on the emulated device, whose memory is the host's. On a GPU
// (test_gpu, AERIE_REAL_GPU) operator new gives memory that both can use, so what ops name must not lie on the stack.
#pragma once

#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/gpu.h"
#ifndef AERIE_REAL_GPU
#include "tests/support/cuda_emulation/emulation.h"
#endif
#include "unit/kernels/ops_support.h"

namespace aerie::kernels::cuda_test {
using namespace aerie::kernels::test;

inline std::unique_ptr<Device> cuda_device(bool graphs = true, bool early = true) {
  CudaOptions o;
  o.graphs = graphs;
  o.early = early;
  auto device = make_cuda_device(o);
  EXPECT_TRUE(device.ok()) << device.status().message();
  return std::move(device).value();
}

// One op.
template <class O>
void run_cuda(const O& op, bool graphs = false) {
  const Op plan[] = {op};
  run_plan(*cuda_device(graphs), plan);
}

// f() with threads and blocks in ascending, descending and shuffled order; once without products of warpgroups, once with as
// little shared memory as any device has.
template <class F>
void each_order(F&& f) {
#ifdef AERIE_REAL_GPU
  f();  // as the device will have it
#else
  for (const uint32_t order : {0u, 1u, 77u}) {
    SCOPED_TRACE("thread order " + std::to_string(order));
    cuda::emulation::set_order(order);
    cuda::emulation::set_warpgroups(order != 1);
    cuda::emulation::set_most_shared(order != 0 ? cuda::emulation::kHopperShared : uint32_t{cuda::kMostShared});
    f();
  }
  cuda::emulation::set_most_shared(cuda::emulation::kHopperShared);
  cuda::emulation::set_order(0);
  cuda::emulation::set_warpgroups(true);
#endif
}

// Packed random weights.
struct Weights {
  DType type;
  int64_t n, k;
  std::vector<std::max_align_t> data, scales;
  Weights(int64_t n_, int64_t k_, DType t, uint32_t seed)
      : type(t),
        n(n_),
        k(k_),
        data(static_cast<size_t>(data_bytes(t, Layout::panel16, n, k)) / sizeof(std::max_align_t) + 1),
        scales(static_cast<size_t>(scale_bytes(t, n, k)) / sizeof(std::max_align_t) + 1) {
    const Floats w = random_floats(static_cast<size_t>(n * k), seed, 0.2f);
    pack_panel16(w.data(), n, k, t, data.data(), has_scales(t) ? scales.data() : nullptr);
  }
  Tensor tensor() const {
    return {const_cast<std::max_align_t*>(data.data()),
            has_scales(type) ? const_cast<std::max_align_t*>(scales.data()) : nullptr, n, k, 0, type, Layout::panel16};
  }
};

// b = a + a and so on, on device memory.
struct Sums {
  Device& device;
  float* memory;
  Floats in, out;
  explicit Sums(Device& d) : device(d), memory(static_cast<float*>(d.allocate(4 * 256 * 4))), in(256), out(256) {}
  ~Sums() { device.release(memory); }
  std::vector<Op> plan() {
    const auto at = [&](int i) { return matrix(memory + i * 256, 1, 256); };
    return {Upload{memory, in.data(), 1024}, Add{at(0), at(0), at(1)}, Add{at(1), at(0), at(2)}, Add{at(2), at(2), at(3)},
            Download{out.data(), memory + 3 * 256, 1024}};
  }
};

}  // namespace aerie::kernels::cuda_test

// What the tests of the CUDA backend share: running ops on the emulated device, whose memory is the host's. On a GPU
// (test_gpu, AERIE_REAL_GPU) operator new gives memory that both can use, so what ops name must not lie on the stack.
#pragma once

#include "kernels/cuda/cuda_device.h"
#ifndef AERIE_REAL_GPU
#include "tests/support/cuda_emulation/emulation.h"
#endif
#include "unit/kernels/ops_support.h"

namespace aerie::kernels::cuda_test {
using namespace aerie::kernels::test;

inline std::unique_ptr<Device> cuda_device(bool graphs = true) {
  CudaOptions o;
  o.graphs = graphs;
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

// f() with threads and blocks in ascending, descending and shuffled order.
template <class F>
void each_order(F&& f) {
#ifdef AERIE_REAL_GPU
  f();  // as the device will have it
#else
  for (const uint32_t order : {0u, 1u, 77u}) {
    SCOPED_TRACE("thread order " + std::to_string(order));
    cuda::emulation::set_order(order);
    f();
  }
  cuda::emulation::set_order(0);
#endif
}

}  // namespace aerie::kernels::cuda_test

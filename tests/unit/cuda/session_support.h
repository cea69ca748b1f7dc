// What the tests of sessions on the emulated device share.
#pragma once

#include "kernels/cpu/cpu_device.h"
#include "kernels/cuda/cuda_device.h"
#include "tests/support/forward.h"
#ifndef AERIE_REAL_GPU
#include "tests/support/cuda_emulation/emulation.h"
#endif

namespace aerie::test {

using kernels::DType;

// Behind the mock device, whose addresses are nobody's: an op that is given memory of the host, or none, says so. Here, and on a
// GPU in tests (managed_new.h), the device could use that memory.
inline std::shared_ptr<kernels::Device> checked_cuda(const kernels::CudaOptions& options = {}) {
  return kernels::make_mock_device(must(kernels::make_cuda_device(options)));
}

inline std::shared_ptr<kernels::Device> cuda(const kernels::CudaOptions& options = {}) { return must(kernels::make_cuda_device(options)); }

inline ModelOptions with_kv(DType t) {
  ModelOptions m;
  m.kv_dtype = t;
  return m;
}

inline std::string target() { return converted(golden("mha"), "cuda-target", DType::int8); }
inline std::string eagle() { return converted(golden("eagle_mha"), "cuda-eagle", DType::bf16, target()); }

inline std::string fasteagle() {
  return converted(source_dir() + "/tests/golden/heads/fasteagle", "cuda-fast", DType::bf16, target());
}

inline std::string dflash() {
  return converted(source_dir() + "/tests/golden/heads/dflash", "cuda-dflash", DType::bf16, target());
}

inline const std::vector<int32_t> kPrompt = {26, 16, 50, 18, 15, 45, 37, 77, 51, 70, 19, 5};

inline SessionOptions sampled(float temperature, uint64_t seed = 3) {
  SessionOptions o;
  o.sampling.temperature = temperature;
  o.sampling.seed = seed;
  o.ignore_eos = true;
  return o;
}

}  // namespace aerie::test

// The compute device that a runtime was asked for by name.
#pragma once

#include <memory>
#include <string>

#include "kernels/cpu/cpu_device.h"

namespace aerie {

// "cpu", "cpu:AVX2" (an instruction set, kernels/cpu/isa.h), or "cuda" / "cuda:N" from libaerie-cuda beside this library, which is
// loaded then and stays. `cpu` says how the CPU device is made; a host's allocator cannot serve another device.
Result<std::unique_ptr<kernels::Device>> make_device(const std::string& name, const kernels::CpuOptions& cpu);

// Tests: from this file instead.
Result<std::unique_ptr<kernels::Device>> make_device_from(const std::string& library, int index);

}  // namespace aerie

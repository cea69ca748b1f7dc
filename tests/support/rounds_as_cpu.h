// Integer weights and how a CPU rounds the activations that they meet (kernels::ActivationCodes).
#pragma once

#include "kernels/cpu/linear.h"
#include "kernels/reference/reference.h"

namespace aerie::test {

// The reference device rounds as this machine's CPU kernels do now, and no longer.
struct RoundsAsCpu {
  RoundsAsCpu() {
    using kernels::DType;
    kernels::reference::round_as(kernels::cpu::activation_codes(DType::int8), kernels::cpu::activation_codes(DType::int4));
  }
  ~RoundsAsCpu() { kernels::reference::round_as(std::nullopt, std::nullopt); }
};

}  // namespace aerie::test

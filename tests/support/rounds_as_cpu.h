// int8 weights and how a CPU rounds the activations that they meet (kernels::ActivationCodes).
#pragma once

#include "kernels/cpu/linear.h"
#include "kernels/reference/reference.h"

namespace aerie::test {

// The reference device rounds as this machine's CPU kernels do now, and no longer.
struct RoundsAsCpu {
  RoundsAsCpu() { kernels::reference::round_int8_as(kernels::cpu::activation_codes(kernels::DType::int8)); }
  ~RoundsAsCpu() { kernels::reference::round_int8_as({}); }
};

// Where parts of a row have scales of their own, a row that holds the same numbers elsewhere is rounded in another way.
inline bool rounds_by_place(kernels::DType weights) {
  return weights == kernels::DType::int8 && kernels::cpu::activation_codes(weights).by_block;
}

}  // namespace aerie::test

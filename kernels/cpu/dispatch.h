// AERIE_DISPATCH: in place of HWY_DYNAMIC_DISPATCH, whose choice is the process's, for kernels that run with what their device wants
// (isa.h). Include behind highway.h.
#pragma once

#include <hwy/highway.h>
#include <hwy/targets.h>

#include "kernels/cpu/isa.h"

#if HWY_IDE || ((HWY_TARGETS & (HWY_TARGETS - 1)) == 0)  // as highway.h decides: there is one
#define AERIE_DISPATCH(function) HWY_DYNAMIC_DISPATCH(function)
#else
#define AERIE_DISPATCH(function) (*(HWY_DISPATCH_TABLE(function)[aerie::kernels::cpu::place_in_dispatch_table()]))

namespace aerie::kernels::cpu {

inline size_t place_in_dispatch_table() {
  const int64_t target = HWY_CHOSEN_TARGET_SHIFT(isa_now().target) & HWY_CHOSEN_TARGET_MASK_TARGETS;
  return hwy::Num0BitsBelowLS1Bit_Nonzero64(static_cast<uint64_t>(target & ~int64_t{1}));
}

}  // namespace aerie::kernels::cpu
#endif

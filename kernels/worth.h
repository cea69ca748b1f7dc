// Whether something is worth its cost, for policies and for devices that ask in their place: the same bits on every backend.
#pragma once

#include "kernels/scalar_math.h"

namespace aerie::kernels {

AERIE_HOST_DEVICE inline bool pays(double utility, double cost, double threshold) { return !(utility < threshold * cost); }

}  // namespace aerie::kernels

// Linear for speed (Linear::fast), see linear_fast.cu.
#pragma once

#include "kernels/cuda/enqueue.h"

namespace aerie::kernels::cuda {

bool is_fast(const Linear& op);  // f32 weights are for comparisons: never
size_t fast_workspace(const Linear& op);
void enqueue_fast(const Linear& op, const Place& p);

}  // namespace aerie::kernels::cuda

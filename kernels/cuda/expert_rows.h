// Of a mixture of experts: which experts are taken and which outputs each makes; and rows that come to a tile in that order.
#pragma once

#include "kernels/cuda/linear_stage.h"

namespace aerie::kernels::cuda {

// Of each expert that is taken a list of the outputs that are its own: rows of ExpertLinear's `out`. In which order they stand there
// is left to the threads: no bit depends on it.
struct ExpertLists {
  int32_t* taken = nullptr;   // how many experts are
  int32_t* expert = nullptr;  // those, ascending
  int32_t* begin = nullptr;   // where the list of each begins; and where the last's ends
  int32_t* output = nullptr;  // all lists
};

// The sum of v over the lanes up to this one.
__device__ inline int32_t warp_sum_so_far(int32_t v) {
  const auto lane = static_cast<int>(threadIdx.x % 32);
  for (int by = 1; by < 32; by *= 2) {
    const int32_t before = shuffle(v, lane < by ? lane : lane - by);
    if (lane >= by) v += before;
  }
  return v;
}

// By a block, with shared memory for a number of each of `all` experts. Those of experts that do not exist are on no list.
__device__ inline void make_lists(const int32_t* experts, int64_t outputs, int32_t all, const ExpertLists& lists) {
  auto* next = shared_memory<int32_t>();  // of each expert: how many outputs it has; then where the next of them goes
  const auto thread = static_cast<int32_t>(threadIdx.x), threads = static_cast<int32_t>(blockDim.x);
  for (int32_t e = thread; e < all; e += threads) next[e] = 0;
  sync_block();
  for (int64_t i = thread; i < outputs; i += threads)
    if (const int32_t e = experts[i]; e >= 0 && e < all) atomic_add(&next[e], int32_t{1});
  sync_block();
  if (thread < 32) {
    int32_t taken = 0, begin = 0;
    for (int32_t first = 0; first < all; first += 32) {
      const int32_t e = first + thread, count = e < all ? next[e] : 0;
      const int32_t taken_here = warp_sum_so_far(count > 0), outputs_here = warp_sum_so_far(count);
      if (count > 0) {
        lists.expert[taken + taken_here - 1] = e;
        lists.begin[taken + taken_here - 1] = next[e] = begin + outputs_here - count;
      }
      taken += shuffle(taken_here, 31), begin += shuffle(outputs_here, 31);
    }
    if (thread == 0) *lists.taken = taken, lists.begin[taken] = begin;
  }
  sync_block();
  for (int64_t i = thread; i < outputs; i += threads)
    if (const int32_t e = experts[i]; e >= 0 && e < all) lists.output[atomic_add(&next[e], int32_t{1})] = static_cast<int32_t>(i);
}

// Brings the rows of some outputs to stages, as RowsCopy those that follow one another.
template <class S>
class GatheredRows : RowChunks<S> {
  using RowChunks<S>::kChunks, RowChunks<S>::kAtOnce, RowChunks<S>::kTimes, RowChunks<S>::takes_part, RowChunks<S>::to;

 public:
  // Of the t.rows outputs from `outputs` on; so many have the same row.
  __device__ GatheredRows(const LinearTask& t, const int32_t* outputs, int32_t same) {
    const auto thread = static_cast<int>(threadIdx.x);
#pragma unroll
    for (int i = 0; i < kTimes; ++i) {
      const int column = (i * kAtOnce + thread / kChunks) * kGroupRows + thread % kGroupRows;
      from_[i] = nullptr;
      if (!takes_part(i) || column >= t.rows) continue;
      const int32_t r = outputs[column] / same;
      from_[i] = t.x + r / kGroupRows * (int64_t{t.shape.units} * S::kGroupBytes) + (thread % kChunks - thread % kGroupRows + r % kGroupRows) * 16;
    }
  }
  __device__ void clear(char* rows) const {
#pragma unroll
    for (int i = 0; i < kTimes; ++i)
      if (takes_part(i) && !from_[i]) *to(rows, i) = make_uint4(0, 0, 0, 0);
  }
  __device__ void fetch(char* rows, uint32_t unit) const {
#pragma unroll
    for (int i = 0; i < kTimes; ++i)
      if (from_[i]) copy_async16(to(rows, i), from_[i] + int64_t{unit} * S::kGroupBytes);
  }

 private:
  const char* from_[kTimes];  // null: nothing is brought there
};

}  // namespace aerie::kernels::cuda

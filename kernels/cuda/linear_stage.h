// What a block of Linear is told, and what one stage of its pipeline holds: a unit's weights, the scales of their blocks, the rows' fragments.
#pragma once

#include "kernels/cuda/linear_rows.h"

namespace aerie::kernels::cuda {

struct LinearTask {
  enum { kBlocks = 1 };
  const char* w = nullptr;
  const char* scales = nullptr;      // of blocks
  int64_t panel_scales = 0;          // bytes
  int64_t panel_words = 0;           // words (kk) of a panel that exist
  int64_t n = 0, rows = 0;           // outputs, batch rows
  int64_t groups = 0;                // of 8 batch rows
  LinearShape shape{DType::bf16, 1, 1};
  const char* x = nullptr;           // linear_rows.h
  float* partial = nullptr;          // (pieces, rows, shape.columns()), or
  // LinearRows: outputs are the ids of one batch row, (rows, n); partial is then (pieces, rows, n)
  const int32_t* ids = nullptr;
  uint32_t stages = 0;
  bool one_by_one = false;  // are they brought, before the rows are there
  bool once = true;  // weights make way in the second-level cache for what is used again
};

// Of tiles of 64 rows registers are spared for the kernels in front and behind: with one of these a multiprocessor has then just
// as many as there are.
struct ManyRowsTask : LinearTask {
  enum { kBlocks = 2 };
};

constexpr int kWordBytes = kPanel * 4;
// Bytes of a row's scale of one block of K; and of a panel's 16, with q4_1's minima behind them. Both as tensor.h has them.
template <DType kType>
constexpr int kScaleSize = kType == DType::mxfp4 ? 1 : is_nibbles(kType) ? 2 : 0;
template <DType kType>
constexpr int kBlockScales = is_nibbles(kType) ? static_cast<int>(scale_bytes(kType, kPanel, kBlock)) : 0;

// Sizes in bytes.
template <DType kType, int kGroups_>
struct Stage {
  static constexpr int kGroups = kGroups_, kSteps = unit_steps(kType);
  static constexpr int kLoads = is_nibbles(kType) ? 4 : 8;  // of 16 bytes, a thread's of a unit
  static constexpr int kUnitBytes = kLoads * 4 * kWordBytes;   // of a panel
  static constexpr int kWeights = kBlockPanels * kUnitBytes;
  static constexpr int kPanelScales = kSteps * kStepWidth / kBlock * kBlockScales<kType>;
  static constexpr int kScales = kBlockPanels * kPanelScales;
  static constexpr int kStepBytes = 32 * (kType == DType::bf16 ? 16 : 8), kGroupBytes = kSteps * kStepBytes;  // of eight rows
  static constexpr int kBytes = kWeights + kScales + kGroups * kGroupBytes;
  // How many there are. Bytes under way are what keeps memory busy, above all while there is no row yet to multiply; but what the
  // kernels in front of this one read has to pass them, and of many rows shared memory is wanted beside them. Found on an H100.
  static constexpr uint32_t kMostStages = kGroups == 8 ? 3 : is_nibbles(kType) ? 6 : 8;
  static constexpr uint32_t stages(uint32_t shared) { return shared / kBytes < kMostStages ? shared / kBytes : kMostStages; }
};

// Of rows in so many groups: a tile has 1, 2, 4 or 8 of them.
template <DType kType>
uint32_t stages_of(int64_t groups, uint32_t shared) {
  if (groups <= 1) return Stage<kType, 1>::stages(shared);
  if (groups == 2) return Stage<kType, 2>::stages(shared);
  return groups <= 4 ? Stage<kType, 4>::stages(shared) : Stage<kType, 8>::stages(shared);
}
inline uint32_t stages_of(DType t, int64_t groups, uint32_t shared) {
  switch (t) {
    case DType::fp8: return stages_of<DType::fp8>(groups, shared);
    case DType::int8: return stages_of<DType::int8>(groups, shared);
    case DType::int4: return stages_of<DType::int4>(groups, shared);
    case DType::q4_1: return stages_of<DType::q4_1>(groups, shared);
    case DType::mxfp4: return stages_of<DType::mxfp4>(groups, shared);
    default: return stages_of<DType::bf16>(groups, shared);
  }
}

// A stage's rows as the 16 bytes that a thread brings at a time: each is of one row, the (threadIdx.x % 8)-th of its group.
template <class S>
struct RowChunks {
  static constexpr int kChunks = S::kGroupBytes / 16, kAtOnce = kPanelThreads / kChunks;  // of a group; groups that all threads take at once
  static constexpr int kTimes = (S::kGroups + kAtOnce - 1) / kAtOnce;
  __device__ static bool takes_part(int i) { return i * kAtOnce + static_cast<int>(threadIdx.x) / kChunks < S::kGroups; }
  __device__ static uint4* to(char* rows, int i) { return reinterpret_cast<uint4*>(rows) + i * kPanelThreads + threadIdx.x; }
};

// Brings rows to stages. Rows that there are not are never copied: their columns of a product are nobody's.
template <class S>
class RowsCopy : RowChunks<S> {
  using RowChunks<S>::kChunks, RowChunks<S>::kAtOnce, RowChunks<S>::kTimes, RowChunks<S>::takes_part, RowChunks<S>::to;

 public:
  __device__ RowsCopy(const LinearTask& t, int64_t first_group)
      : from_(t.x + (first_group + static_cast<int>(threadIdx.x) / kChunks) * (int64_t{t.shape.units} * S::kGroupBytes) + threadIdx.x % kChunks * 16),
        next_(int64_t{t.shape.units} * S::kGroupBytes * kAtOnce) {
    const int64_t row = first_group * kGroupRows + static_cast<int>(threadIdx.x) / kChunks * kGroupRows + threadIdx.x % kGroupRows;
    wanted_ = t.rows - row;
  }
  // Once, what no copy goes to.
  __device__ void clear(char* rows) const {
#pragma unroll
    for (int i = 0; i < kTimes; ++i)
      if (takes_part(i) && i * kAtOnce * kGroupRows >= wanted_) *to(rows, i) = make_uint4(0, 0, 0, 0);
  }
  __device__ void fetch(char* rows, uint32_t unit) const {
    const char* from = from_ + int64_t{unit} * S::kGroupBytes;
#pragma unroll
    for (int i = 0; i < kTimes; ++i, from += next_)
      if (takes_part(i) && i * kAtOnce * kGroupRows < wanted_) copy_async16(to(rows, i), from);
  }

 private:
  const char* from_;
  int64_t next_, wanted_;  // rows from this thread's first on
};

}  // namespace aerie::kernels::cuda

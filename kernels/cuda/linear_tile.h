// The weight-streaming kernel: units of weights (linear_shape.h) past 8 to 64 batch rows.
//
// Weights are the 16-row operand of mma. The panel16 layout already is what it wants: the 4-byte word (kk, l) of a panel
// holds the weights that one lane of one fragment register needs, for output row l. A thread takes 16 bytes at a time, 4
// rows of one kk, and a warp two panels: lane (g, t) has rows 4 (g % 4) .. + 3 of panel g / 4. So its four rows are
// rows g and g + 8 of two mma tiles. Which output a row of a tile stands for is free.
//
// A load of a warp is two runs of 256 bytes. Memory wants the lanes in the order of the addresses (eight of them ask for
// 128 bytes at once: in the order of the fragments these would be parts of two such lines, and the second-level cache, which
// answers one line at a time, gives half the bytes: seen on an H100), the fragments want them in theirs; so who brings 16
// bytes is not who uses them. Between they lie in the order of the addresses, too: in another, which would spare the reading
// lanes a bank conflict, they come more slowly (seen there).
//
// A block is a multiprocessor's only one: rows, which it brings again with every unit, pass the second-level cache half as
// often as they would for two blocks of half the outputs, and of 64 rows that is as many bytes as there are weights.
#pragma once

#include "kernels/cuda/linear_products.h"

namespace aerie::kernels::cuda {

// kIds: the weights are of some outputs of one batch row (LinearRows), else all.
template <DType kType, int kGroups, bool kIds = false>
class LinearTile {
  using S = Stage<kType, kGroups>;

 public:
  // For rows of groups from `group` on, or of row `group` and its ids from kBlockPanels * `ids_block` on: LinearRows.
  __device__ LinearTile(const LinearTask& task, int64_t group, uint32_t ids_block = 0)
      : t_(task), shared_(shared_memory<char>()), first_(group), ids_block_(ids_block) {
    const auto lane = static_cast<int>(threadIdx.x % 32);
    warp_ = static_cast<int>(threadIdx.x / 32);
    half_ = lane / 16;
    quad_ = lane / 4 % 4;
    tig_ = lane % 4;
    uses_ = (warp_ * 2 + half_) * 16 + tig_ * 4 + quad_;
    policy_ = cache_policy(t_.once);
    whole_ = t_.panel_words % (S::kLoads * 4) == 0;
  }

  // Begins to bring the first weights of units [begin, end), before the rows are there. Not of ids, which are as new as rows
  // are.
  __device__ void fetch_ahead(uint32_t begin, uint32_t end) {
    Cursor at = cursor(begin);
    char* to = shared_ + threadIdx.x * 16;
    for (uint32_t s = 0; s < t_.stages - 1 && begin + s < end; ++s, next(&at), to += S::kBytes) {
      fetch_weights(to, stage(s), at);
      // One by one (two by two of half the size): that is all that memory needs to be busy, and what the kernels in front of this one
      // read on the same multiprocessor has to pass what is under way. A block that comes late, or finds many rows, loses by it.
      if (t_.one_by_one) copy_async_commit(), copy_async_wait<is_nibbles(kType) ? 1 : 0>();
    }
  }

  // Goes through units [begin, end), of ids through all of K, and calls done(place) where a piece ends, or they do, with the
  // sums of that piece (each_sum) or of the part of it that was in there. `ahead`: this thread has called fetch_ahead with
  // the same units, of a tile like this one, and nothing since.
  template <class Done>
  __device__ void run(uint32_t begin, uint32_t end, bool ahead, const Done& done) {
    run(RowsCopy<S>(t_, first_group()), begin, end, ahead, done);
  }
  // `rows` brings them.
  template <class Rows, class Done>
  __device__ void run(const Rows& rows, uint32_t begin, uint32_t end, bool ahead, const Done& done) {
    Cursor fetched = cursor(begin);
    for (uint32_t s = 0; s < t_.stages; ++s) rows.clear(rows_of(stage(s)));
    // This thread's place in the stage that is free. It goes from stage to stage in a register of the thread's, for CUDA 13.0's
    // ptxas makes illegal instructions of copies with a cache policy to what it knows as a sum with the block's stage.
    char *const first = shared_ + threadIdx.x * 16, *const last = first + t_.stages * S::kBytes, *to = first;
    for (uint32_t s = 0; s < t_.stages - 1; ++s, to += S::kBytes) {
      if (begin + s < end) {
        if (!ahead) fetch_weights(to, stage(s), fetched);
        rows.fetch(rows_of(stage(s)), fetched.unit);
        next(&fetched);
      }
      copy_async_commit();
    }
    // Lanes of different ids have pieces of their own.
    LinearPlace place(t_.shape, kIds ? static_cast<uint32_t>(fetched.panel < 0 ? 0 : fetched.panel / kBlockPanels) * t_.shape.units : begin);
    sums_.clear();
    uint32_t used = 0, free = t_.stages - 1;
    for (uint32_t at = begin; at < end; ++at) {
      copy_async_wait(t_.stages - 2);
      if constexpr (Products<kType, kGroups>::kTogether) show_to_warpgroup_mma();
      sync_block();  // the stage is here for all, and the one before has been used by all
      if (at + t_.stages - 1 < end) {
        fetch_weights(to, stage(free), fetched);
        rows.fetch(rows_of(stage(free)), fetched.unit);
        next(&fetched);
      }
      copy_async_commit();
      to = to + S::kBytes == last ? first : to + S::kBytes;
      char* const now = stage(used);
      sums_.multiply(reinterpret_cast<const uint4*>(now) + uses_,
                     scales_of(now) + (warp_ * 2 + half_) * S::kPanelScales + 4 * quad_ * kScaleSize<kType>, rows_of(now));
      used = used + 1 == t_.stages ? 0 : used + 1;
      free = free + 1 == t_.stages ? 0 : free + 1;
      if (++place.unit == place.piece_end || at + 1 == end) {
        done(place);
        if (at + 1 < end) {
          sums_.clear();
          place.next_piece(t_.shape);
        }
      }
      if constexpr (kIds) sync_warp();  // lanes of different ids end their pieces alone
    }
    copy_async_wait(0);
  }

  // A piece's sums to `partial`.
  __device__ void store(const LinearPlace& place) const {
    if constexpr (kIds) return store_id(place.piece);
    each_sum(place.block, [&](int64_t r, int64_t n, float4 sums) {
      store_run(t_.partial + (int64_t{place.piece} * t_.rows + r) * t_.shape.columns() + n, {sums.x, sums.y, sums.z, sums.w});
    });
  }
  // f(row, output, the sums of four outputs) for each of panel block `block` that this thread has.
  template <class F>
  __device__ void each_sum(uint32_t block, const F& f) const {
    const int64_t panel = panel_of(block);
    if (panel < 0) return;
#pragma unroll
    for (int n = 0; n < kGroups; ++n)
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
        const int64_t r = (first_group() + n) * kGroupRows + 2 * tig_ + odd;
        if (r < t_.rows)
          f(r, panel * kPanel + 4 * quad_,
            make_float4(sums_.sum(0, n, odd), sums_.sum(0, n, 2 + odd), sums_.sum(1, n, odd), sums_.sum(1, n, 2 + odd)));
      }
  }

 private:
  // A unit whose weights are wanted next.
  struct Cursor {
    uint32_t block, unit;
    int64_t panel;      // this thread's; -1: none
    const char* bytes;  // what it brings of the unit first
  };
  __device__ Cursor cursor(uint32_t at) const {
    Cursor c{kIds ? ids_block_ : at / t_.shape.units, at % t_.shape.units, 0, nullptr};
    find(&c);
    return c;
  }
  __device__ void find(Cursor* at) const {
    at->panel = panel_of(at->block);
    at->bytes = t_.w + (at->panel < 0 ? 0 : at->panel * t_.panel_words * kWordBytes + int64_t{at->unit} * S::kUnitBytes + threadIdx.x % 16 * 16);
  }
  __device__ void next(Cursor* at) const {
    at->bytes += S::kUnitBytes;
    if (++at->unit < t_.shape.units || kIds) return;
    at->unit = 0;
    ++at->block;
    find(at);
  }
  // This thread's.
  __device__ int64_t panel_of(uint32_t block) const {
    const int64_t at = int64_t{block} * kBlockPanels + warp_ * 2 + half_;
    if constexpr (!kIds) return at < t_.shape.panels ? at : -1;
    const int32_t id = at < t_.n ? t_.ids[first_ * t_.n + at] : -1;
    return id >= 0 ? id / kPanel : -1;
  }
  __device__ int64_t first_group() const { return kIds ? first_ / kGroupRows : first_; }
  __device__ char* stage(uint32_t at) const { return shared_ + at * S::kBytes; }
  __device__ static char* scales_of(char* stage) { return stage + S::kWeights; }
  __device__ static char* rows_of(char* stage) { return stage + S::kWeights + S::kScales; }

  // This thread's are of each four words the (lane / 4 % 4)-th, rows 4 (lane % 4) .. + 3 of its panel. `first`: where its first
  // 16 bytes go, of `stage`.
  __device__ void fetch_weights(char* first, char* stage, const Cursor& at) const {
    auto* to = reinterpret_cast<uint4*>(first);
    if (at.panel >= 0 && (whole_ || at.unit + 1 < t_.shape.units)) {
#pragma unroll
      for (int i = 0; i < S::kLoads; ++i) copy_async16_by(policy_, to + i * kPanelThreads, at.bytes + i * 4 * kWordBytes);
    } else {  // what there is
      const int64_t left = at.panel < 0 ? 0 : t_.panel_words - int64_t{at.unit} * S::kLoads * 4 - threadIdx.x / 4 % 4;
#pragma unroll 1
      for (int i = 0; i < S::kLoads; ++i) {
        const bool valid = i * 4 < left;
        copy_async16(to + i * kPanelThreads, valid ? at.bytes + i * 4 * kWordBytes : t_.w, valid);
      }
    }
    if constexpr (S::kScales > 0) {
      // Each lane of a half-warp takes 16 bytes of its panel's, if there are so many: of q4_1's all, of int4's half of the lanes.
      const int byte = static_cast<int>(threadIdx.x % 16) * 16;
      const int64_t of_panel = int64_t{at.unit} * S::kPanelScales + byte;
      const bool valid = at.panel >= 0 && of_panel < t_.panel_scales;
      const char* from = t_.scales + at.panel * t_.panel_scales + of_panel;
      char* to_scales = scales_of(stage) + (warp_ * 2 + half_) * S::kPanelScales + byte;
      static_assert(S::kPanelScales <= 256 && kBlockScales<kType> % 16 == 0);
      if (byte < S::kPanelScales) copy_async16(to_scales, valid ? from : t_.scales, valid);
    }
  }

  // One output of each panel, of one batch row: one thread has it.
  __device__ void store_id(uint32_t piece) const {
    const int64_t r = first_, at = int64_t{ids_block_} * kBlockPanels + warp_ * 2 + half_;
    const int32_t id = at < t_.n ? t_.ids[r * t_.n + at] : -1;
    if (id < 0) return;
    const int lane = id % kPanel, column = static_cast<int>(r % kGroupRows);
    if (lane / 4 != quad_ || column / 2 != tig_) return;
    float* to = t_.partial + (int64_t{piece} * t_.rows + r) * t_.n + at;
    for (int m = 0; m < 2; ++m)
      for (int i = 0; i < 4; ++i)
        if (lane % 4 == 2 * m + i / 2 && column % 2 == i % 2) *to = sums_.sum(m, 0, i);
  }

  const LinearTask& t_;
  char* shared_;
  int64_t first_;
  uint32_t ids_block_;
  int warp_, half_, quad_, tig_;
  int uses_;  // of a stage's first load, in 16 bytes; the next is kPanelThreads behind it
  uint64_t policy_;
  bool whole_;  // all units of a panel are
  Products<kType, kGroups> sums_;
};

}  // namespace aerie::kernels::cuda

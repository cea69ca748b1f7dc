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
// bytes is not who uses them, and where they lie between has no bank conflicts for either (place_of).
#pragma once

#include <type_traits>

#include "kernels/cuda/linear_ahead.h"
#include "kernels/cuda/warpgroup.h"

namespace aerie::kernels::cuda {

struct LinearTask {
  const char* w = nullptr;
  const uint16_t* scales = nullptr;  // int4
  int64_t panel_words = 0;           // words (kk) of a panel that exist
  int64_t n = 0, rows = 0;           // outputs, batch rows
  int64_t groups = 0;                // of 8 batch rows
  LinearShape shape{DType::bf16, 1, 1};
  const char* x = nullptr;           // linear_rows.h
  float* partial = nullptr;          // (pieces, rows, shape.columns()) f32, of int8 weights i32, or
  // LinearRows: outputs are the ids of one batch row, (rows, n); partial is then (pieces, rows, n)
  const int32_t* ids = nullptr;
  uint32_t ahead = 0;  // units that are asked for before the rows are there, beside those of the first stages
};

// Bytes of a stage.
template <DType kType, int kGroups>
struct Stage {
  static constexpr bool kInt4 = kType == DType::int4, kOneLoad = kInt4 || kType == DType::fp8;
  static constexpr int kLoads = kOneLoad ? 1 : 2;  // 16-byte loads of a thread for a step
  static constexpr int kWeights = kUnitSteps * kLoads * kPanelThreads * 16;
  static constexpr int kScales = kInt4 ? 4 * 2 * kUnitSteps * kPanel * 2 : 0;
  static constexpr int kGroupBytes = kUnitSteps * 32 * (kType == DType::bf16 ? 16 : 8);
  static constexpr int kBytes = kWeights + kScales + kGroups * kGroupBytes;
  // All that fit. Bytes under way are what keeps memory busy; and a multiprocessor has room for two blocks, no more: so the
  // blocks of the next Linear come, and fetch ahead, two by two as this one's end, and all multiprocessors have as many.
  static constexpr int kStages = kMostShared / kBytes;
};

// Nibbles 0 .. 15 as bytes -8 .. 7.
__device__ inline uint32_t minus_eight(uint32_t nibbles) { return ((nibbles | 0x80808080u) - 0x08080808u) ^ 0x80808080u; }

template <DType kType, int kGroups, int kStages = Stage<kType, kGroups>::kStages>
class LinearTile {
  using S = Stage<kType, kGroups>;

 public:
  static constexpr size_t kShared = kStages * S::kBytes;
  // Of many rows two sets of warps have half each: all that one does for a step waits for one another.
  static constexpr int kSets = kGroups >= 4 ? 2 : 1, kOwn = kGroups / kSets, kThreads = kSets * kPanelThreads;
  // A set is a warpgroup. (int4 weights have a scale for every step.)
  static constexpr bool kTogether = kWarpgroups && kSets == 2 && kType != DType::int4;

  // For rows of groups from `group` on, or of row `group` and its ids from kBlockPanels * `ids_block` on: LinearRows.
  __device__ LinearTile(const LinearTask& task, int64_t group, uint32_t ids_block = 0)
      : t_(task), shared_(shared_memory<char>()), first_(group), ids_block_(ids_block) {
    const auto lane = static_cast<int>(threadIdx.x % 32);
    warp_ = static_cast<int>(threadIdx.x / 32 % 4);
    set_ = static_cast<int>(threadIdx.x / kPanelThreads);
    half_ = lane / 16;
    quad_ = lane / 4 % 4;
    tig_ = lane % 4;
  }

  // Begins to bring the first weights of units [begin, end), before the rows are there. Not of ids, which are as new as rows
  // are.
  __device__ void fetch_ahead(uint32_t begin, uint32_t end) {
    Cursor at = cursor(begin);
    for (uint32_t s = 0; s < kStages - 1 && begin + s < end; ++s, next(&at)) fetch_weights(static_cast<int>(s), at);
    if (first_ == 0) fetch_to_cache({t_.w, t_.panel_words * kWordBytes, kUnitBytes, t_.shape, t_.ahead}, begin + kStages - 1, end);
  }

  // Goes through units [begin, end), of ids through all of K, and calls done(place) where a piece ends, or they do, with the
  // sums of that piece (each_sum) or of the part of it that was in there. `ahead`: this thread has called fetch_ahead with
  // the same units, of a tile like this one, and nothing since.
  template <class Done>
  __device__ void run(uint32_t begin, uint32_t end, bool ahead, const Done& done) {
    Cursor fetched = cursor(begin);
    for (uint32_t s = 0; s < kStages - 1; ++s) {
      if (begin + s < end) {
        if (!ahead) fetch_weights(static_cast<int>(s), fetched);
        fetch_rows(static_cast<int>(s), fetched.unit);
        next(&fetched);
      }
      copy_async_commit();
    }
    // Lanes of different ids have pieces of their own.
    LinearPlace place(t_.shape, t_.ids ? static_cast<uint32_t>(fetched.panel < 0 ? 0 : fetched.panel / kBlockPanels) * t_.shape.units : begin);
    clear();
    int stage = 0;
    for (uint32_t at = begin; at < end; ++at) {
      copy_async_wait<kStages - 2>();
      if constexpr (kTogether) show_to_warpgroup_mma();
      sync_block();  // the stage is here for all, and the one before has been used by all
      if (at + kStages - 1 < end) {
        const int free = (stage + kStages - 1) % kStages;
        fetch_weights(free, fetched);
        fetch_rows(free, fetched.unit);
        next(&fetched);
      }
      copy_async_commit();
      multiply_by_best(stage);
      stage = (stage + 1) % kStages;
      if (++place.unit == place.piece_end || at + 1 == end) {
        done(place);
        if (at + 1 < end) {
          clear();
          place.next_piece(t_.shape);
        }
      }
      sync_warp();  // lanes of different ids end their pieces alone
    }
    copy_async_wait<0>();
  }

  // A piece's sums to `partial`.
  __device__ void store(const LinearPlace& place) const {
    if (t_.ids) return store_id(place.piece);
    each_sum(place.block, [&](int64_t r, int64_t n, float4 sums) {
      *reinterpret_cast<float4*>(t_.partial + (int64_t{place.piece} * t_.rows + r) * t_.shape.columns() + n) = sums;
    });
  }
  // f(row, output, the sums of four outputs) for each of panel block `block` that this thread has; int32 sums as bits.
  template <class F>
  __device__ void each_sum(uint32_t block, const F& f) const {
    const int64_t panel = panel_of(block, half_);
    if (panel < 0) return;
    for (int n = 0; n < kOwn; ++n)
      for (int odd = 0; odd < 2; ++odd) {
        const int64_t r = (first_group() + set_ * kOwn + n) * kGroupRows + 2 * tig_ + odd;
        if (r < t_.rows)
          f(r, panel * kPanel + 4 * quad_,
            make_float4(bits(sum_[0][n][odd]), bits(sum_[0][n][2 + odd]), bits(sum_[1][n][odd]), bits(sum_[1][n][2 + odd])));
      }
  }

 private:
  // A unit whose weights are wanted next.
  struct Cursor {
    uint32_t block, unit;
    int64_t panel;      // this thread's; -1: none
    const char* bytes;  // what it brings of the unit first
  };
  static constexpr int kWordBytes = kPanel * 4, kUnitBytes = kUnitSteps * S::kLoads * 4 * kWordBytes;  // of a panel
  __device__ Cursor cursor(uint32_t at) const {
    Cursor c{t_.ids ? ids_block_ : at / t_.shape.units, at % t_.shape.units, 0, nullptr};
    find(&c);
    return c;
  }
  __device__ void find(Cursor* at) const {
    at->panel = panel_of(at->block, half_);
    at->bytes = t_.w + (at->panel < 0 ? 0 : at->panel * t_.panel_words * kWordBytes + int64_t{at->unit} * kUnitBytes + threadIdx.x % 16 * 16);
  }
  __device__ void next(Cursor* at) const {
    at->bytes += kUnitBytes;
    if (++at->unit < t_.shape.units || t_.ids) return;
    at->unit = 0;
    ++at->block;
    find(at);
  }
  __device__ int64_t panel_of(uint32_t block, int half) const {
    const int64_t at = (int64_t{block} * 4 + warp_) * 2 + half;
    if (!t_.ids) return at < t_.shape.panels ? at : -1;
    const int32_t id = at < t_.n ? t_.ids[first_ * t_.n + at] : -1;
    return id >= 0 ? id / kPanel : -1;
  }
  __device__ void clear() {
    for (auto& tile : sum_)
      for (auto& group : tile)
        for (Sum& v : group) v = 0;
  }
  __device__ int64_t first_group() const { return t_.ids ? first_ / kGroupRows : first_; }
  __device__ char* weights(int stage) const { return shared_ + stage * S::kBytes; }
  __device__ char* scales(int stage) const { return weights(stage) + S::kWeights; }
  __device__ char* rows(int stage) const { return scales(stage) + S::kScales; }
  // Of the 16 bytes that are rows 4 `quad` .. + 3 of word `tig`, in a half-warp's 256.
  __device__ static int place_of(int tig, int quad) { return tig / 2 * 8 + tig % 2 * 4 + quad % 2 * 2 + (quad / 2 ^ tig / 2); }
  __device__ uint4* slot(int stage, int step, int load, int place) const {
    return reinterpret_cast<uint4*>(weights(stage)) + ((step * S::kLoads + load) * 8 + warp_ * 2 + half_) * 16 + place;
  }

  __device__ void fetch_weights(int stage, const Cursor& at) {
    const int tig = static_cast<int>(threadIdx.x / 4 % 4), quad = static_cast<int>(threadIdx.x % 4);
    uint4* const to = slot(stage, 0, 0, place_of(tig, quad));
    constexpr int kLoads = kUnitSteps * S::kLoads;  // four words (kk) each
    const int64_t left = at.panel < 0 ? 0 : t_.panel_words - int64_t{at.unit} * kLoads * 4 - tig;  // of the panel's words
    for (int i = set_; i < kLoads; i += kSets) {
      const bool valid = i * 4 < left;
      copy_async16(to + i * kPanelThreads, valid ? at.bytes + i * 4 * kWordBytes : t_.w, valid);
    }
    if constexpr (S::kInt4) {
      // Of each panel 4 blocks of 16 halves; lane l of the first 16 takes 8 of them.
      const int lane = static_cast<int>(threadIdx.x % 32), half = lane / 8 % 2, step = lane % 8 / 2;
      const int64_t block = int64_t{at.unit} * kUnitSteps + step, panel = panel_of(at.block, half);
      const bool valid = panel >= 0 && block < t_.shape.steps;
      const uint16_t* from = t_.scales + (panel * t_.shape.steps + block) * kPanel + lane % 2 * 8;
      auto* to = reinterpret_cast<uint16_t*>(scales(stage)) + ((warp_ * 2 + half) * kUnitSteps + step) * kPanel + lane % 2 * 8;
      if (lane < 16 && set_ == 0) copy_async16(to, valid ? from : t_.scales, valid);
    }
  }
  __device__ void fetch_rows(int stage, uint32_t unit) {
    constexpr int kChunks = S::kGroupBytes / 16;
    for (int i = static_cast<int>(threadIdx.x); i < kGroups * kChunks; i += kThreads) {
      const int64_t group = first_group() + i / kChunks;
      const bool valid = group * kGroupRows + i % kGroupRows < t_.rows;
      const char* from = t_.x + (group * t_.shape.units + unit) * S::kGroupBytes + i % kChunks * 16;
      copy_async16(rows(stage) + i * 16, valid ? from : t_.x, valid);
    }
  }

  // Of group n of its own.
  static constexpr int kStepBytes = S::kGroupBytes / kUnitSteps;
  __device__ const char* fragments(int stage, int step, int n) const {
    return rows(stage) + (set_ * kOwn + n) * S::kGroupBytes + step * kStepBytes;
  }
  // This lane's.
  __device__ void fragments(int stage, int step, int n, uint32_t (&b)[kStepBytes / 128]) const {
    const auto* from = reinterpret_cast<const uint32_t*>(fragments(stage, step, n)) + threadIdx.x % 32;
    for (int w = 0; w < kStepBytes / 128; ++w) b[w] = from[w * 32];
  }

  __device__ void multiply_by_best(int stage) {
    if constexpr (kTogether)
      if (warpgroups()) return multiply_together(stage);
    multiply(stage);
  }
  // By the set's warps together; the same sums in the same order. Half of the unit at a time: more has no room in registers, where
  // two blocks share a multiprocessor.
  __device__ void multiply_together(int stage) {
    constexpr int kSteps = kUnitSteps / 2;
#pragma unroll
    for (int first = 0; first < kUnitSteps; first += kSteps) {
      uint32_t a[kSteps][2][4];
#pragma unroll
      for (int step = 0; step < kSteps; ++step) weights_of(stage, first + step, a[step]);
      begin_warpgroup_mma();
#pragma unroll
      for (int step = 0; step < kSteps; ++step)
#pragma unroll
        for (int part = 0; part < kStepBytes; part += 256)
#pragma unroll
          for (int m = 0; m < 2; ++m) {
            const char* b = fragments(stage, first + step, 0) + part;
            if constexpr (kType == DType::bf16) warpgroup_mma_bf16(sum_[m], a[step][m], b, S::kGroupBytes);
            else if constexpr (kType == DType::fp8) warpgroup_mma_half(sum_[m], a[step][m], b, S::kGroupBytes);
            else warpgroup_mma_s8(sum_[m], a[step][m], b, S::kGroupBytes);
          }
      end_warpgroup_mma();
    }
  }
  __device__ void multiply(int stage) {
    for (int step = 0; step < kUnitSteps; ++step) {
      uint32_t a[2][4];
      weights_of(stage, step, a);
      if constexpr (kType == DType::bf16) {
        // All high parts, then all low ones: an mma waits for the one before that has its sums.
        static_assert(kOwn <= 4);
        uint32_t b[kOwn][4];
        for (int n = 0; n < kOwn; ++n) fragments(stage, step, n, b[n]);
        for (int n = 0; n < kOwn; ++n)
          for (int m = 0; m < 2; ++m) mma_bf16(sum_[m][n], a[m], {b[n][0], b[n][1]});
        for (int n = 0; n < kOwn; ++n)
          for (int m = 0; m < 2; ++m) mma_bf16(sum_[m][n], a[m], {b[n][2], b[n][3]});
      } else if constexpr (!S::kInt4) {
        for (int n = 0; n < kOwn; ++n) {
          uint32_t b[2];
          fragments(stage, step, n, b);
          for (int m = 0; m < 2; ++m)
            if constexpr (kType == DType::fp8) mma_half(sum_[m][n], a[m], b);
            else mma_s8(sum_[m][n], a[m], b);
        }
      } else {
        const auto* s = reinterpret_cast<const uint16_t*>(scales(stage)) +
                        ((warp_ * 2 + half_) * kUnitSteps + step) * kPanel + 4 * quad_;
        float scale[4];
        for (int i = 0; i < 4; ++i) scale[i] = half_to_float(s[i]);
        for (int n = 0; n < kOwn; ++n) {
          uint32_t b[2];
          fragments(stage, step, n, b);
          for (int m = 0; m < 2; ++m) {
            int32_t c[4] = {};
            mma_s8(c, a[m], b);
            for (int i = 0; i < 4; ++i) sum_[m][n][i] = fmaf(static_cast<float>(c[i]), scale[2 * m + i / 2], sum_[m][n][i]);
          }
        }
      }
    }
  }

  // The fragments of two tiles: rows g and g + 8 of tile m are the thread's rows 2 m and 2 m + 1.
  __device__ void weights_of(int stage, int step, uint32_t (&a)[2][4]) const {
    const int place = place_of(tig_, quad_);
    const uint4 u = *slot(stage, step, 0, place);
    if constexpr (S::kOneLoad) {
      constexpr uint32_t kLow = 0x0f0f0f0fu;
      const uint32_t w[4] = {u.x, u.y, u.z, u.w};
      for (int m = 0; m < 2; ++m)
        for (int i = 0; i < 2; ++i) {
          const uint32_t word = w[2 * m + i];
          a[m][i] = S::kInt4 ? minus_eight(word & kLow) : halves_of_e4m3(word & 0xffffu);
          a[m][2 + i] = S::kInt4 ? minus_eight(word >> 4 & kLow) : halves_of_e4m3(word >> 16);
        }
    } else {
      const uint4 v = *slot(stage, step, 1, place);
      a[0][0] = u.x, a[0][1] = u.y, a[0][2] = v.x, a[0][3] = v.y;
      a[1][0] = u.z, a[1][1] = u.w, a[1][2] = v.z, a[1][3] = v.w;
    }
  }

  // One output of each panel, of one batch row: one thread has it.
  __device__ void store_id(uint32_t piece) const {
    const int64_t r = first_, at = (int64_t{ids_block_} * 4 + warp_) * 2 + half_;
    const int32_t id = at < t_.n ? t_.ids[r * t_.n + at] : -1;
    if (id < 0) return;
    const int lane = id % kPanel, column = static_cast<int>(r % kGroupRows);
    if (lane / 4 != quad_ || column / 2 != tig_) return;
    float* to = t_.partial + (int64_t{piece} * t_.rows + r) * t_.n + at;
    for (int m = 0; m < 2; ++m)
      for (int i = 0; i < 4; ++i)
        if (lane % 4 == 2 * m + i / 2 && column % 2 == i % 2) *to = bits(sum_[m][0][i]);
  }

  const LinearTask& t_;
  char* shared_;
  int64_t first_;
  uint32_t ids_block_;
  int warp_, set_, half_, quad_, tig_;
  using Sum = std::conditional_t<kType == DType::int8, int32_t, float>;  // int8: exact to the end
  __device__ static float bits(float v) { return v; }
  __device__ static float bits(int32_t v) { return std::bit_cast<float>(v); }
  Sum sum_[2][kOwn][4];
};

}  // namespace aerie::kernels::cuda

// Attention over a bf16 cache by tensor cores where queries are many: a warp for each tile, past whole pages.
//
// A tile's queries, scores, weights and outputs stay in its warp's registers, so the block's four tiles meet at one barrier a
// page, which is brought to shared memory once for all four. Tiles of rows that go alone do not meet at all: each warp brings
// its own pages. For every query it is the arithmetic of attention_tile.h in its order, mma by mma: the same bits.
#pragma once

#include "kernels/cuda/attention_queries.h"

namespace aerie::kernels::cuda {

constexpr int kWideWarps = 4;

template <int kTiles>  // of 8 dims, a quarter of a head's
struct AttentionWide : TileQueries<kTiles * 32, kWideWarps * kTileQueries> {
  static constexpr int kDim = kTiles * 32;
  using Queries = TileQueries<kDim, kWideWarps * kTileQueries>;
  using Queries::begin, Queries::end, Queries::g, Queries::t, Queries::lane, Queries::warp, Queries::kSteps, Queries::kLine, Queries::kLinesBytes;
  static constexpr int kBuffers = 4;  // of pages: of a company's, or one of each tile's own
  static_assert(kBuffers == kWideWarps);
  static constexpr size_t kShared = kBuffers * 2 * kLinesBytes;
  static constexpr int kBlockTiles = kWideWarps, kAloneTiles = kWideWarps;
  static constexpr int kThreads = 3 * kWideWarps * 32;  // the registers of three blocks are a multiprocessor's, as its memory is
  static constexpr int64_t kEnough = 396;               // so many have 132

  uint32_t high[kSteps][4], low[kSteps][4];  // the queries
  float top[2], total[2], out[kDim / 8][4];

  __device__ char* keys(int buffer) const { return shared_memory<char>() + buffer * 2 * kLinesBytes; }
  __device__ char* values(int buffer) const { return keys(buffer) + kLinesBytes; }

  __device__ AttentionWide(const Attention& op, const Divisor& group, uint32_t kv_head, uint32_t block, bool alone)
      : Queries(op, group, kv_head, block * kWideWarps + threadIdx.x / 32, alone) {}

  __device__ void get_queries() {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      float x[2][4];
      this->ask(step, x);
      this->split(x, high[step], low[step]);
    }
  }

  // Of positions 8 j + 2 t and the next, of queries g (0, 1) and g + 8 (2, 3).
  __device__ void scores(const char* keys, float (&s)[4][4]) const {
#pragma unroll
    for (int two = 0; two < 4; two += 2) {
      float h[2][4] = {}, l[2][4] = {};
#pragma unroll
      for (int step = 0; step < kSteps; ++step)
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          const char* key = keys + (8 * (two + j) + g) * kLine + step * 32 + 4 * t;
          const uint32_t b[2] = {*reinterpret_cast<const uint32_t*>(key), *reinterpret_cast<const uint32_t*>(key + 16)};
          mma_bf16(h[j], high[step], b);
          mma_bf16(l[j], low[step], b);
        }
#pragma unroll
      for (int j = 0; j < 2; ++j)
#pragma unroll
        for (int i = 0; i < 4; ++i) s[two + j][i] = (h[j][i] + l[j][i]) * this->op.scale;
    }
  }

  // Scores of the page at `at` become weights, as the fragments (high and low part) of its two steps.
  __device__ void weigh(int32_t at, float (&s)[4][4], uint32_t (&w)[2][2][4]) {
    const int32_t seen = end - (at + 2 * t);
#pragma unroll
    for (auto& step : w)
      for (auto& part : step) part[1] = part[3] = 0;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (half == 1 && !this->second()) break;
      float now = top[half], sum = 0;
#pragma unroll
      for (int j = 0; j < 4; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          if (8 * j + e >= seen) s[j][2 * half + e] = -kInf;
          now = fmaxf(now, s[j][2 * half + e]);
        }
      now = fmaxf(now, shuffle_xor(now, 1));
      now = fmaxf(now, shuffle_xor(now, 2));
      const float keep = exp_below(top[half] - now);
      top[half] = now;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        float weight[2];
#pragma unroll
        for (int e = 0; e < 2; ++e) weight[e] = exp_below(s[j][2 * half + e] - now);  // not seen: 0
        sum = j == 0 ? weight[0] + weight[1] : sum + (weight[0] + weight[1]);
        split_pair(weight[0], weight[1], &w[j / 2][0][half + 2 * (j % 2)], &w[j / 2][1][half + 2 * (j % 2)]);
      }
      total[half] = total[half] * keep + sum;
#pragma unroll
      for (auto& o : out) o[2 * half] = o[2 * half] * keep, o[2 * half + 1] = o[2 * half + 1] * keep;
    }
  }

  __device__ void add(const char* values, const uint32_t (&w)[2][2][4]) {
#pragma unroll
    for (int tile = 0; tile < kDim / 8; ++tile) {
      uint32_t v[4];
      load_transposed(v, values + lane * kLine + tile * 16);
#pragma unroll
      for (int step = 0; step < 2; ++step)
#pragma unroll
        for (int part = 0; part < 2; ++part) mma_bf16(out[tile], w[step][part], {v[2 * step], v[2 * step + 1]});
    }
  }

  // Pages of the company, by all threads of the block.
  __device__ void load(int32_t at, int buffer) const {
    if (at < end) {
      const int32_t page = this->page_of(at);
      this->template bring_page<kWideWarps>(0, page, keys(buffer), warp);
      this->template bring_page<kWideWarps>(1, page, values(buffer), warp);
    }
    copy_async_commit();
  }
  __device__ void run_together(bool fresh) {
    if (!fresh) sync_block();  // the last pages have been used
    for (int i = 0; i < kBuffers - 1; ++i) load(begin + i * kPageSlots, i);
    if (fresh) get_queries();
    int buffer = 0;
    for (int32_t at = begin; at < end; at += kPageSlots, buffer = (buffer + 1) % kBuffers) {
      copy_async_wait<kBuffers - 2>();
      sync_block();  // the page is here for all, and the one before has been used by all
      load(at + (kBuffers - 1) * kPageSlots, (buffer + kBuffers - 1) % kBuffers);
      float s[4][4];
      uint32_t w[2][2][4];
      scores(keys(buffer), s);
      weigh(at, s, w);
      add(values(buffer), w);
    }
    copy_async_wait<0>();
  }

  // Those of a row that goes alone, by its warp: keys come while values are used, and values while keys are.
  __device__ void bring_own(int which, int32_t slot) const {
    this->template bring<1>(which, slot, which ? values(warp) : keys(warp), 0);
    copy_async_commit();
  }
  // The next page's, if there is one.
  __device__ void bring_next(int which, int32_t slot, int32_t at) const {
    if (at + kPageSlots < end) bring_own(which, slot);
    else copy_async_commit();
  }
  __device__ void run_alone(bool fresh) {
    int32_t slot = this->slot_of(begin);
    bring_own(0, slot);
    bring_own(1, slot);
    if (fresh) get_queries();
    for (int32_t at = begin; at < end; at += kPageSlots) {
      slot = this->slot_of(at + kPageSlots);
      copy_async_wait<1>();
      sync_warp();  // the keys are here for all lanes
      float s[4][4];
      uint32_t w[2][2][4];
      scores(keys(warp), s);
      sync_warp();  // and have been used by all
      bring_next(0, slot, at);
      weigh(at, s, w);
      copy_async_wait<1>();
      sync_warp();
      add(values(warp), w);
      sync_warp();
      bring_next(1, slot, at);
    }
    copy_async_wait<0>();
  }

  // A chunk. All threads of the block, or of the warp if it goes alone; `fresh`: the queries are not there yet.
  __device__ void run(int32_t chunk, bool fresh) {
    this->take(chunk);
#pragma unroll
    for (int half = 0; half < 2; ++half) top[half] = -kInf, total[half] = 0;
#pragma unroll
    for (auto& o : out)
      for (float& v : o) v = 0;
    if (this->alone) run_alone(fresh);
    else run_together(fresh);
  }

  __device__ void store(float* partial, int64_t chunks, int64_t chunk) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float sum = total[half];
      sum += shuffle_xor(sum, 1);
      sum += shuffle_xor(sum, 2);
      if (!this->mine[half]) continue;
      float* to = this->part_of(partial, chunks, chunk, half);
      if (t == 0) to[0] = top[half], to[1] = sum;
#pragma unroll
      for (int tile = 0; tile < kDim / 8; ++tile)
        *reinterpret_cast<float2*>(to + 2 + tile * 8 + 2 * t) = make_float2(out[tile][2 * half], out[tile][2 * half + 1]);
    }
  }
};

}  // namespace aerie::kernels::cuda

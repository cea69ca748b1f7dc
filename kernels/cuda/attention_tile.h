// Attention over a bf16 cache by tensor cores where queries are few: a tile of them past chunks of positions, a page at a time.
//
// The block's four warps share the page: each makes the scores of eight of its positions, then a quarter of every output. A
// query is the sum of two bf16, a weight too (linear_rows.h), so that next to nothing is lost against f32. What a page adds
// to a row has one order, here as in attention_wide.h: dims ascending, then positions ascending, within an mma as the device
// has it. The page's maximum has no order. The total is a sum for each lane t of a query's four, of positions 2 t and 2 t + 1
// of every eight, ascending; those of the four are added, as a tree, when the chunk is done.
#pragma once

#include "kernels/cuda/attention_queries.h"

namespace aerie::kernels::cuda {

constexpr int kTileWarps = 4, kTileBuffers = 2;

template <int kTiles>  // of 8 dims, a warp
struct AttentionTile : TileQueries<kTiles * 8 * kTileWarps, kTileQueries> {
  static constexpr int kDim = kTiles * 8 * kTileWarps;
  using Queries = TileQueries<kDim, kTileQueries>;
  using Queries::begin, Queries::end, Queries::g, Queries::t, Queries::lane, Queries::warp, Queries::kSteps, Queries::kLine, Queries::kLinesBytes;
  static constexpr int kQueryBytes = kSteps * 2 * 32 * 16, kWeightBytes = 2 * 2 * 32 * 16;
  static constexpr int kTops = kTileWarps * kTileQueries, kTotals = kTileWarps * 2 * 32;
  static constexpr size_t kShared = kQueryBytes + kTileBuffers * 2 * kLinesBytes + kWeightBytes + (kTops + kTotals) * 4;
  static constexpr int kBlockTiles = 1, kAloneTiles = 1, kThreads = kTileWarps * 32;
  static constexpr int64_t kEnough = 528;  // blocks: four for each of 132 multiprocessors; more would wait for the first to end

  static constexpr int kAsked = (kSteps + kTileWarps - 1) / kTileWarps;
  float asked[kAsked][2][4];  // of the queries, until they are fragments
  float top[2], total[2], out[kTiles][4];

  __device__ char* shared() const { return shared_memory<char>(); }
  __device__ uint4* query(int step, int part) const { return reinterpret_cast<uint4*>(shared()) + (step * 2 + part) * 32; }
  __device__ char* keys(int buffer) const { return shared() + kQueryBytes + buffer * 2 * kLinesBytes; }
  __device__ char* values(int buffer) const { return keys(buffer) + kLinesBytes; }
  __device__ char* weights(int step, int part) const { return keys(kTileBuffers) + (step * 2 + part) * 32 * 16; }
  __device__ float* tops() const { return reinterpret_cast<float*>(keys(kTileBuffers) + kWeightBytes); }  // (warps, queries)
  __device__ float* totals() const { return tops() + kTops; }  // (warps, halves, lanes)

  __device__ AttentionTile(const Attention& op, const Divisor& group, uint32_t kv_head, uint32_t block, bool alone)
      : Queries(op, group, kv_head, block, alone) {
    if (this->chunk_end == 0) return;
#pragma unroll
    for (int i = 0; i < kAsked; ++i)
      if (const int step = warp + i * kTileWarps; step < kSteps) this->ask(step, asked[i]);
  }

  __device__ void put_queries() const {
#pragma unroll
    for (int i = 0; i < kAsked; ++i) {
      const int step = warp + i * kTileWarps;
      if (step >= kSteps) break;
      uint32_t high[4], low[4];
      this->split(asked[i], high, low);
      query(step, 0)[lane] = make_uint4(high[0], high[1], high[2], high[3]);
      query(step, 1)[lane] = make_uint4(low[0], low[1], low[2], low[3]);
    }
  }

  __device__ void load(int32_t slot, int buffer) const {
    this->template bring<kTileWarps>(0, slot, keys(buffer), warp);
    this->template bring<kTileWarps>(1, slot, values(buffer), warp);
    copy_async_commit();
  }

  // Scores of positions 8 warp + 2 t and the next, of queries g (0, 1) and g + 8 (2, 3).
  __device__ void scores(int buffer, float (&s)[4]) const {
    float high[4] = {}, low[4] = {};
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const char* key = keys(buffer) + (8 * warp + g) * kLine + step * 32 + 4 * t;
      const uint32_t b[2] = {*reinterpret_cast<const uint32_t*>(key), *reinterpret_cast<const uint32_t*>(key + 16)};
      const uint4 h = query(step, 0)[lane], l = query(step, 1)[lane];
      mma_bf16(high, {h.x, h.y, h.z, h.w}, b);
      mma_bf16(low, {l.x, l.y, l.z, l.w}, b);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) s[i] = (high[i] + low[i]) * this->op.scale;
  }

  // The page at position `at`. All threads of the block.
  __device__ void attend(int32_t at, int buffer) {
    float s[4];
    scores(buffer, s);
    const int32_t seen = end - (at + 8 * warp + 2 * t);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int e = 0; e < 2; ++e)
        if (e >= seen) s[2 * half + e] = -kInf;
      float most = fmaxf(s[2 * half], s[2 * half + 1]);
      most = fmaxf(most, shuffle_xor(most, 1));
      most = fmaxf(most, shuffle_xor(most, 2));
      if (t == 0) tops()[warp * kTileQueries + g + 8 * half] = most;
    }
    sync_block();
    float keep[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float before = top[half];
      float now = before;
#pragma unroll
      for (int w = 0; w < kTileWarps; ++w) now = fmaxf(now, tops()[w * kTileQueries + g + 8 * half]);
      float weight[2];
      keep[half] = exp_below(before - now);
      top[half] = now;
#pragma unroll
      for (int e = 0; e < 2; ++e) weight[e] = exp_below(s[2 * half + e] - now);  // not seen: 0
      totals()[(warp * 2 + half) * 32 + lane] = weight[0] + weight[1];
      uint32_t high, low;
      split_pair(weight[0], weight[1], &high, &low);
      // As a fragment: word half + 2 (warp % 2) of step warp / 2.
      const int word = lane * 4 + half + 2 * (warp % 2);
      reinterpret_cast<uint32_t*>(weights(warp / 2, 0))[word] = high;
      reinterpret_cast<uint32_t*>(weights(warp / 2, 1))[word] = low;
    }
    sync_block();
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float* sums = totals() + half * 32 + lane;
      total[half] = total[half] * keep[half] + (((sums[0] + sums[64]) + sums[2 * 64]) + sums[3 * 64]);
    }
    uint4 w[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) w[i] = reinterpret_cast<const uint4*>(weights(i / 2, i % 2))[lane];
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      uint32_t v[4];
      load_transposed(v, values(buffer) + lane * kLine + (warp * kTiles + tile) * 16);
      float(&o)[4] = out[tile];
#pragma unroll
      for (int i = 0; i < 4; ++i) o[i] = o[i] * keep[i / 2];
#pragma unroll
      for (int step = 0; step < 2; ++step)
#pragma unroll
        for (int part = 0; part < 2; ++part) {
          const uint4& a = w[2 * step + part];
          mma_bf16(o, {a.x, a.y, a.z, a.w}, {v[2 * step], v[2 * step + 1]});
        }
    }
  }

  // A chunk. All threads of the block; `fresh`: the queries are not there yet.
  __device__ void run(int32_t chunk, bool fresh) {
    this->take(chunk);
    const int32_t slot = this->slot_of(begin), next = this->slot_of(begin + kPageSlots);
    if (!fresh) sync_block();  // the last pages have been used
    load(slot, 0);
    load(next, 1);
    if (fresh) put_queries();
#pragma unroll
    for (int half = 0; half < 2; ++half) top[half] = -kInf, total[half] = 0;
    for (auto& o : out)
      for (float& v : o) v = 0;
    int buffer = 0;
    for (int32_t at = begin; at < end; at += kPageSlots, buffer = 1 - buffer) {
      if (at == begin) copy_async_wait<1>();
      else copy_async_wait<0>();
      sync_block();  // the page is here for all, and the one before has been used by all; at first, the queries are there
      if (at > begin) load(this->slot_of(at + kPageSlots), 1 - buffer);
      attend(at, buffer);
    }
    copy_async_wait<0>();
  }

  __device__ void store(float* partial, int64_t chunks, int64_t chunk) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float sum = total[half];
      sum += shuffle_xor(sum, 1);
      sum += shuffle_xor(sum, 2);
      if (!this->mine[half]) continue;
      float* to = this->part_of(partial, chunks, chunk, half);
      if (warp == 0 && t == 0) to[0] = top[half], to[1] = sum;
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile)
        *reinterpret_cast<float2*>(to + 2 + (warp * kTiles + tile) * 8 + 2 * t) = make_float2(out[tile][2 * half], out[tile][2 * half + 1]);
    }
  }
};

}  // namespace aerie::kernels::cuda

// Attention over a bf16 cache by tensor cores where queries are few: a tile of them past chunks of positions, two pages at a time.
//
// The block's four warps share a page: each makes the scores of eight of its positions, then a quarter of every output. A
// query is the sum of two bf16, a weight too (linear_rows.h), so that next to nothing is lost against f32. What a page adds
// to a row has one order, here as in attention_wide.h: dims ascending, then positions ascending, within an mma as the device
// has it. The page's maximum has no order. The total is a sum for each lane t of a query's four, of positions 2 t and 2 t + 1
// of every eight, ascending; those of the four are added, as a tree, when the chunk is done.
#pragma once

#include "kernels/cuda/attention_queries.h"

namespace aerie::kernels::cuda {

constexpr int kTileWarps = 4, kTilePages = 2;

template <int kTiles>  // of 8 dims, a warp
struct AttentionTile : TileQueries<kTiles * 8 * kTileWarps, kTileQueries> {
  static constexpr int kDim = kTiles * 8 * kTileWarps;
  using Queries = TileQueries<kDim, kTileQueries>;
  using Queries::begin, Queries::end, Queries::g, Queries::t, Queries::lane, Queries::warp, Queries::kSteps, Queries::kLine, Queries::kLinesBytes;
  static constexpr int kQueryBytes = kSteps * 2 * 32 * 16, kWeightBytes = 2 * 2 * 32 * 16;  // weights: of a page
  static constexpr int kTops = kTileWarps * kTileQueries, kTotals = kTileWarps * 2 * 32;
  static constexpr size_t kShared = kQueryBytes + kTilePages * (2 * kLinesBytes + kWeightBytes + (kTops + kTotals) * 4);
  static constexpr int kBlockTiles = 1, kAloneTiles = 1, kThreads = kTileWarps * 32;
  static constexpr int64_t kEnough = 528;  // blocks: four for each of 132 multiprocessors; more would wait for the first to end

  static constexpr int kAsked = (kSteps + kTileWarps - 1) / kTileWarps;
  float asked[kAsked][2][4];  // of the queries, until they are fragments
  float top[2], total[2], out[kTiles][4];

  __device__ char* shared() const { return shared_memory<char>(); }
  __device__ uint4* query(int step, int part) const { return reinterpret_cast<uint4*>(shared()) + (step * 2 + part) * 32; }
  __device__ char* keys(int page) const { return shared() + kQueryBytes + page * kLinesBytes; }
  __device__ char* values(int page) const { return keys(kTilePages + page); }
  __device__ char* weights(int page, int step, int part) const {
    return keys(2 * kTilePages) + page * kWeightBytes + (step * 2 + part) * 32 * 16;
  }
  __device__ float* tops(int page) const {  // (warps, queries)
    return reinterpret_cast<float*>(weights(kTilePages, 0, 0)) + page * kTops;
  }
  __device__ float* totals(int page) const { return tops(kTilePages) + page * kTotals; }  // (warps, halves, lanes)

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

  // Keys or values of both pages, on their way.
  __device__ void load(int which, const int32_t (&slot)[kTilePages]) const {
#pragma unroll
    for (int page = 0; page < kTilePages; ++page)
      this->template bring<kTileWarps>(which, slot[page], which ? values(page) : keys(page), warp);
    copy_async_commit();
  }

  // Scores of positions 8 warp + 2 t and the next of each page, of queries g (0, 1) and g + 8 (2, 3).
  __device__ void scores(float (&s)[kTilePages][4]) const {
    float high[kTilePages][4] = {}, low[kTilePages][4] = {};
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const uint4 h = query(step, 0)[lane], l = query(step, 1)[lane];
#pragma unroll
      for (int page = 0; page < kTilePages; ++page) {
        const char* key = keys(page) + (8 * warp + g) * kLine + step * 32 + 4 * t;
        const uint32_t b[2] = {*reinterpret_cast<const uint32_t*>(key), *reinterpret_cast<const uint32_t*>(key + 16)};
        mma_bf16(high[page], {h.x, h.y, h.z, h.w}, b);
        mma_bf16(low[page], {l.x, l.y, l.z, l.w}, b);
      }
    }
#pragma unroll
    for (int page = 0; page < kTilePages; ++page)
#pragma unroll
      for (int i = 0; i < 4; ++i) s[page][i] = (high[page][i] + low[page][i]) * this->op.scale;
  }

  // They, of the pages from position `at` on, but -infinity where nothing is seen; and each page's maximum of them to `tops`.
  __device__ void find_tops(int32_t at, float (&s)[kTilePages][4]) const {
#pragma unroll
    for (int page = 0; page < kTilePages; ++page) {
      const int32_t seen = end - (at + page * kPageSlots + 8 * warp + 2 * t);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        if (half == 1 && !this->second()) break;
#pragma unroll
        for (int e = 0; e < 2; ++e)
          if (e >= seen) s[page][2 * half + e] = -kInf;
        float most = fmaxf(s[page][2 * half], s[page][2 * half + 1]);
        most = fmaxf(most, shuffle_xor(most, 1));
        most = fmaxf(most, shuffle_xor(most, 2));
        if (t == 0) tops(page)[warp * kTileQueries + g + 8 * half] = most;
      }
    }
  }
  // Scores become weights, as fragments. A page's `keep` is what is left of what was before it.
  __device__ void weigh(const float (&s)[kTilePages][4], float (&keep)[kTilePages][2]) {
#pragma unroll
    for (int page = 0; page < kTilePages; ++page)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        // Word half + 2 (warp % 2) of step warp / 2.
        auto* high = reinterpret_cast<uint32_t*>(weights(page, warp / 2, 0)) + lane * 4 + half + 2 * (warp % 2);
        auto* low = reinterpret_cast<uint32_t*>(weights(page, warp / 2, 1)) + lane * 4 + half + 2 * (warp % 2);
        if (half == 1 && !this->second()) {
          *high = *low = 0;
          break;
        }
        float now = top[half];
#pragma unroll
        for (int w = 0; w < kTileWarps; ++w) now = fmaxf(now, tops(page)[w * kTileQueries + g + 8 * half]);
        keep[page][half] = exp_below(top[half] - now);
        top[half] = now;
        float weight[2];
#pragma unroll
        for (int e = 0; e < 2; ++e) weight[e] = exp_below(s[page][2 * half + e] - now);  // not seen: 0
        totals(page)[(warp * 2 + half) * 32 + lane] = weight[0] + weight[1];
        split_pair(weight[0], weight[1], high, low);
      }
  }
  __device__ void add(int page, const float (&keep)[2]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (half == 1 && !this->second()) break;
      const float* sums = totals(page) + half * 32 + lane;
      total[half] = total[half] * keep[half] + (((sums[0] + sums[64]) + sums[2 * 64]) + sums[3 * 64]);
    }
    uint4 w[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) w[i] = reinterpret_cast<const uint4*>(weights(page, i / 2, i % 2))[lane];
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      uint32_t v[4];
      load_transposed(v, values(page) + lane * kLine + (warp * kTiles + tile) * 16);
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

  // A chunk. All threads of the block; `fresh`: the queries are not there yet. Keys come while values are used, and values
  // while keys are.
  __device__ void run(int32_t chunk, bool fresh) {
    constexpr int32_t kBoth = kTilePages * kPageSlots;
    this->take(chunk);
    int32_t slot[kTilePages] = {this->slot_of(begin), this->slot_of(begin + kPageSlots)};
    if (!fresh) sync_block();  // the last pages have been used
    load(0, slot);
    load(1, slot);
    if (fresh) put_queries();
#pragma unroll
    for (int half = 0; half < 2; ++half) top[half] = -kInf, total[half] = 0;
    for (auto& o : out)
      for (float& v : o) v = 0;
    for (int32_t at = begin; at < end; at += kBoth) {
      const bool more = at + kBoth < end;
      if (more) slot[0] = this->slot_of(at + kBoth), slot[1] = this->slot_of(at + kBoth + kPageSlots);
      float s[kTilePages][4], keep[kTilePages][2] = {};
      copy_async_wait<1>();
      sync_block();  // the keys are here for all; at first, the queries
      scores(s);
      find_tops(at, s);
      sync_block();
      if (more) load(0, slot);
      else copy_async_commit();
      weigh(s, keep);
      copy_async_wait<1>();
      sync_block();
      add(0, keep[0]);
      if (at + kPageSlots < end) add(1, keep[1]);
      if (!more) break;
      sync_block();
      load(1, slot);
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

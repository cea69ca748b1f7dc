// Attention over a bf16 cache by tensor cores: 16 queries of a kv head past one chunk of positions, 32 at a time.
//
// The block's four warps share a page: each makes the scores of eight of its positions, then a quarter of every output. A
// query is the sum of two bf16, a weight too (linear_rows.h), so that next to nothing is lost against f32. What a page adds
// to a row has one order: dims ascending, then positions ascending, within an mma as the device has it; the page's maximum
// and total are fixed trees. Rows that see a chunk whole, in pages of their sequence, go through it together; a row that
// sees a part of it, or has ancestors there, goes alone: nobody meets another's NaN.
#pragma once

#include "kernels/cuda/kv.h"
#include "kernels/cuda/linear_rows.h"

namespace aerie::kernels::cuda {

constexpr int kTileWarps = 4, kTileQueries = 16, kTileBuffers = 2;

template <int kTiles>  // of 8 dims, a warp
struct AttentionTile {
  static constexpr int kDim = kTiles * 8 * kTileWarps, kSteps = kDim / 16;
  static constexpr int kLine = kDim * 2 + 16;  // bytes of a position: lanes read eight of them at once, without conflicts
  static constexpr int kQueryBytes = kSteps * 2 * 32 * 16, kPageBytes = 2 * kPageSlots * kLine, kWeightBytes = 2 * 2 * 32 * 16;
  static constexpr int kFloats = 2 * kTileWarps * kTileQueries;
  static constexpr size_t kShared = kQueryBytes + kTileBuffers * kPageBytes + kWeightBytes + kFloats * 4;

  const Attention& op;
  const uint32_t kv_head, group;
  uint32_t first, last;  // queries: query i of the kv head is head i % group of row i / group
  bool alone;            // all are one row's, which goes through chunks that others do not see as it does
  int64_t begin, end;    // positions
  int64_t ctx, length;   // of the first row, whose slots are looked up
  const int32_t *pages, *tail;
  int warp, lane, g, t;
  // This thread's queries g and g + 8: do they take part? Their rows, and how far these share chunks with their tile's others.
  bool mine[2];
  uint32_t row_of[2];
  int64_t shared_end[2];
  static constexpr int kAsked = (kSteps + kTileWarps - 1) / kTileWarps;
  float asked[kAsked][2][4];  // of the queries, until they are fragments
  float top[2], total[2], out[kTiles][4];

  __device__ char* shared() const { return shared_memory<char>(); }
  __device__ uint4* query(int step, int part) const { return reinterpret_cast<uint4*>(shared()) + (step * 2 + part) * 32; }
  __device__ char* keys(int buffer) const { return shared() + kQueryBytes + buffer * kPageBytes; }
  __device__ char* values(int buffer) const { return keys(buffer) + kPageSlots * kLine; }
  __device__ char* weights(int step, int part) const { return keys(kTileBuffers) + (step * 2 + part) * 32 * 16; }
  __device__ float* tops() const { return reinterpret_cast<float*>(keys(kTileBuffers) + kWeightBytes); }  // (warps, queries)
  __device__ float* totals() const { return tops() + kTileWarps * kTileQueries; }

  // Tile `tile` of all queries, for the rows that share chunks; or of one row's, if it goes alone.
  __device__ AttentionTile(const Attention& op_, uint32_t kv_head_, uint32_t group_, uint32_t tile, bool alone_)
      : op(op_), kv_head(kv_head_), group(group_), alone(alone_) {
    warp = static_cast<int>(threadIdx.x / 32);
    lane = static_cast<int>(threadIdx.x % 32);
    g = lane / 4;
    t = lane % 4;
    const auto all = static_cast<uint32_t>(op.out.rows) * group;
    if (alone) {
      const uint32_t a_row = tiles_of_row(group);
      first = tile / a_row * group + tile % a_row * kTileQueries;
      last = (tile / a_row + 1) * group;
    } else {
      first = tile * kTileQueries;
      last = all;
    }
    if (first > all) first = all;
    if (last > first + kTileQueries) last = first + kTileQueries;
    if (last > all) last = all;
    if (first == last) return;
    // All that it has to know is asked for at once: each answer takes longer than a page.
    const AttentionRows& a = op.rows;
    const uint32_t top_row = first / group;
    const int64_t seq = a.seq[top_row], behind = a.tail_len ? a.tail_len[top_row] : 0, offset = a.tail_len ? a.tail_offset[top_row] : 0;
    ctx = a.ctx_len[top_row];
    int32_t own[2], tiles[2], end_of[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const uint32_t q = first + g + 8 * half < last ? first + g + 8 * half : last - 1;
      row_of[half] = q / group;
      own[half] = a.seq[row_of[half]];
      tiles[half] = a.seq[q / kTileQueries * kTileQueries / group];  // a tile is its first row's sequence's
      end_of[half] = a.ctx_len[row_of[half]];
      const float* from = row(op.q, row_of[half]) + (kv_head * group + q - row_of[half] * group) * kDim + 2 * t;
#pragma unroll
      for (int i = 0; i < kAsked; ++i)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          if (const int step = warp + i * kTileWarps; step < kSteps) asked[i][half][e] = from[step * 16 + e / 2 * 8 + e % 2];
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) shared_end[half] = own[half] == tiles[half] ? end_of[half] : 0;
    pages = a.pages + seq * a.page_stride;
    tail = a.tail_len ? a.tail_slots + offset : nullptr;
    length = ctx + behind;
  }
  // Blocks of a row that goes alone.
  AERIE_HOST_DEVICE static constexpr uint32_t tiles_of_row(uint32_t group) { return (group + kTileQueries - 1) / kTileQueries; }

  // Takes a chunk; false: no row of the tile does. The same for the whole block.
  __device__ bool take(int64_t from, int64_t to) {
    begin = from;
    end = to;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const bool shares = shared_end[half] >= end;
      mine[half] = first + g + 8 * half < last && (alone ? !shares && length > begin : shares);
      top[half] = -kInf, total[half] = 0;
    }
    if (alone && length < end) end = length;
    for (auto& o : out)
      for (float& v : o) v = 0;
    return warp_any(mine[0] || mine[1]);  // each warp has all 16
  }
  // Will it take a chunk that begins there or later?
  __device__ bool done_before(int64_t from) const {
    return alone ? length <= from : !warp_any(shared_end[0] > from || shared_end[1] > from);
  }

  // The queries as fragments of mma: word r of lane (g, t) of a step is elements 2 t + 8 (r / 2) and the next of query
  // g + 8 (r % 2).
  __device__ void put_queries() const {
#pragma unroll
    for (int i = 0; i < kAsked; ++i) {
      const int step = warp + i * kTileWarps;
      if (step >= kSteps) break;
      uint32_t high[4], low[4];
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        uint32_t h[2], l[2];
#pragma unroll
        for (int e = 0; e < 2; ++e) split_bf16(first + g + 8 * (r % 2) < last ? asked[i][r % 2][r / 2 * 2 + e] : 0.0f, &h[e], &l[e]);
        high[r] = h[0] | h[1] << 16;
        low[r] = l[0] | l[1] << 16;
      }
      query(step, 0)[lane] = make_uint4(high[0], high[1], high[2], high[3]);
      query(step, 1)[lane] = make_uint4(low[0], low[1], low[2], low[3]);
    }
  }

  // The first slot of the page at position `at`; -1: its slots are here and there.
  __device__ int64_t page_of(int64_t at) const {
    if (at >= end) return -1;
    // What rows share lies in pages, whatever the first row's context is.
    return !alone || at + kPageSlots <= ctx ? int64_t{pages[at / kPageSlots]} * kPageSlots : -1;
  }
  // That page, on its way to a buffer.
  __device__ void load(int64_t at, int64_t page, int buffer) const {
    constexpr int kPieces = kDim / 8, kLines = kTileWarps * 32 / kPieces;  // 16 bytes each; positions at once
    const int first_line = static_cast<int>(threadIdx.x) / kPieces, piece = static_cast<int>(threadIdx.x) % kPieces;
    if (at < end && first_line < kLines) {
      const KvCache& c = op.cache;
      const auto* of = static_cast<const uint16_t*>(c.data) + piece * 8;
      const int64_t key = kv_row(c, op.layer, 0, kv_head, 0), value = kv_row(c, op.layer, 1, kv_head, 0);
      char* to = keys(buffer) + piece * 16;
#pragma unroll
      for (int j = first_line; j < kPageSlots; j += kLines) {
        const int64_t p = at + j;
        const bool seen = p < end;
        int64_t slot = page + j;
        if (page < 0 && seen) slot = p < ctx ? int64_t{pages[p / kPageSlots]} * kPageSlots + p % kPageSlots : tail[p - ctx];
        copy_async16(to + j * kLine, of + (seen ? (key + slot) * kDim : 0), seen);
        copy_async16(to + j * kLine + (values(0) - keys(0)), of + (seen ? (value + slot) * kDim : 0), seen);
      }
    }
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
    for (int i = 0; i < 4; ++i) s[i] = (high[i] + low[i]) * op.scale;
  }

  // The page at position `at`. All threads of the block.
  __device__ void attend(int64_t at, int buffer) {
    float s[4];
    scores(buffer, s);
    const int64_t seen = end - (at + 8 * warp + 2 * t);
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
      keep[half] = exp_own(before - now);
      top[half] = now;
#pragma unroll
      for (int e = 0; e < 2; ++e) weight[e] = e < seen ? exp_own(s[2 * half + e] - now) : 0.0f;
      float sum = weight[0] + weight[1];
      sum += shuffle_xor(sum, 1);
      sum += shuffle_xor(sum, 2);
      if (t == 0) totals()[warp * kTileQueries + g + 8 * half] = sum;
      uint32_t h[2], l[2];
#pragma unroll
      for (int e = 0; e < 2; ++e) split_bf16(weight[e], &h[e], &l[e]);
      // As a fragment: word half + 2 (warp % 2) of step warp / 2.
      const int word = lane * 4 + half + 2 * (warp % 2);
      reinterpret_cast<uint32_t*>(weights(warp / 2, 0))[word] = h[0] | h[1] << 16;
      reinterpret_cast<uint32_t*>(weights(warp / 2, 1))[word] = l[0] | l[1] << 16;
    }
    sync_block();
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float* sums = totals() + g + 8 * half;
      total[half] = total[half] * keep[half] +
                    (((sums[0] + sums[kTileQueries]) + sums[2 * kTileQueries]) + sums[3 * kTileQueries]);
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

  // All threads of the block, of which one or more has a query. `fresh`: the queries are not there yet.
  __device__ void run(bool fresh) {
    const int64_t page = page_of(begin), next = page_of(begin + kPageSlots);
    load(begin, page, 0);
    load(begin + kPageSlots, next, 1);
    if (fresh) put_queries();
    int buffer = 0;
    for (int64_t at = begin; at < end; at += kPageSlots, buffer = 1 - buffer) {
      if (at == begin) copy_async_wait<1>();
      else copy_async_wait<0>();
      sync_block();  // the page is here for all, and the one before has been used by all; at first, the queries are there
      if (at > begin) load(at + kPageSlots, page_of(at + kPageSlots), 1 - buffer);
      attend(at, buffer);
    }
    copy_async_wait<0>();
  }

  // To `partial`, (rows, heads, chunks, dim + 2): maximum, total, values.
  __device__ void store(float* partial, int64_t chunks, int64_t chunk) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (!mine[half]) continue;
      const uint32_t head = kv_head * group + (first + g + 8 * half - row_of[half] * group);
      float* to = partial + ((int64_t{row_of[half]} * op.heads + head) * chunks + chunk) * (kDim + 2);
      if (warp == 0 && t == 0) to[0] = top[half], to[1] = total[half];
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile)
        *reinterpret_cast<float2*>(to + 2 + (warp * kTiles + tile) * 8 + 2 * t) = make_float2(out[tile][2 * half], out[tile][2 * half + 1]);
    }
  }
};

}  // namespace aerie::kernels::cuda

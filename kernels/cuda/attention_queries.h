// Tiles of attention over a bf16 cache: 16 queries of a kv head, which are the rows of one mma. Who they are, which chunks of
// positions they go through, and where what they look at lies.
//
// Query i of a kv head is head i % group of row i / group. Several tiles of queries may be company: they share pages. Rows that
// see a chunk whole, in pages of the company's sequence (its first row's), go through it together; a row that sees a part of
// it, or has ancestors there, goes alone: nobody meets another's NaN. Which of the two it is changes no bit of a row.
#pragma once

#include "kernels/cuda/attention_math.h"
#include "kernels/cuda/attention_shape.h"
#include "kernels/cuda/kv.h"

namespace aerie::kernels::cuda {

constexpr int kTileQueries = 16;

// x / n, where x n is below 2^32.
struct Divisor {
  uint32_t n;
  uint64_t inverse;
  explicit Divisor(int64_t n_) : n(static_cast<uint32_t>(n_)), inverse(((uint64_t{1} << 32) + n - 1) / n) {}
  AERIE_HOST_DEVICE friend uint32_t operator/(uint32_t x, const Divisor& d) { return static_cast<uint32_t>(x * d.inverse >> 32); }
};

// As a warp knows them; lane (g, t) = (lane / 4, lane % 4) has queries g and g + 8, as mma has it.
template <int kDim, int kCompany>
struct TileQueries {
  static constexpr int kSteps = kDim / 16;
  static constexpr int kLine = kDim * 2 + 16;  // bytes of a position in shared memory: lanes read eight at once, without conflicts
  static constexpr int kLinesBytes = kPageSlots * kLine;  // keys or values of a page

  const Attention& op;
  const Divisor& group;
  uint32_t kv_head, first, last;  // queries
  bool alone;                            // all are one row's
  int warp, lane, g, t;
  uint32_t row_of[2];
  int32_t first_chunk, chunk_end;  // that are gone through, by all of a company
  const int32_t *pages, *tail;
  // Of the chunk: its positions, the ids of its pages (lane i: of page i), and do this lane's queries take part?
  int32_t begin, end, page_ids;
  bool mine[2];

  AERIE_HOST_DEVICE static constexpr uint32_t tiles_of_row(uint32_t group) { return (group + kTileQueries - 1) / kTileQueries; }
  // Chunks that lie before position n, whole.
  __device__ static int32_t whole_chunks(int32_t n) { return static_cast<int32_t>(chunks_of(int64_t{n} + 1)) - 1; }

  // Tile `tile` of all queries, for the rows that go together; or of a row's, if it goes alone.
  __device__ TileQueries(const Attention& op_, const Divisor& group_, uint32_t kv_head_, uint32_t tile, bool alone_)
      : op(op_), group(group_), kv_head(kv_head_), alone(alone_) {
    warp = static_cast<int>(threadIdx.x / 32);
    lane = static_cast<int>(threadIdx.x % 32);
    g = lane / 4;
    t = lane % 4;
    const uint32_t all = static_cast<uint32_t>(op.out.rows) * group.n;
    first = tile * kTileQueries;
    last = all;
    if (alone) {
      const uint32_t a_row = tiles_of_row(group.n), r = a_row == 1 ? tile : tile / a_row;
      first = r * group.n + (tile - r * a_row) * kTileQueries;
      last = (r + 1) * group.n;
    }
    if (first > all) first = all;
    if (last > first + kTileQueries) last = first + kTileQueries;
    if (last > all) last = all;
    first_chunk = chunk_end = 0;
    const uint32_t leader = alone ? first : tile * kTileQueries / kCompany * kCompany;  // whose pages are looked at
    if (leader >= all) return;
    // All that is to be known is asked for at once: each answer takes longer than a page.
    const AttentionRows& a = op.rows;
    const uint32_t top_row = leader / group;
    const int64_t seq = a.seq[top_row];
    const int32_t behind = a.tail_len ? a.tail_len[top_row] : 0, offset = a.tail_len ? a.tail_offset[top_row] : 0;
    ctx = a.ctx_len[top_row];
    int32_t own[2], theirs[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const uint32_t q = first + g + 8 * half < last ? first + g + 8 * half : last - 1;
      row_of[half] = q / group;
      own[half] = a.seq[row_of[half]];
      theirs[half] = a.seq[q / kCompany * kCompany / group];
      shared_end[half] = a.ctx_len[row_of[half]];
    }
    int32_t longest = 0;  // of the company
    if (!alone) {
      constexpr int kAsked = (kCompany + 31) / 32;
      int32_t whose[kAsked], far[kAsked];
#pragma unroll
      for (int i = 0; i < kAsked; ++i) {
        uint32_t q = leader + (lane + 32 * i) % kCompany;
        if (q >= all) q = leader;
        whose[i] = a.seq[q / group];
        far[i] = a.ctx_len[q / group];
      }
#pragma unroll
      for (int i = 0; i < kAsked; ++i)
        if (whose[i] == seq && far[i] > longest) longest = far[i];
      longest = warp_max(longest);
    }
#pragma unroll
    for (int half = 0; half < 2; ++half)
      if (own[half] != theirs[half]) shared_end[half] = 0;
    pages = a.pages + seq * a.page_stride;
    tail = a.tail_len ? a.tail_slots + offset : nullptr;
    length = ctx + behind;
    if (alone) {
      first_chunk = -warp_max(-whole_chunks(shared_end[0] < shared_end[1] ? shared_end[0] : shared_end[1]));
      chunk_end = static_cast<int32_t>(chunks_of(length));
    } else {
      chunk_end = whole_chunks(longest);
    }
  }

  __device__ void take(int32_t chunk) {
    begin = static_cast<int32_t>(chunk_begin(chunk));
    end = static_cast<int32_t>(chunk_begin(chunk + 1));
#pragma unroll
    for (int half = 0; half < 2; ++half) mine[half] = first + g + 8 * half < last && alone == (shared_end[half] < end);
    if (alone && length < end) end = length;
    const int32_t at = begin + lane * kPageSlots;
    page_ids = at < end && (!alone || at < ctx) ? pages[at / kPageSlots] : 0;
  }

  // The slot of this lane's position of the page at `at`; -1: nothing is seen there. What rows share lies in pages, whatever
  // the first row's context is.
  __device__ int32_t slot_of(int32_t at) const {
    const int32_t p = at + lane, page = shuffle(page_ids, (at - begin) / kPageSlots % 32);
    if (p >= end) return -1;
    return !alone || p < ctx ? page * kPageSlots + lane : tail[p - ctx];
  }
  // Keys (`which` 0) or values (1) of the page with these slots, on their way to shared memory. By kWarps warps, of which this
  // is number `me`.
  template <int kWarps>
  __device__ void bring(int64_t which, int32_t slot, char* to, int me) const {
    constexpr int kPieces = kDim / 8, kLines = 32 / kPieces;  // 16 bytes each; positions at once, of a warp
    const int line = lane / kPieces, piece = lane % kPieces;
    const auto* from = static_cast<const uint16_t*>(op.cache.data) + kv_row(op.cache, op.layer, which, kv_head, 0) * kDim + piece * 8;
#pragma unroll 4
    for (int i = 0; i < kPageSlots / (kLines * kWarps); ++i) {
      const int j = (i * kWarps + me) * kLines + line;
      const int32_t s = shuffle(slot, j % 32);
      if (line < kLines) copy_async16(to + j * kLine + piece * 16, from + (s < 0 ? 0 : int64_t{s} * kDim), s >= 0);
    }
  }

  // The same of a page that is there whole: of what rows share all are.
  __device__ int32_t page_of(int32_t at) const { return shuffle(page_ids, (at - begin) / kPageSlots % 32); }
  template <int kWarps>
  __device__ void bring_page(int64_t which, int32_t page, char* to, int me) const {
    constexpr int kPieces = kDim / 8, kLines = 32 / kPieces;
    const int line = me * kLines + lane / kPieces, piece = lane % kPieces;
    const auto* from = static_cast<const uint16_t*>(op.cache.data) +
                       (kv_row(op.cache, op.layer, which, kv_head, int64_t{page} * kPageSlots) + line) * kDim + piece * 8;
    if (lane >= kLines * kPieces) return;
#pragma unroll
    for (int i = 0; i < kPageSlots / (kLines * kWarps); ++i)
      copy_async16(to + (i * kWarps * kLines + line) * kLine + piece * 16, from + i * kWarps * kLines * kDim);
  }

  // Is any of queries g + 8 there? The same for all lanes: often one row's are not so many, and half of the work is left out.
  __device__ bool second() const { return last > first + 8; }

  // This lane's elements of queries g (0) and g + 8 (1) in a step: 2 t, 2 t + 1, 2 t + 8 and 2 t + 9.
  __device__ void ask(int step, float (&x)[2][4]) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const uint32_t q = first + g + 8 * half < last ? first + g + 8 * half : last - 1;
      if (half == 1 && !second()) break;
      const float* from = row(op.q, row_of[half]) + (kv_head * group.n + q - row_of[half] * group.n) * kDim + 2 * t + step * 16;
#pragma unroll
      for (int e = 0; e < 4; ++e) x[half][e] = from[e / 2 * 8 + e % 2];
    }
  }
  // They as fragments of mma: word r of a lane is elements 2 t + 8 (r / 2) and the next of query g + 8 (r % 2), as the sum of
  // two bf16.
  __device__ void split(const float (&x)[2][4], uint32_t (&high)[4], uint32_t (&low)[4]) const {
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      high[r] = low[r] = 0;
      if (r % 2 == 1 && !second()) continue;
      const bool there = first + g + 8 * (r % 2) < last;
      split_any_pair(there ? x[r % 2][r / 2 * 2] : 0.0f, there ? x[r % 2][r / 2 * 2 + 1] : 0.0f, &high[r], &low[r]);
    }
  }

  // Of query g + 8 half in `partial`, (rows, heads, chunks, dim + 2): maximum, total, values.
  __device__ float* part_of(float* partial, int64_t chunks, int64_t chunk, int half) const {
    const uint32_t head = kv_head * group.n + (first + g + 8 * half - row_of[half] * group.n);
    return partial + ((int64_t{row_of[half]} * op.heads + head) * chunks + chunk) * (kDim + 2);
  }

 private:
  int32_t ctx, length;    // of the first row
  int32_t shared_end[2];  // how far this lane's rows go with their company
};

}  // namespace aerie::kernels::cuda

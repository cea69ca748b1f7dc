// How attention is cut, by absolute positions alone. A chunk is one block's: short ones at first, so that a short context
// still fills the device, half spans later. A span's chunks are merged in ascending order, then the spans (ops.h).
#pragma once

#include "kernels/ops.h"
#include "kernels/scalar_math.h"

namespace aerie::kernels::cuda {

constexpr int64_t kTailMost = 256;  // positions of a tail that may lie behind the page table's end

AERIE_HOST_DEVICE inline int64_t chunk_begin(int64_t c) {
  if (c < 16) return 64 * c;
  if (c < 40) return kSpanSlots + 128 * (c - 16);
  return 4 * kSpanSlots + 512 * (c - 40);
}
// Chunks of positions [0, n).
AERIE_HOST_DEVICE inline int64_t chunks_of(int64_t n) {
  if (n <= kSpanSlots) return (n + 63) / 64;
  if (n <= 4 * kSpanSlots) return 16 + (n - kSpanSlots + 127) / 128;
  return 40 + (n - 4 * kSpanSlots + 511) / 512;
}
AERIE_HOST_DEVICE inline int64_t chunk_of(int64_t position) { return chunks_of(position + 1) - 1; }
AERIE_HOST_DEVICE inline int64_t first_chunk_of_span(int64_t s) { return s == 0 ? 0 : s < 4 ? 16 + 8 * (s - 1) : 32 + 2 * s; }

// The positions that row r looks at: [from, length).
struct Seen {
  int32_t from = 0, length;
  AERIE_HOST_DEVICE Seen(const AttentionRows& a, int64_t r) : length(a.ctx_len[r] + (a.tail_len ? a.tail_len[r] : 0)) {
    if (a.window > 0 && a.window < length) from = length - a.window;
  }
  AERIE_HOST_DEVICE bool any(int64_t begin, int64_t end) const { return from < end && begin < length; }
};

}  // namespace aerie::kernels::cuda

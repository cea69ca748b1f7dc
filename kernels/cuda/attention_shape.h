// How attention is cut, by absolute positions alone. A chunk is one block's: short ones at first, so that a short context
// still fills the device, whole spans later. A span's chunks are merged in ascending order, then the spans (ops.h).
#pragma once

#include "kernels/ops.h"
#include "kernels/scalar_math.h"

namespace aerie::kernels::cuda {

constexpr int64_t kChunkMost = kSpanSlots;
constexpr int64_t kTailMost = 256;  // positions of a tail that may lie behind the page table's end

AERIE_HOST_DEVICE inline int64_t chunk_begin(int64_t c) {
  if (c < 8) return 128 * c;
  if (c < 20) return kSpanSlots + 256 * (c - 8);
  return 4 * kSpanSlots + kSpanSlots * (c - 20);
}
// Chunks of positions [0, n).
AERIE_HOST_DEVICE inline int64_t chunks_of(int64_t n) {
  if (n <= kSpanSlots) return (n + 127) / 128;
  if (n <= 4 * kSpanSlots) return 8 + (n - kSpanSlots + 255) / 256;
  return 20 + (n - 4 * kSpanSlots + kSpanSlots - 1) / kSpanSlots;
}
AERIE_HOST_DEVICE inline int64_t first_chunk_of_span(int64_t s) { return s == 0 ? 0 : s < 4 ? 8 + 4 * (s - 1) : 16 + s; }

}  // namespace aerie::kernels::cuda

// What the tiles of Linear share, whatever the target: activations as tiles read them.
#pragma once

#include <cstdint>

#include "kernels/cpu/prefetch.h"
#include "kernels/cpu/unroll.h"
#include "kernels/ops.h"

namespace aerie::kernels::cpu {

// The rows of a tile lie interleaved, so that a tile reads one stream, and no two rows compete for one
// set of the cache. Tile after tile; K (or the blocks) ascending in each; the tile's rows innermost.
struct PackedRows {
  const float* x = nullptr;          // f32, bf16, fp8 weights: [tile][k][row of the tile]
  const void* q = nullptr;           // int8 weights and those of 4 bits: codes, [tile][block][row] (linear_codes-inl.h), zeros behind K
  const int32_t* offsets = nullptr;  // [tile][block][row]: minus the zero point of unsigned codes of weights times the sum of q
  const float* scale = nullptr;      // [tile][row], or [tile][block][row]
  const float* block_sums = nullptr; // q4_1 weights: [tile][block][row]: the sum of q times its scale, what the minimum is multiplied by
  float* sums = nullptr;             // for a matrix unit's sums (linear_matrix.h), which has rows of its own form in q
  const int32_t* from = nullptr;     // the row of x that each is; null: in order
  const int32_t* to = nullptr;       // and that of the outputs
  int64_t out_row(int64_t r) const { return to ? to[r] : r; }
};

// An op's activations, as they are found.
struct FoundRows {
  const float* x;
  int64_t stride;
  const int32_t* from;  // of PackedRows
  const float* operator[](int64_t r) const { return x + (from ? from[r] : r) * stride; }
};

// What a core does at best in a nanosecond: bytes that it reads, multiply-adds.
struct Rates {
  int64_t bytes, floats, integers;
};

constexpr int64_t kLine = 64;

// In two steps (fetching.h) weights come from memory far ahead into the second-level cache, and shortly before they are read into
// the first.
constexpr int64_t kNear = 512;
#define AERIE_FETCH(two_steps, line, far)  \
  do {                                     \
    if constexpr (two_steps) {             \
      AERIE_PREFETCH_L2(far);              \
      AERIE_PREFETCH((line) + kNear);      \
    } else {                               \
      AERIE_PREFETCH(far);                 \
    }                                      \
  } while (0)

// What a tile fetches while it computes, in each of its panels: `rate` bytes for every line that
// it reads, starting `offset` bytes ahead of the panel's first.
struct Ahead {
  int64_t offset, rate;
  bool follow;     // what would lie behind the panel's end is taken from the panel that the next tile reads instead
  bool two_steps;

  // The line of a panel of `bytes` from which on that is so, and how far the jump is for a tile of P panels.
  int64_t turn(int64_t bytes) const { return follow ? (bytes > offset ? (bytes - offset) / kLine : 0) : -1; }
  int64_t jump(int64_t bytes, int64_t panels) const { return (panels - 1) * bytes; }
};

struct LinearTile {
  const Linear* op;
  const PackedRows* x;
  int64_t row;     // the first of the tile's
  int64_t rows;    // that count: a tile may be wider, what it makes of the others is not used
  int64_t packed;  // rows of the tiles before this one, as packed
  int64_t panel;   // the first
  Ahead ahead;
};

}  // namespace aerie::kernels::cpu

// Linear in parts, for ops that look at its outputs while they are in the cache.
#pragma once

#include "kernels/cpu/linear_tile.h"
#include "kernels/cpu/op_kernels.h"

namespace aerie::kernels::cpu {

// The activations as tiles read them, and `room` bytes of scratch for the caller. Where they are not shared every thread makes its
// own, once for all of an op's tasks that it runs; kept: an earlier one of them was here, its bytes are still in the room.
struct PreparedRows {
  PackedRows rows;
  void* room;  // 64-byte aligned
  bool kept;
};
PreparedRows prepare_rows(const Linear& op, int64_t room, Scratch& scratch);

// The same for rows that lie anywhere: from[r], to[r] are those of op.x and op.out that row r is; in so many bytes of the caller's,
// 64-byte aligned. again: they have been packed there, of this op or of one with the same rows, K and type of weights.
int64_t packing_bytes(const Linear& op);
PackedRows pack_rows(const Linear& op, const int32_t* from, const int32_t* to, void* memory, bool again);

// What these make of activations for weights of that type, int8 or of 4 bits, with the instruction set of now.
ActivationCodes activation_codes(DType weights);

// Panels that the tiles take together: tasks are of whole groups of them.
int64_t panels_at_once(const Linear& op);

// Panels [first, last) of op.out.
void linear_range(const Linear& op, int64_t first, int64_t last, const PackedRows& rows);

}  // namespace aerie::kernels::cpu

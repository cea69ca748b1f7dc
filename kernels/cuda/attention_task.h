// What the kernels of attention are told.
#pragma once

#include "kernels/cuda/attention_shape.h"
#include "kernels/cuda/enqueue.h"
#include "kernels/cuda/linear_rows.h"

namespace aerie::kernels::cuda {

struct AttentionTask {
  enum { kInShared = 1 };
  Attention op;
  float* partial;  // (rows, heads, chunks, dim + 2): maximum, total, values
  int64_t chunks;
  Fragments fragments;
};

// Launches what fills `partial` by tensor cores (attention_tile.cu); false: not for such a cache, within a window or under a cap.
// That is a matter of the cache and the layer alone.
bool enqueue_tiles(const AttentionTask& task, const Place& p);
// Launches what makes the op's outputs of it (attention_merge.cu).
void enqueue_merge(const AttentionTask& task, const Place& p);

}  // namespace aerie::kernels::cuda

// What TopK and LinearTopK share: a row's best and sums by blocks of kTopKBlock places, and what becomes of them.
#pragma once

#include "kernels/cuda/enqueue.h"
#include "kernels/cuda/select.h"
#include "kernels/noise_math.h"

namespace aerie::kernels::cuda {

// What is wanted of each row, and where to.
struct BestWanted {
  int64_t rows, places;
  int32_t k, used;
  const int32_t* map;
  const DrawKey* keys;
  int32_t* out_token;
  float* out_logp;
  int64_t every;  // of keys and results

  __device__ int32_t id(int64_t t) const {  // -1: not used
    const int32_t id = t >= places ? -1 : map ? map[t] : static_cast<int32_t>(t);
    return id < used ? id : -1;
  }
  // Null: no noise.
  __device__ const DrawKey* key(int64_t r) const {
    return keys && keys[r * every].temperature > 0 ? keys + r * every : nullptr;
  }
};

struct LogitRange {
  float top;
  float bad;  // 1: has a logit that is not finite
};
struct BlockSum {
  float top, sum;
};

// Rows in parts: `count` ranges of places, each with its k best.
struct BestParts {
  LogitRange* ranges;  // (rows, count)
  BlockSum* sums;      // (rows, blocks)
  uint64_t* best;      // (rows, count, k)
  int64_t count, blocks;
  BestParts(const BestWanted& w, int64_t range, Carve& carve)
      : count((w.places + range - 1) / range), blocks((w.places + kTopKBlock - 1) / kTopKBlock) {
    ranges = carve.take<LogitRange>(w.rows * count);
    sums = carve.take<BlockSum>(w.rows * blocks);
    best = carve.take<uint64_t>(w.rows * count * w.k);
  }
};

// Of a whole row; by all of a block.
__device__ inline LogitRange row_range(const BestParts& parts, int64_t r, float* shared) {
  LogitRange all{-kInf, 0};
  for (int64_t i = threadIdx.x; i < parts.count; i += blockDim.x) {
    const LogitRange x = parts.ranges[r * parts.count + i];
    all = {fmaxf(all.top, x.top), fmaxf(all.bad, x.bad)};
  }
  return {block_max(all.top, shared), block_max(all.bad, shared)};
}

// A temperature so small that the best logit overflows is no temperature.
__device__ inline bool is_noisy(const DrawKey* key, float top) { return key && finite(top / key->temperature); }

// A warp scores the block of places at `first`: lane l those at l, l + 32, ... `noise` may be null.
constexpr int kLanePlaces = kTopKBlock / 32;
template <class LogitAt>
__device__ BlockSum score_block(const BestWanted& w, int64_t first, const DrawKey* noise, const LogitAt& logit_at,
                                uint64_t (&keys)[kLanePlaces]) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  float score[kLanePlaces], top = -kInf;
#pragma unroll
  for (int i = 0; i < kLanePlaces; ++i) {
    const int32_t id = w.id(first + lane + 32 * i);
    score[i] = -kInf;
    if (id >= 0) {
      score[i] = logit_at(lane + 32 * i);
      if (noise)
        score[i] = score[i] / noise->temperature + noise::gumbel(noise->seed, noise->stream, noise->position, id);
    }
    top = fmaxf(top, score[i]);
    keys[i] = id >= 0 ? key_of(score[i], id) : kNoKey;
  }
  top = warp_max(top);
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kLanePlaces; ++i) sum += top == -kInf ? 0.0f : exp_own(score[i] - top);
  return {top, warp_sum(sum)};
}

struct RowMemory {  // shared
  BestMemory best;
  int32_t chosen[kFewBest];
  float reduce[32];
  double sums[32];
};

constexpr int kRowThreads = 256;

// The parts of row r to what is wanted, by a block of kRowThreads.
__device__ inline void merge_row(const BestWanted& w, const BestParts& parts, int64_t r, bool bad, RowMemory& m) {
  const int64_t to = r * w.every * w.k;
  const auto me = static_cast<int>(threadIdx.x);
  if (bad) {
    if (me < w.k) w.out_token[to + me] = -1, w.out_logp[to + me] = -kInf;
    return;
  }
  const uint64_t* keys = parts.best + r * parts.count * w.k;
  if (w.k <= kFewBest && parts.count <= kFewLists) {
    if (me < 32) best_of_lists(parts.count, w.k, [&](int64_t list, int i) { return keys[list * w.k + i]; }, m.best.best, m.chosen);
    sync_block();
  } else {
    select_best(parts.count * w.k, w.k, [&](int64_t i) { return keys[i]; }, m.best);
  }
  const float top = m.best.best[0] == kNoKey ? 0.0f : score_of(m.best.best[0]);
  double sum = 0;
  for (int64_t b = me; b < parts.blocks; b += kRowThreads) {
    const BlockSum x = parts.sums[r * parts.blocks + b];
    sum += static_cast<double>(x.sum) * static_cast<double>(exp_own(x.top - top));
  }
  sum = block_sum(sum, m.sums);
  if (me >= w.k) return;
  const uint64_t key = m.best.best[me];
  w.out_token[to + me] = key == kNoKey ? -1 : id_of(key);
  w.out_logp[to + me] = key == kNoKey ? -kInf : (score_of(key) - top) - log_positive(static_cast<float>(sum));
}
static_assert(kRowThreads >= kMaxTopK);

// TopK of logits (w.rows, w.places), rows `stride` apart.
size_t topk_workspace(const BestWanted& w);
void enqueue_topk(const float* logits, int64_t stride, const BestWanted& w, const Place& p);

inline const char* refuse_k(int32_t k) { return k > kMaxTopK ? "k is larger than 128" : nullptr; }

}  // namespace aerie::kernels::cuda

// Row kernels of the drawing ops: vectors over one row of logits or scores. Plain arithmetic without
// FMA, so every ISA gives the same bits.
#pragma once

#include <cstdint>
#include <limits>

namespace aerie::kernels::cpu {

constexpr float kInf = std::numeric_limits<float>::infinity();

struct Candidate {
  float score;
  int32_t id;
};
// Best first, ties to the lower id.
inline bool better(const Candidate& a, const Candidate& b) {
  return a.score != b.score ? a.score > b.score : a.id < b.id;
}

struct NoiseKey {
  uint64_t seed, stream;
  int64_t position;
};

// out[i] = G(key, first + i), i < n; writes up to the next multiple of 64. first: a multiple of 64.
void gumbel_row(const NoiseKey& key, int64_t first, int64_t n, float* out);
// out[i] = G(key, ids[i]), i < n; reads and writes up to the next multiple of 16.
void gumbel_ids(const NoiseKey& key, const int32_t* ids, int64_t n, float* out);
// argmax of logit / temperature + G, ties to the lowest id. `best`: the id of the largest logit.
int32_t draw_row(const float* logits, int64_t n, float temperature, const NoiseKey& key, int32_t best);
// The largest value and its lowest index; false if any is NaN or +inf. All -inf: id -1.
bool max_row(const float* x, int64_t n, Candidate* best);
// Are all finite? top: then the largest; -inf of none.
bool finite_row(const float* x, int64_t n, float* top);
// out[t] = logits[t], -inf where map[t] cannot be drawn. Are those that can all finite? top: then the largest; -inf of
// none. out may be logits.
bool used_logits(const float* logits, const int32_t* map, int32_t used, int64_t n, float* out, float* top);
// Sum of exp(x[i] - top).
float sum_exp_row(const float* x, int64_t n, float top);
// The same of every kTopKBlock values, relative to their own largest. All -inf: a sum of 0.
struct BlockSum {
  float top;
  float sum;
};
void sum_exp_blocks(const float* x, int64_t n, BlockSum* out);
// out[i] = x[i] / temperature (+ noise[i])
void scale_row(const float* x, float temperature, const float* noise, int64_t n, float* out);
// Appends (x[i], i) with x[i] >= threshold to `out` from index `from` on until `capacity` could
// overflow; returns where to go on (n: all seen).
int64_t collect_row(const float* x, int64_t from, int64_t n, float threshold, Candidate* out, int64_t* count,
                    int64_t capacity);
constexpr int64_t kCollectSlack = 16;  // collect_row stops when fewer places are left

}  // namespace aerie::kernels::cpu

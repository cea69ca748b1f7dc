// Mixtures of experts: which experts a row takes, and what they give together. The bits are those of the host's route_row: a warp finds
// each of the best together, and no sum is cut into parts.
#include "kernels/cuda/enqueue.h"
#include "kernels/cuda/warp.h"
#include "kernels/route_math.h"

namespace aerie::kernels::cuda {
namespace {

constexpr int kCombineThreads = 256;
static_assert(kMaxExpertsUsed <= 32);  // a lane has one

struct Candidate {
  float key = 0;
  int32_t expert = -1;  // none
  __device__ bool before(const Candidate& b) const {
    return expert >= 0 && (b.expert < 0 || comes_before(key, expert, b.key, b.expert));
  }
};
__device__ Candidate first_of_warp(Candidate best) {
  for (int mask = 16; mask > 0; mask /= 2) {
    const Candidate other{shuffle_xor(best.key, mask), shuffle_xor(best.expert, mask)};
    if (other.before(best)) best = other;
  }
  return best;
}

// In place of (n) logits the scores of all: their softmax, if not sigmoids.
__device__ void make_scores(const Route& op, int32_t lane, int32_t n, float* logits) {
  float top = -kInf, sum = 0;  // of every lane the same
  if (!op.sigmoid) {
    for (int32_t e = 0; e < n; ++e) top = logits[e] > top ? logits[e] : top;
    sync_warp();
  }
  for (int32_t e = lane; e < n; e += 32) logits[e] = op.sigmoid ? sigmoid(logits[e]) : exp_own(logits[e] - top);
  sync_warp();
  if (op.sigmoid) return;
  for (int32_t e = 0; e < n; ++e) sum += logits[e];
  sync_warp();
  for (int32_t e = lane; e < n; e += 32) logits[e] = logits[e] / sum;
  sync_warp();
}

// A block of one warp for each row.
__device__ void route(const Route& op) {
  const int64_t r = blockIdx.x;
  if (r >= op.logits.rows) return;
  const auto lane = static_cast<int32_t>(threadIdx.x), n = static_cast<int32_t>(op.logits.cols);
  const bool by_scores = op.sigmoid || op.choice;
  auto *logits = shared_memory<float>(), *keys = by_scores ? logits + n : logits;  // (n) each; logits become their exp, or scores
  const float* in = row(op.logits, r);
  bool fine = true;
  for (int32_t e = lane; e < n; e += 32) {
    logits[e] = in[e];
    fine = fine && finite(logits[e]);
  }
  const bool all_fine = !warp_any(!fine);
  sync_warp();
  if (by_scores) {
    make_scores(op, lane, n, logits);
    for (int32_t e = lane; e < n; e += 32) keys[e] = op.choice ? logits[e] + row(op.choice, 0)[e] : logits[e];
  }
  Candidate mine, last;  // lane i: the i-th
  for (int32_t i = 0; i < op.k && all_fine; ++i) {
    Candidate best;
    for (int32_t e = lane; e < n; e += 32) {
      const Candidate c{keys[e], e};
      if ((i == 0 || last.before(c)) && c.before(best)) best = c;
    }
    last = first_of_warp(best);
    if (lane == i) mine = last;
  }
  float own, sum = 0;  // the sum is of every lane the same
  if (by_scores) {
    own = mine.expert >= 0 ? logits[mine.expert] : 0.0f;
    for (int32_t i = 0; i < op.k; ++i) sum += shuffle(own, i);
    sum += kLeastScores;
  } else {
    const float top = shuffle(mine.key, 0);
    own = exp_own(mine.key - top);
    if (op.normed) {
      for (int32_t i = 0; i < op.k; ++i) sum += shuffle(own, i);
    } else {
      for (int32_t e = lane; e < n; e += 32) logits[e] = exp_own(logits[e] - top);
      sync_warp();
      for (int32_t e = 0; e < n; ++e) sum += logits[e];
    }
  }
  if (lane >= op.k) return;
  const float weight = (by_scores && !op.normed ? own : own / sum) * op.scale * (mine.expert >= 0 ? gain_of(op, mine.expert) : 1.0f);
  op.experts[r * op.k + lane] = all_fine ? mine.expert : lane;
  row(op.weights, r)[lane] = all_fine ? weight : std::numeric_limits<float>::quiet_NaN();
}

// Grid (columns, rows).
__device__ void combine_experts(const CombineExperts& op) {
  const int64_t c = static_cast<int64_t>(blockIdx.x) * kCombineThreads + threadIdx.x, k = op.weights.cols;
  if (c >= op.out.cols) return;
  for (int64_t r = blockIdx.y; r < op.out.rows; r += gridDim.y) {
    const float* weights = row(op.weights, r);
    float sum = 0;
    for (int64_t i = 0; i < k; ++i) {
      const float part = weights[i] * row(op.x, r * k + i)[c];
      sum = i == 0 ? part : sum + part;
    }
    row(op.out, r)[c] = sum;
  }
}

}  // namespace

template <>
const char* refuse(const Route& op) {
  return op.logits.cols > kMaxExperts || op.k > kMaxExpertsUsed ? "more experts than it knows" : nullptr;
}

void enqueue(const Route& op, const Place& p) {
  launch<route, 32>(p, {bucket(op.logits.rows)}, 32, static_cast<size_t>(op.logits.cols) * (op.sigmoid || op.choice ? 2 : 1) * sizeof(float), op);
}
void enqueue(const CombineExperts& op, const Place& p) {
  launch<combine_experts>(p, {(op.out.cols + kCombineThreads - 1) / kCombineThreads, many_rows(op.out.rows)}, kCombineThreads, 0, op);
}

}  // namespace aerie::kernels::cuda

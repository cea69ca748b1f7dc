// The exact second look of a candidate head. LinearRows lets Linear compute the panel that a row is in, so
// that the bits are Linear's whatever tiles it uses; a panel lies end to end, reading one row of it would
// touch all of its cache lines anyway.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/draw.h"
#include "kernels/cpu/op_kernels.h"
#include "kernels/scalar_math.h"

namespace aerie::kernels::cpu {
namespace {

constexpr int64_t kIdsPerTask = 8;

int64_t tasks_a_row(const LinearRows& op) { return (op.out.cols + kIdsPerTask - 1) / kIdsPerTask; }

// TopK's score; `noisy`: with temperature and noise.
float score_of(float logit, int32_t id, const DrawKey* key, bool noisy) {
  return noisy ? logit / key->temperature + gumbel(key->seed, key->stream, key->position, id) : logit;
}

}  // namespace

int32_t tasks(const LinearRows& op, int) { return static_cast<int32_t>(op.out.rows * tasks_a_row(op)); }

void run(const LinearRows& op, int32_t task, int, Scratch& scratch) {
  const int64_t r = task / tasks_a_row(op), n = op.out.cols;
  const int64_t first = task % tasks_a_row(op) * kIdsPerTask, last = std::min(n, first + kIdsPerTask);
  float* out = static_cast<float*>(op.out.data) + r * op.out.stride;
  alignas(64) float lanes[kPanel];
  Linear panel{rows(op.x, r, 1), {}, {}, {}, matrix(lanes, 1, kPanel)};
  scratch.forget();  // Linear keeps its quantised rows for an op; another task's are of another row
  for (int64_t i = first; i < last; ++i) {
    const int32_t id = op.ids[r * n + i];
    out[i] = 0;
    if (id < 0) continue;
    panel.w = panels(op.w, id / kPanel, 1);
    run(panel, 0, 1, scratch);
    out[i] = lanes[id % kPanel];
  }
}

int32_t tasks(const Rescore& op, int) { return static_cast<int32_t>(op.exact.rows); }

void run(const Rescore& op, int32_t r, int, Scratch&) {
  const int64_t n = op.exact.cols;
  const int32_t* ids = op.ids + r * n;
  const float* seen = op.logp + r * n;
  const float* exact = static_cast<const float*>(op.exact.data) + r * op.exact.stride;
  const float* approx = static_cast<const float*>(op.approx.data) + r * op.approx.stride;
  int32_t* token = op.out_token + int64_t{r} * op.k;
  float* logp = op.out_logp + int64_t{r} * op.k;
  std::fill(token, token + op.k, -1);
  std::fill(logp, logp + op.k, -kInf);
  const int64_t have = std::find(ids, ids + n, -1) - ids;
  if (have == 0) return;
  const DrawKey* key = op.keys && op.keys[r].temperature > 0 ? &op.keys[r] : nullptr;
  bool noisy = key != nullptr;  // as in TopK, not with a temperature so small that a logit overflows
  for (int64_t i = 0; i < have; ++i) {
    if (!(std::fabs(exact[i]) < kInf)) return;
    noisy = noisy && std::fabs(exact[i] / key->temperature) < kInf && std::fabs(approx[ids[i]] / key->temperature) < kInf;
  }
  Candidate c[kMaxTopK];
  for (int64_t i = 0; i < have; ++i) c[i] = {score_of(exact[i], ids[i], key, noisy), ids[i]};
  std::sort(c, c + have, better);
  // TopK's logp is score - logsumexp, which gives the sum back; what of it was not these ids' stays.
  const float log_total = score_of(approx[ids[0]], ids[0], key, noisy) - seen[0];
  double rest = 1, sum = 0;
  for (int64_t i = 0; i < have; ++i) {
    rest -= static_cast<double>(exp_own(seen[i]));
    sum += static_cast<double>(exp_own(c[i].score - c[0].score));
  }
  if (rest > 0) sum += rest * static_cast<double>(exp_own(std::min(log_total - c[0].score, 80.0f)));
  const float log_sum = log_positive(static_cast<float>(sum));
  for (int64_t i = 0; i < std::min<int64_t>(op.k, have); ++i) {
    token[i] = c[i].id;
    logp[i] = (c[i].score - c[0].score) - log_sum;
  }
}

}  // namespace aerie::kernels::cpu

// The last of a candidate head: the best of n by exact score. (LinearRows is in linear.cu.)
#include "kernels/cuda/enqueue.h"
#include "kernels/cuda/select.h"
#include "kernels/noise_math.h"

namespace aerie::kernels::cuda {
namespace {

struct RescoreMemory {  // shared
  float reduce[32];
  double sums[32];
  float score[kMaxTopK];
  int32_t id[kMaxTopK];
  float approx;  // of the first id
};

// One block of kMaxTopK threads a row: thread i has candidate i.
__device__ void rescore(const Rescore& op) {
  RescoreMemory& m = *shared_memory<RescoreMemory>();
  const int64_t r = blockIdx.x, n = op.exact.cols;
  if (r >= op.exact.rows) return;
  const auto me = static_cast<int>(threadIdx.x);
  const int32_t* ids = op.ids + r * n;
  const DrawKey* key = op.keys && op.keys[r].temperature > 0 ? op.keys + r : nullptr;
  // Ids end at the first that is none.
  const float end = -block_max(me < n && ids[me] < 0 ? static_cast<float>(-me) : static_cast<float>(-n), m.reduce);
  const int64_t have = static_cast<int64_t>(end);
  const bool mine = me < have;
  const float exact = mine ? row(op.exact, r)[me] : 0.0f, approx = mine ? row(op.approx, r)[ids[me]] : 0.0f;
  const bool bad = block_max(finite(exact) ? 0.0f : 1.0f, m.reduce) != 0.0f;
  // As in TopK, not with a temperature so small that a logit overflows.
  const bool overflows = key && !(finite(exact / key->temperature) && finite(approx / key->temperature));
  const bool noisy = key && block_max(overflows ? 1.0f : 0.0f, m.reduce) == 0.0f;
  const float gumbel = mine && noisy ? noise::gumbel(key->seed, key->stream, key->position, ids[me]) : 0.0f;
  const float score = !mine ? -kInf : noisy ? exact / key->temperature + gumbel : exact;
  m.score[me] = score;
  m.id[me] = mine ? ids[me] : -1;
  if (me == 0) m.approx = noisy ? approx / key->temperature + gumbel : approx;
  sync_block();
  int place = 0;
  float top = -kInf;
  for (int i = 0; i < have; ++i) {
    place += m.score[i] > score || (m.score[i] == score && m.id[i] < m.id[me]);
    top = fmaxf(top, m.score[i]);
  }
  // TopK's logp is score - logsumexp, which gives the sum back; what of it was not these ids' stays.
  const float log_total = have > 0 ? m.approx - op.logp[r * n] : 0.0f;
  const double seen = block_sum(mine ? static_cast<double>(exp_own(op.logp[r * n + me])) : 0.0, m.sums);
  double sum = block_sum(mine ? static_cast<double>(exp_own(score - top)) : 0.0, m.sums);
  if (1 - seen > 0) sum += (1 - seen) * static_cast<double>(exp_own(fminf(log_total - top, 80.0f)));
  if (bad || have == 0 || me >= have) place = me;  // places of their own for what is filled with nothing
  if (place >= op.k) return;
  const bool exists = !bad && me < have;
  op.out_token[r * op.k + place] = exists ? m.id[me] : -1;
  op.out_logp[r * op.k + place] = exists ? (score - top) - log_positive(static_cast<float>(sum)) : -kInf;
}

}  // namespace

template <>
const char* refuse(const Rescore& op) {
  return op.exact.cols > kMaxTopK || op.k > op.exact.cols ? "more candidates than 128, or fewer than k" : nullptr;
}

void enqueue(const Rescore& op, const Place& p) {
  launch<rescore>(p, {bucket(op.exact.rows)}, kMaxTopK, sizeof(RescoreMemory), op);
}

}  // namespace aerie::kernels::cuda

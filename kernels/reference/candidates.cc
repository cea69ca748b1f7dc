#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/noise.h"
#include "kernels/reference/reference.h"

namespace aerie::kernels::reference {

void run(const LinearRows& op) {
  const int64_t n = op.out.cols;
  std::vector<float> all(static_cast<size_t>(op.out.rows * op.w.rows));
  const Tensor every = matrix(all.data(), op.out.rows, op.w.rows);
  run(Linear{op.x, op.w, {}, {}, every});
  for (int64_t r = 0; r < op.out.rows; ++r)
    for (int64_t i = 0; i < n; ++i) {
      const int32_t id = op.ids[r * n + i];
      at(op.out, r, i) = id < 0 ? 0.0f : at(every, r, id);
    }
}

void run(const Rescore& op) {
  struct Candidate {
    double score;
    int32_t id;
  };
  const int64_t n = op.exact.cols;
  for (int64_t r = 0; r < op.exact.rows; ++r) {
    const int32_t* ids = op.ids + r * n;
    std::vector<Candidate> c;
    double rest = 1, total = 0;  // total: logsumexp of the approximate scores
    bool good = true, noisy = op.keys && op.keys[r].temperature > 0;
    for (int64_t i = 0; i < n && ids[i] >= 0; ++i) {
      good = good && std::isfinite(at(op.exact, r, i));
      noisy = noisy && std::isfinite(at(op.exact, r, i) / op.keys[r].temperature) &&
              std::isfinite(at(op.approx, r, ids[i]) / op.keys[r].temperature);
    }
    const auto score = [&](float logit, int32_t id) {
      if (!noisy) return logit;
      const DrawKey& k = op.keys[r];
      return logit / k.temperature + gumbel(k.seed, k.stream, k.position, id);
    };
    for (int64_t i = 0; i < n && ids[i] >= 0 && good; ++i) {
      c.push_back({score(at(op.exact, r, i), ids[i]), ids[i]});
      rest -= std::exp(static_cast<double>(op.logp[r * n + i]));
      total = static_cast<double>(score(at(op.approx, r, ids[i]), ids[i])) - static_cast<double>(op.logp[r * n + i]);
    }
    std::sort(c.begin(), c.end(),
              [](const Candidate& a, const Candidate& b) { return a.score != b.score ? a.score > b.score : a.id < b.id; });
    double sum = 0;
    for (const Candidate& x : c) sum += std::exp(x.score - c[0].score);
    if (!c.empty() && rest > 0) sum += rest * std::exp(std::min(total - c[0].score, 80.0));
    for (int64_t i = 0; i < op.k; ++i) {
      const bool exists = static_cast<size_t>(i) < c.size();
      op.out_token[r * op.k + i] = exists ? c[static_cast<size_t>(i)].id : -1;
      op.out_logp[r * op.k + i] =
          exists ? static_cast<float>(c[static_cast<size_t>(i)].score - c[0].score - std::log(sum)) : -INFINITY;
    }
  }
}

}  // namespace aerie::kernels::reference

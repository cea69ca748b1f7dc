#include "core/sampling/distribution.h"

#include <algorithm>
#include <cmath>

namespace aerie {
namespace {

std::span<const float> used(std::span<const float> logits, int32_t vocab_used) {
  return logits.first(std::min(logits.size(), static_cast<size_t>(std::max(vocab_used, 0))));
}

}  // namespace

double Distribution::weight(const Candidate& c) const { return std::exp(static_cast<double>(c.score) - best_); }

// The shortest run of the best candidates whose mass reaches top_p, at least one. Sorts only as far
// as the run goes: a vocabulary has 10^5 ids and the run is mostly a few dozen.
void Distribution::keep_top_p(double top_p) {
  double total = 0;
  for (const Candidate& c : kept_) total += weight(c);
  double above = 0;
  size_t taken = 0, sorted = 0;
  while (taken < kept_.size() && (taken == 0 || above < top_p * total)) {
    if (taken == sorted) {
      sorted = std::min(kept_.size(), std::max<size_t>(64, sorted * 4));
      const auto from = kept_.begin() + static_cast<std::ptrdiff_t>(taken);
      std::partial_sort(from, kept_.begin() + static_cast<std::ptrdiff_t>(sorted), kept_.end(), better);
    }
    above += weight(kept_[taken++]);
  }
  kept_.resize(taken);
}

Status Distribution::compute(std::span<const float> logits, int32_t vocab_used, const kernels::Sampling& sampling,
                             std::span<double> p) {
  logits = used(logits, vocab_used);
  if (p.size() < logits.size()) return error(Code::invalid_argument, "distribution: fewer places than logits");
  std::fill(p.begin(), p.end(), 0.0);

  Candidate top{-INFINITY, -1};
  for (size_t t = 0; t < logits.size(); ++t) {
    const Candidate c{logits[t], static_cast<int32_t>(t)};
    if (std::isnan(c.score) || c.score == INFINITY) return error(Code::device, "a logit is not finite");
    if (c.score != -INFINITY && (top.id < 0 || better(c, top))) top = c;
  }
  if (top.id < 0) return error(Code::device, "no logit is finite");

  // As in the walk: greedy also when the temperature is so small that the best logit overflows.
  const float temperature = sampling.temperature;
  best_ = top.score / temperature;
  if (!(temperature > 0) || !std::isfinite(best_)) {
    p[static_cast<size_t>(top.id)] = 1;
    return {};
  }

  kept_.clear();
  kept_.reserve(logits.size());
  for (size_t t = 0; t < logits.size(); ++t)
    if (const float score = logits[t] / temperature; score != -INFINITY)
      kept_.push_back({score, static_cast<int32_t>(t)});

  if (sampling.top_k > 0 && static_cast<size_t>(sampling.top_k) < kept_.size()) {
    std::nth_element(kept_.begin(), kept_.begin() + sampling.top_k, kept_.end(), better);
    kept_.resize(static_cast<size_t>(sampling.top_k));
  }
  if (sampling.top_p < 1) keep_top_p(sampling.top_p);
  // The best candidate stays even under a min_p above 1.
  if (sampling.min_p > 0) {
    const Candidate best = *std::min_element(kept_.begin(), kept_.end(), better);
    std::erase_if(kept_, [&](const Candidate& c) { return c.id != best.id && weight(c) < sampling.min_p; });
  }

  double total = 0;
  for (const Candidate& c : kept_) total += weight(c);
  for (const Candidate& c : kept_) p[static_cast<size_t>(c.id)] = weight(c) / total;
  return {};
}

double raw_logprob(std::span<const float> logits, int32_t vocab_used, int32_t token) {
  logits = used(logits, vocab_used);
  if (token < 0 || static_cast<size_t>(token) >= logits.size()) return -INFINITY;
  double top = -INFINITY, sum = 0;
  for (const float x : logits) top = std::max<double>(top, x);
  for (const float x : logits) sum += std::exp(x - top);
  return logits[static_cast<size_t>(token)] - top - std::log(sum);
}

}  // namespace aerie

// Distribution: a row of raw logits as probabilities, after temperature and filters, on the host.
// The same law as the draw of kernels::Walk (kernels/ops.h): -inf can never be drawn; temperature,
// then top-k, top-p, min-p in the order of Hugging Face's warpers, each over what the one before it
// left; ties to the lower id. Used by the sampled-draft rule, for the target and for the drafter.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/ops.h"
#include "kernels/status.h"

namespace aerie {

class Distribution {
 public:
  // p[t] for every t < p.size(); 0 from min(vocab_used, logits.size()) on. Temperature <= 0 is a
  // point mass on the best logit. Code::device if a logit is NaN or +inf, or none is finite.
  // Allocates in the first call of a size only.
  Status compute(std::span<const float> logits, int32_t vocab_used, const kernels::Sampling& sampling,
                 std::span<double> p);

 private:
  struct Candidate {
    float score;
    int32_t id;
  };
  static bool better(const Candidate& a, const Candidate& b) {
    return a.score != b.score ? a.score > b.score : a.id < b.id;
  }
  double weight(const Candidate& c) const;
  void keep_top_p(double top_p);

  std::vector<Candidate> kept_;
  float best_ = 0;  // highest score
};

// Log-softmax of the raw logits (temperature 1, no filter) at `token`, as kernels::WalkStep has it.
double raw_logprob(std::span<const float> logits, int32_t vocab_used, int32_t token);

}  // namespace aerie

// The draw of kernels::Walk on the host, for logits that were changed there (core/sampling/logit_rules.h).
#pragma once

#include <span>

#include "kernels/ops.h"

namespace aerie::kernels {

struct HostLogits {
  float top;         // the largest
  float log_total;   // log of the sum of exp(logit - top)
};
// Of a row of raw logits: what log-softmax takes. False: one is NaN or +inf, or none is finite.
bool sum_on_host(std::span<const float> logits, HostLogits* out);

// The token drawn at absolute position `position`, with the bits of Walk on a CPU. -1: as above.
int32_t draw_on_host(std::span<const float> logits, const Sampling& sampling, int64_t position);

}  // namespace aerie::kernels

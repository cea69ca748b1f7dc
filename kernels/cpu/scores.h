// From logits to scores and their logsumexp: what TopK and LinearTopK do alike, so that they give the same bits.
#pragma once

#include <cstdint>

#include "kernels/cpu/draw.h"
#include "kernels/ops.h"

namespace aerie::kernels::cpu {

// A temperature so small that the best logit (top) overflows is no temperature.
bool is_noisy(const DrawKey* key, float top);
// out[t] = x[t] / temperature + G of place first + t, or of map[t]. noise: room for n, rounded up to 64. out may be x.
void noisy_scores(const float* x, int64_t first, const int32_t* map, int64_t n, const DrawKey& key, float* noise,
                  float* out);
// log of the sum of exp(score - top), of the blocks' sums in ascending order.
float log_sum(const BlockSum* sums, int64_t blocks, float top);

}  // namespace aerie::kernels::cpu

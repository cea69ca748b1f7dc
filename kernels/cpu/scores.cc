#include "kernels/cpu/scores.h"

#include <algorithm>
#include <cmath>

#include "kernels/scalar_math.h"

namespace aerie::kernels::cpu {

bool is_noisy(const DrawKey* key, float top) {
  return key && key->temperature > 0 && std::fabs(top / key->temperature) < kInf;
}

void noisy_scores(const float* x, int64_t first, const int32_t* map, int64_t n, const DrawKey& key, float* noise,
                  float* out) {
  const NoiseKey k{key.seed, key.stream, key.position};
  if (map) {
    alignas(64) int32_t ids[64];
    for (int64_t at = 0; at < n; at += 64) {
      for (int64_t i = 0; i < 64; ++i) ids[i] = at + i < n ? std::max(map[at + i], 0) : 0;
      gumbel_ids(k, ids, 64, noise + at);
    }
  } else {
    gumbel_row(k, first, n, noise);
  }
  scale_row(x, key.temperature, noise, n, out);
}

float log_sum(const BlockSum* sums, int64_t blocks, float top) {
  double sum = 0;
  for (int64_t b = 0; b < blocks; ++b)
    sum += static_cast<double>(sums[b].sum) * static_cast<double>(exp_own(sums[b].top - top));
  return log_positive(static_cast<float>(sum));
}

}  // namespace aerie::kernels::cpu

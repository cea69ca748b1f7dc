// The frequencies of rotary pairs that a package's numbers mean.
#pragma once

#include <vector>

#include "core/package/config.h"

namespace aerie {

// 1 / theta^(2i / head_dim) after the config's scaling; head_dim / 2 values. Cos and sin are scaled by attention_factor, too.
// whole_waves: YaRN's ramp goes from one wave to another, as all packages with its parameters mean it; else between waves, too.
std::vector<float> rope_inverse_frequencies(int32_t head_dim, double theta, const RopeScaling& scaling, bool whole_waves = true);

}  // namespace aerie

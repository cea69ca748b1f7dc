// What files of models that YaRN lengthens (arXiv:2309.00071) leave to be computed.
#pragma once

#include <cmath>

#include "core/package/config.h"

namespace aerie {

// The scale of cos and sin (section 3.3; `weight`: DeepSeek's mscale).
inline float yarn_attention_factor(float factor, float weight = 1) {
  return factor <= 1 ? 1 : 0.1f * weight * std::log(factor) + 1;
}

// Positions that are read; 1 where that is absurd, which is refused where configs are checked.
inline int32_t yarn_context(const RopeScaling& s) {
  const double longer = static_cast<double>(s.original_context) * s.factor;
  return longer >= 1 && longer <= 1 << 24 ? static_cast<int32_t>(longer) : 1;
}

}  // namespace aerie

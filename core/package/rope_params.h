// A drafter's RoPE scaling among its parameters: rope_scaling (1 linear, 2 llama3, 3 yarn; absent: none), rope_scaling.factor and,
// for llama3 and yarn, rope_scaling.low_freq_factor, rope_scaling.high_freq_factor and rope_scaling.original_context; for yarn
// rope_scaling.attention_factor.
#pragma once

#include "core/package/config.h"
#include "kernels/status.h"

namespace aerie {

std::vector<DrafterConfig::Param> rope_scaling_params(const RopeScaling& s);

// Checked; messages are "parameter: what".
Result<RopeScaling> read_rope_scaling(const DrafterConfig& c);

}  // namespace aerie

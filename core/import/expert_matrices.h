// How the matrices of a layer's experts lie in a checkpoint: what Sink::experts() reads. Missing and mis-shaped tensors are found before
// the first is read.
#pragma once

#include "core/import/layer.h"

namespace aerie {

// Row of [gates; what they gate] that is row i where these take turns; 2 f rows.
constexpr int64_t row_apart(int64_t i, int64_t f) { return i % 2 * f + i / 2; }

struct ExpertMatrices {
  Sink::Experts gate_ups, downs;  // [gate; up] (2 F, H) of each, and down (H, F)
};
// `take` outlives them.
Result<ExpertMatrices> expert_matrices(TensorTaker& take, const std::string& layer, const ExpertNames& e, const LlamaConfig& c);

// turned_experts.cc. `pairs`: rows of gates and of what they gate take turns.
Result<Sink::Experts> turned_experts(TensorTaker& take, const std::string& name, int64_t experts, int64_t rows, int64_t cols, bool pairs);

}  // namespace aerie

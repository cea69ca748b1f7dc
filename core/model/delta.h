// A recurrent layer (gated delta rule) as ops, in place of a decoder layer's attention; and the order in which rows take their turns.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/kv/state_pool.h"
#include "core/model/plan.h"

namespace aerie {

// H hidden, C channels, V values of its shape. Of a layer that is a convolution and no more: in (3 H, H) = [B; C; x], conv (taps, H), out (H, H).
struct DeltaWeights {
  kernels::Tensor in;     // (C + V, H) = [q; k; v; z]
  kernels::Tensor gates;  // (2 heads, H) = [b; a]
  kernels::Tensor conv;   // (taps, C)
  kernels::Tensor decay;  // (2, heads): kernels::DeltaGates'
  kernels::Tensor norm;   // (1, value_dim)
  kernels::Tensor out;    // (H, V)
  explicit operator bool() const { return static_cast<bool>(in); }
};

// Of all recurrent layers of a model, which are of one shape. q and k, of heads, are made vectors of length 1, and q is divided by sqrt(key_dim): RmsNorm with these weights.
struct DeltaLayers {
  kernels::DeltaShape shape;
  std::shared_ptr<StatePool> states;
  kernels::Tensor q_scale, k_scale;  // (1, key_dim)
};

// What a layer has of a pass's first rows that the states of those which are kept can be made from.
struct DeltaInputs {
  kernels::Tensor x;      // (n, C): [q | k | v] before the convolution
  kernels::Tensor gates;  // (n, 2 heads): kernels::DeltaGates'; of heads, if there are any
  DeltaInputs() = default;
  DeltaInputs(Plan& plan, int64_t n, const kernels::DeltaShape& shape);
};

// Working memory of a layer for n rows; one set serves all layers of a pass.
struct DeltaScratch {
  DeltaInputs inputs;          // where they need not last
  kernels::Tensor qkv;         // (n, C)
  kernels::Tensor z_out;       // (n, 2 V): [z | what comes out]; without heads (n, 3 H): [B | C | x]
  kernels::Tensor raw_gates;   // (n, 2 heads)
  DeltaScratch() = default;
  DeltaScratch(Plan& plan, int64_t n, const kernels::DeltaShape& shape);
};

// Steps of one sequence, whose rows of a pass are first .. first + parents.size() - 1: each row's parent is a row of the pass before it, or
// -1. Appends to `steps`; the number of buffers they take.
int32_t order_delta_steps(int32_t first, std::span<const int32_t> parents, std::vector<kernels::DeltaStep>* steps);

// out = x + what the layer makes of `in`. `at`: of the layer in a state. kept: where its inputs go, of the first rows or all; null: none last.
void record_delta(Plan& plan, const DeltaWeights& w, const DeltaLayers& layers, int64_t at, const kernels::DeltaRows& rows, float eps,
                  const DeltaScratch& scratch, const DeltaInputs* kept, const kernels::Tensor& in, const kernels::Tensor& x,
                  const kernels::Tensor& out);

// Rows of a pass that are kept, as rows of a pass of their own: row i was row index[i] of that one.
struct KeptRows {
  const int32_t* index = nullptr;  // device
  int64_t n = 0;
  kernels::DeltaRows rows;
};
// The states behind them. conv: of each layer; inputs: each layer's of the pass.
void record_delta_states(Plan& plan, const DeltaLayers& layers, const KeptRows& kept, std::span<const kernels::Tensor> conv,
                         std::span<const DeltaInputs> inputs);

}  // namespace aerie

// Decoder layers of a package on a device, as a config describes them: a target's, or those that a drafter runs.
#pragma once

#include <vector>

#include "core/model/decoder.h"
#include "core/model/device_weights.h"
#include "core/model/rows.h"

namespace aerie {

struct DecoderStack {
  struct Rope {
    kernels::Tensor frequencies;  // (1, head_dim / 2), of the heads that it turns
    float scale;                  // of cos and sin
  };
  DecoderShape shape;
  std::vector<DecoderLayer> layers;
  std::vector<Rope> ropes;  // rows of rope.frequencies, or the one that there is
  DeltaLayers delta;        // of recurrent ones, `states` but for its owner to say
  std::vector<kernels::Tensor> delta_convs;
  // With layer inputs: (V, layers * P), (layers * P, H), (1, P).
  kernels::Tensor input_embed, input_project, input_norm;

  DecoderStack() = default;
  DecoderStack(const DecoderStack&) = delete;  // `shape` leads to `delta`
  DecoderStack& operator=(const DecoderStack&) = delete;
  Status load(DeviceWeights& weights, const LlamaConfig& c);
  // Of the rows' positions, for each of `ropes`.
  void add_angles(Plan& plan, const Rows& rows, kernels::Tensor (&angles)[kMostRopeRows]) const;
  // (n, layers * P), where layers have inputs: of the rows' tokens and x (n, H), their embeddings.
  kernels::Tensor add_inputs(Plan& plan, const Rows& rows, const kernels::Tensor& x) const;

 private:
  Status load_layer(DeviceWeights& weights, const LlamaConfig& c, int32_t i);
  Status load_kinds(DeviceWeights& weights, const LlamaConfig& c);
  Status load_delta(DeviceWeights& weights, const LlamaConfig& c);
  Status load_ropes(DeviceWeights& weights, const LlamaConfig& c);
};

}  // namespace aerie

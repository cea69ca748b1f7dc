// What an opened drafter owns on the host side, and the handles of aerie/drafter.h that lead there.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "aerie/drafter.h"
#include "core/model/model.h"

namespace aerie {
using LogSink = std::function<void(int32_t level, const std::string& message)>;
struct DrafterResources;
struct Candidates;
}  // namespace aerie

struct aerie_package {
  aerie::DrafterResources* own;
};
struct aerie_kv {
  aerie::DrafterResources* own;
};
struct aerie_submodel {
  aerie::DrafterResources* own;
};
struct aerie_layers {
  aerie::DrafterResources* own;
};
struct aerie_plan {
  aerie::Plan* plan;
  aerie::DrafterResources* own;
};
struct aerie_attention {
  aerie::Rows rows;                         // slots and masks in the drafter's own cache
  aerie::Rows block;                        // of aerie.block/1, in a propose
  aerie::kernels::AttentionRows causal;     // what its rows see in layers with a window, if any has one
  aerie::Rows target;                       // what rows look at in the target's: of an observe, each sequence's newest
  mutable aerie::kernels::Tensor angles{};  // rotary angles, recorded at first use
};
struct aerie_candidates {
  aerie::Candidates* result;
  const aerie::kernels::DrawKey* keys;  // device, (rows * levels); null: no shared noise
  // Where heads that answer for one level each leave theirs (propose_level).
  aerie::kernels::Tensor token{}, logp{}, logits{};
  int32_t next_level = 0;
};

namespace aerie {

constexpr int32_t kMaxFedNodes = 256;   // nodes of one cycle a drafter may be fed, the root included
constexpr int32_t kMaxExtraRows = 96;   // verified beside the tree (extension extra_rows)
constexpr int32_t kMaxDraftRows = 256;  // rows in one observe or propose
constexpr int32_t kMaxBlockRows = 1024;  // of blocks in one propose

struct DrafterResources {
  DrafterResources(std::shared_ptr<Model> target_model, std::shared_ptr<const Package> own_package)
      : target(std::move(target_model)), package(own_package), weights(target->device(), own_package) {}
  ~DrafterResources();
  DrafterResources(const DrafterResources&) = delete;
  DrafterResources& operator=(const DrafterResources&) = delete;

  // Positions a drafter's cache needs to follow every session of the target.
  int64_t kv_positions() const {
    // Where texts part, their drafter's rows may part a page or two earlier than the target's.
    return target->pool()->positions() + int64_t{kMaxFedNodes + 2 * kernels::kPageSlots} * max_sequences;
  }

  std::shared_ptr<Model> target;
  std::shared_ptr<const Package> package;  // null: the drafter needs none
  DeviceWeights weights;
  std::shared_ptr<KvPool> pool;     // kv_create, or model's or layers' open
  std::shared_ptr<Model> submodel;  // aerie.model/1
  std::unique_ptr<DecoderStack> stack;  // aerie.layers/1, aerie.block/1
  int32_t block_rows = 0, block_filler = 0;  // aerie.block/1; 0: it has none
  bool block_windows = false;       // some of its layers have a window
  kernels::Tensor inv_freq;
  float angle_scale = 1;            // of cos and sin
  std::vector<void*> tensors;       // device memory made by tensor_create
  std::string id;
  LogSink log;
  int32_t max_sequences = 0;
  bool opening = false;  // [open only] services work now
  bool reads_target = false;  // its layers look at the target's keys and values
  bool shown_rows = false;  // it observes: what has no rows (HOST_TOKENS) has no keys and values
  aerie_package package_handle{this};
  aerie_kv kv_handle{this};
  aerie_submodel submodel_handle{this};
  aerie_layers layers_handle{this};
};

// What a propose call brought back, in host memory once its plan has run.
struct Candidates {
  int32_t rows = 0, levels = 0, width = 0;
  std::vector<int32_t> token;  // (rows * levels, width); -1: none
  std::vector<float> logp;     // likewise: log of the confidence
  bool want_logits = false;    // the sampled-draft rule needs the full distribution
  int32_t vocab = 0;           // columns of logits
  std::vector<float> logits;   // (rows * levels, vocab), the target's ids
  std::vector<int32_t> map;    // target id of each logit; empty: the same id
  bool filled = false;
  bool stay = false;           // on the device, in place of token and logp
  kernels::Tensor device_token, device_logp;
};

inline kernels::Tensor from_abi(const aerie_tensor& t) {
  kernels::Tensor k;
  k.data = t.data;
  k.scales = t.scales;
  k.rows = t.rows;
  k.cols = t.cols;
  k.stride = t.stride;
  k.dtype = static_cast<kernels::DType>(t.dtype);
  k.layout = static_cast<kernels::Layout>(t.layout);
  return k;
}
inline aerie_tensor to_abi(const kernels::Tensor& k) {
  aerie_tensor t{};
  t.data = k.data;
  t.scales = k.scales;
  t.rows = k.rows;
  t.cols = k.cols;
  t.stride = k.stride;
  t.dtype = static_cast<uint8_t>(k.dtype);
  t.layout = static_cast<uint8_t>(k.layout);
  return t;
}

}  // namespace aerie

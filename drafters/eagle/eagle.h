// What EAGLE-1/2 and EAGLE-3 share: the host's services, the buffers and the errors of a head.
#pragma once

#include <vector>

#include "aerie/drafter.hpp"

namespace eagle {

struct Head : aerie::Drafter {
  static constexpr uint32_t kServices = aerie::kDrafterCompute | aerie::kDrafterPackage;

  aerie_decoder_layer layer{};
  aerie_tensor fc{}, fc_bias{}, embed{};
  aerie_tensor state{};  // (max_seqs * max_nodes, H): output of every fed node
  aerie_kv* kv = nullptr;
  int32_t hidden = 0;  // its own width, set before open_head

  // fc (H, fc_cols), layers.0 reading qkv_cols columns, own embedding if there is one (there must be one if the target has
  // another width), KV of `layers` layers, states.
  int32_t open_head(const aerie_drafter_open_info* info, int64_t fc_cols, int64_t qkv_cols, int32_t layers, aerie_drafter_error* err);
  void embed_tokens(aerie_plan* plan, const aerie_draft_rows* rows, const aerie_tensor& out) const {
    if (embed.data) compute->embed(plan, &embed, &rows->token, &out);
    else compute->embed_target(plan, &rows->token, &out);
  }
};

// EAGLE-1/2 (eagle.cc).
struct Eagle : Head {
  static constexpr aerie::DrafterAbout about = {"eagle", "EAGLE-1/2: autoregression on features", "0.1.0",
                                                AERIE_DRAFTER_FEATURES, kServices};
  int32_t open(const aerie_drafter_open_info* info, aerie_drafter_needs* needs, aerie_drafter_error* err);
  int32_t observe(aerie_plan* plan, const aerie_draft_rows* rows);
  int32_t propose(aerie_plan* plan, const aerie_draft_rows* rows, aerie_candidates* candidates);

 private:
  void forward(aerie_plan* plan, const aerie_draft_rows* rows, const aerie_tensor& features, const aerie_tensor* index,
               aerie_tensor* out);
};

// EAGLE-3 (eagle3.cc).
struct Eagle3 : Head {
  static constexpr aerie::DrafterAbout about = {"eagle3", "EAGLE-3: fused features, own vocabulary", "0.1.0",
                                                AERIE_DRAFTER_FEATURES, kServices};
  int32_t open(const aerie_drafter_open_info* info, aerie_drafter_needs* needs, aerie_drafter_error* err);
  int32_t observe(aerie_plan* plan, const aerie_draft_rows* rows);
  int32_t propose(aerie_plan* plan, const aerie_draft_rows* rows, aerie_candidates* candidates);

 private:
  aerie_tensor input_norm{}, hidden_norm{}, norm{}, lm_head{}, vocab_map{}, taps_norm{}, tap_norm[8] = {};
  bool norm_before_residual = false, norm_output = false;
  int32_t tap_width = 0;  // the target's width
  std::vector<aerie_decoder_layer> deeper;  // layers.1, ...
  int32_t open_deeper(const aerie_package* p, int32_t layers, aerie_drafter_error* err);
  aerie_tensor normed(aerie_plan* plan, const aerie_tensor& features);
  void forward(aerie_plan* plan, const aerie_draft_rows* rows, const aerie_tensor& g, aerie_tensor* out);
};

}  // namespace eagle

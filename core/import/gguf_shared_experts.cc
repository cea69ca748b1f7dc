// Mixtures with an expert for every row, other scores than a softmax, or layers without experts before the others, as GGUF files describe
// them, and as llama.cpp has it where they do not.
#include "core/import/gguf_family.h"

namespace aerie {

namespace {

Status read_shared_width(const GgufSource& g, const GgufMixture& fixed, int32_t dense, SourceModel* m) {
  Departures& d = m->config.departures;
  if (fixed.own_width) {
    AERIE_TRY(g.file.integer(g.arch + "expert_shared_feed_forward_length", &d.shared_ffn, 0));
    if (fixed.qwen2 && d.shared_ffn == 0) d.shared_ffn = dense;
  } else {
    int32_t count = 0;
    AERIE_TRY(g.file.integer(g.arch + "expert_shared_count", &count, 0));
    if (count < 0 || int64_t{count} * m->config.ffn > 1 << 20) return g.bad(g.arch + "expert_shared_count: " + std::to_string(count));
    d.shared_ffn = count * m->config.ffn;
  }
  d.shared_gate = fixed.qwen2;
  return {};
}

}  // namespace

Status read_more_of_gguf_experts(const GgufSource& g, const GgufFamily& family, SourceModel* m) {
  LlamaConfig& c = m->config;
  Departures& d = c.departures;
  const GgufMixture& fixed = *family.more;
  AERIE_TRY(g.file.integer(g.arch + "leading_dense_block_count", &d.dense_layers, 0));
  if (d.dense_layers < 0 || d.dense_layers >= c.layers) return g.bad(g.arch + "leading_dense_block_count: " + std::to_string(d.dense_layers));
  const int32_t dense = c.ffn;
  if (d.dense_layers > 0) AERIE_TRY(g.file.integer(g.arch + "feed_forward_length", &d.dense_ffn));
  AERIE_TRY(g.file.integer(g.arch + "expert_feed_forward_length", &c.ffn, fixed.qwen2 ? dense / d.experts_used : dense));
  if (c.ffn < 1) return g.bad(g.arch + "expert_feed_forward_length: " + std::to_string(c.ffn));
  AERIE_TRY(read_shared_width(g, fixed, dense, m));
  int32_t scores = fixed.usual;
  AERIE_TRY(g.file.integer(g.arch + "expert_gating_func", &scores, scores));
  const bool known = fixed.scores ? scores == fixed.scores : scores == GgufMixture::kSigmoid || scores == GgufMixture::kSoftmax;
  if (!known) return g.unsupported(g.arch + "expert_gating_func: " + std::to_string(scores));
  d.sigmoid_experts = scores == GgufMixture::kSigmoid;
  AERIE_TRY(g.file.number(g.arch + "expert_weights_scale", &d.expert_scale, 1));
  if (d.expert_scale == 0) d.expert_scale = 1;
  if (family.experts == GgufFamily::Experts::as_said) AERIE_TRY(g.file.boolean(g.arch + "expert_weights_norm", &d.norm_experts, false));
  const std::string choice = m->names->layers + std::to_string(d.dense_layers) + "." + kGgufExperts.choice;
  d.expert_choice = g.take.has(choice);
  if (!d.expert_choice && (d.sigmoid_experts || d.expert_scale != 1)) return g.unsupported("tensor " + choice + ": is missing");
  return {};
}

Status gguf_glm4moe(const GgufSource& g, SourceModel* m) {
  m->names = &kGgufMlpNormBehindAttention;
  m->config.qk_norm = g.take.has("blk.0.attn_q_norm.weight");
  return partial_gguf_rope(g, m);
}

Status gguf_minimax_m2(const GgufSource& g, SourceModel* m) {
  m->config.qk_norm = m->config.departures.whole_qk_norm = true;
  return partial_gguf_rope(g, m);
}

}  // namespace aerie

// Mixtures with an expert for every row, other scores than a softmax, or layers without experts before the others, as GGUF files describe
// them, and as llama.cpp has it where they do not.
#include "core/import/gguf_family.h"

namespace aerie {

namespace {

constexpr int32_t kSoftmax = 1, kSigmoid = 2;  // expert_gating_func

// That llama.cpp has in its code for an architecture.
struct Fixed {
  const char* architecture;
  int32_t scores;     // 0: what the file says
  bool shared_alone;  // the width of the shared expert is said, else so many times that of one
};
constexpr Fixed kFixed[] = {{"qwen2moe", kSoftmax, true}, {"granitemoe", kSoftmax, true}, {"ernie4_5-moe", kSoftmax, true},
                            {"glm4moe", 0, false},        {"dots1", 0, false},            {"minimax-m2", 0, false}};

const Fixed& fixed(const GgufFamily& family) {
  const Fixed* f = kFixed;
  while (std::string_view(family.architecture) != f->architecture) ++f;
  return *f;
}

Status read_shared_width(const GgufSource& g, const Fixed& f, int32_t dense, SourceModel* m) {
  Departures& d = m->config.departures;
  const bool qwen = std::string_view(f.architecture) == "qwen2moe";
  if (f.shared_alone) {
    AERIE_TRY(g.file.integer(g.arch + "expert_shared_feed_forward_length", &d.shared_ffn, 0));
    if (qwen && d.shared_ffn == 0) d.shared_ffn = dense;
  } else {
    int32_t count = 0;
    AERIE_TRY(g.file.integer(g.arch + "expert_shared_count", &count, 0));
    if (count < 0 || int64_t{count} * m->config.ffn > 1 << 20) return g.bad(g.arch + "expert_shared_count: " + std::to_string(count));
    d.shared_ffn = count * m->config.ffn;
  }
  d.shared_gate = qwen;
  return {};
}

}  // namespace

Status read_more_of_gguf_experts(const GgufSource& g, const GgufFamily& family, SourceModel* m) {
  LlamaConfig& c = m->config;
  Departures& d = c.departures;
  const Fixed& f = fixed(family);
  AERIE_TRY(g.file.integer(g.arch + "leading_dense_block_count", &d.dense_layers, 0));
  if (d.dense_layers < 0 || d.dense_layers > c.layers) return g.bad(g.arch + "leading_dense_block_count: " + std::to_string(d.dense_layers));
  const int32_t dense = c.ffn;
  d.dense_ffn = d.dense_layers > 0 ? dense : 0;
  AERIE_TRY(g.file.integer(g.arch + "expert_feed_forward_length", &c.ffn, std::string_view(f.architecture) == "qwen2moe" ? dense / d.experts_used : dense));
  if (c.ffn < 1) return g.bad(g.arch + "expert_feed_forward_length: " + std::to_string(c.ffn));
  AERIE_TRY(read_shared_width(g, f, dense, m));
  int32_t scores = f.scores ? f.scores : std::string_view(f.architecture) == "glm4moe" ? kSigmoid : 0;
  AERIE_TRY(g.file.integer(g.arch + "expert_gating_func", &scores, scores));
  if (scores != kSigmoid && scores != kSoftmax) return g.unsupported(g.arch + "expert_gating_func: " + std::to_string(scores));
  if (f.scores && scores != f.scores) return g.unsupported(g.arch + "expert_gating_func: " + std::to_string(scores));
  d.sigmoid_experts = scores == kSigmoid;
  AERIE_TRY(g.file.number(g.arch + "expert_weights_scale", &d.expert_scale, 1));
  if (d.expert_scale == 0) d.expert_scale = 1;
  if (family.experts == GgufFamily::Experts::as_said) AERIE_TRY(g.file.boolean(g.arch + "expert_weights_norm", &d.norm_experts, false));
  d.expert_choice = g.take.has(m->names->layers + std::to_string(d.dense_layers) + "." + kGgufExperts.choice);
  return {};
}

Status partial_gguf_rope(const GgufSource& g, SourceModel* m) {
  SourceRope rope;
  AERIE_TRY(read_gguf_rope(g, *m, &rope));
  use_rope(rope, m);
  m->rotated = rope.rotated(m->config.head_dim);
  if (!rope.plain()) list_ropes({&rope}, {}, m);
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

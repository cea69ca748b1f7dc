// GGUF files of Llama-like models (llama.cpp). Quantised values become f32 on the way to the dtype that was asked for.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/import/gguf_tokenizer.h"
#include "core/import/layer.h"
#include "core/import/rotary_order.h"
#include "core/import/taps.h"
#include "core/import/yarn.h"
#include "core/package/validate.h"

namespace aerie {

namespace {

Status unsupported(const GgufFile& file, const std::string& what) { return error(Code::unsupported, file.name() + ": " + what); }

// llama.cpp keeps q and k of "llama" as it rotates them: neighbours.
class HalvesOfHeads final : public TensorSource {
 public:
  HalvesOfHeads(const TensorSource& source, const LlamaConfig& c) : source_(source), c_(c) {}
  const std::string& name() const override { return source_.name(); }
  const std::map<std::string, SourceTensor>& tensors() const override { return source_.tensors(); }
  Result<std::vector<int64_t>> read_integers(const std::string& tensor) const override { return source_.read_integers(tensor); }
  Result<std::vector<float>> read(const std::string& tensor) const override {
    auto values = source_.read(tensor);
    const bool q = tensor.find(".attn_q.") != std::string::npos, k = tensor.find(".attn_k.") != std::string::npos;
    if (!values.ok() || (!q && !k)) return values;
    const int64_t heads = q ? c_.heads : c_.kv_heads;
    return rotate_half_order(*values, heads, c_.head_dim, static_cast<int64_t>(values->size()) / (heads * c_.head_dim));
  }

 private:
  const TensorSource& source_;
  const LlamaConfig& c_;
};

// What would make the same tensors mean another model.
Status refuse_other_models(const GgufFile& file, const std::string& arch) {
  int32_t parts = 1;
  AERIE_TRY(file.integer("split.count", &parts, 1));
  if (parts > 1)
    return unsupported(file, "split.count: one of " + std::to_string(parts) + " files; join them (llama-gguf-split --merge)");
  bool causal = true;
  AERIE_TRY(file.boolean(arch + "attention.causal", &causal, true));
  if (!causal) return unsupported(file, arch + "attention.causal: false");
  int32_t experts = 0;
  AERIE_TRY(file.integer(arch + "expert_count", &experts, 0));
  if (experts > 0) return unsupported(file, arch + "expert_count: " + std::to_string(experts));
  for (const char* key : {"logit_scale", "residual_scale", "embedding_scale", "attention.scale", "attn_logit_softcapping",
                          "final_logit_softcapping", "attention.clamp_kqv", "attention.max_alibi_bias", "attention.layer_norm_epsilon"})
    if (file.has(arch + key)) return unsupported(file, arch + key + ": is set");
  return {};
}

// Llama 3.1's scaling lies in the file as a divisor for each frequency: the parameters that give them.
Status read_rope_divisors(const GgufFile& file, TensorTaker& take, LlamaConfig* c) {
  const std::string name = "rope_freqs.weight";
  if (!take.has(name)) return {};
  AERIE_ASSIGN(const auto divisors, take.take(name, {c->head_dim / 2}));
  RopeScaling s;
  s.kind = RopeScaling::Kind::llama3;
  s.factor = divisors.back();  // of the longest wave
  for (size_t i = 0; i < divisors.size(); ++i) {
    const double wave = 2 * std::numbers::pi * std::pow(double{c->rope_theta}, 2.0 * static_cast<double>(i) / c->head_dim);
    const double blend = std::clamp((s.original_context / wave - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor), 0.0, 1.0);
    const double divisor = 1 / ((1 - blend) / s.factor + blend);
    if (!(std::fabs(divisors[i] - divisor) <= 1e-3 * divisor))
      return unsupported(file, "tensor " + name + ": not the scaling of Llama 3 (of " + std::to_string(s.original_context) + " positions)");
  }
  if (s.factor == 1) return {};
  if (c->rope_scaling.kind != RopeScaling::Kind::none) return unsupported(file, "tensor " + name + ": beside another scaling");
  c->rope_scaling = s;
  return {};
}

// As llama.cpp has it: its own scale of cos and sin beside what the factor asks for.
Status read_yarn(const GgufFile& file, const std::string& arch, LlamaConfig* c) {
  RopeScaling& s = c->rope_scaling;
  const std::string at = arch + "rope.scaling.";
  float own = 1;
  AERIE_TRY(file.number(at + "factor", &s.factor));
  AERIE_TRY(file.integer(at + "original_context_length", &s.original_context, c->max_context));
  AERIE_TRY(file.number(at + "yarn_beta_slow", &s.low_freq_factor, 1));
  AERIE_TRY(file.number(at + "yarn_beta_fast", &s.high_freq_factor, 32));
  AERIE_TRY(file.number(at + "attn_factor", &own, 1));
  for (const auto& [key, neutral] : {std::pair<const char*, float>{"yarn_attn_factor", 1}, {"yarn_ext_factor", 1}, {"yarn_log_multiplier", 0}}) {
    float value = neutral;
    AERIE_TRY(file.number(at + key, &value, neutral));
    if (value != neutral) return unsupported(file, at + key + ": " + std::to_string(value));
  }
  s.kind = RopeScaling::Kind::yarn;
  s.attention_factor = own * yarn_attention_factor(s.factor);
  c->max_context = std::max(c->max_context, yarn_context(s));
  return {};
}

Status read_rope(const GgufFile& file, const std::string& arch, LlamaConfig* c) {
  AERIE_TRY(file.number(arch + "rope.freq_base", &c->rope_theta, 10000.0f));
  int32_t rotated = c->head_dim;
  AERIE_TRY(file.integer(arch + "rope.dimension_count", &rotated, c->head_dim));
  if (rotated != c->head_dim)
    return unsupported(file, arch + "rope.dimension_count: " + std::to_string(rotated) + " of a head's " + std::to_string(c->head_dim));
  // As llama.cpp has it: linear unless it says otherwise, by the newer key or the older one.
  std::string_view type = "linear";
  if (file.has(arch + "rope.scaling.type")) AERIE_TRY(file.text(arch + "rope.scaling.type", &type));
  if (type == "yarn") return read_yarn(file, arch, c);
  if (file.has(arch + "rope.scaling.attn_factor")) return unsupported(file, arch + "rope.scaling.attn_factor: is set");
  if (type == "none") return {};
  if (type != "linear") return unsupported(file, arch + "rope.scaling.type: \"" + std::string(type) + "\" (none, linear and yarn are supported)");
  float factor = 0;
  AERIE_TRY(file.number(arch + "rope.scale_linear", &factor, 0));
  AERIE_TRY(file.number(arch + "rope.scaling.factor", &factor, factor));
  if (factor == 0 || factor == 1) return {};
  c->rope_scaling.kind = RopeScaling::Kind::linear;
  c->rope_scaling.factor = factor;
  return {};
}

Status read_config(const GgufFile& file, const std::string& arch, LlamaConfig* c) {
  AERIE_TRY(refuse_other_models(file, arch));
  AERIE_TRY(file.integer(arch + "embedding_length", &c->hidden));
  AERIE_TRY(file.integer(arch + "block_count", &c->layers));
  AERIE_TRY(file.integer(arch + "feed_forward_length", &c->ffn));
  AERIE_TRY(file.integer(arch + "attention.head_count", &c->heads));
  AERIE_TRY(file.integer(arch + "attention.head_count_kv", &c->kv_heads, c->heads));
  AERIE_TRY(file.integer(arch + "context_length", &c->max_context));
  AERIE_TRY(file.number(arch + "attention.layer_norm_rms_epsilon", &c->rms_eps));
  const std::string heads = file.name() + ": " + arch + "attention.head_count: ";
  if (c->heads < 1) return error(Code::bad_format, heads + std::to_string(c->heads));
  AERIE_TRY(file.integer(arch + "attention.key_length", &c->head_dim, c->hidden / c->heads));
  int32_t value_length = c->head_dim;
  AERIE_TRY(file.integer(arch + "attention.value_length", &value_length, c->head_dim));
  if (value_length != c->head_dim) return unsupported(file, arch + "attention.value_length: is not the length of keys");
  AERIE_TRY(read_rope(file, arch, c));
  int32_t window = 0;
  AERIE_TRY(file.integer(arch + "attention.sliding_window", &window, 0));
  if (window > 0 && window < c->max_context)
    return unsupported(file, arch + "attention.sliding_window: " + std::to_string(window) + " is shorter than the context");
  const auto embed = file.tensors().find("token_embd.weight");
  if (embed == file.tensors().end() || embed->second.shape.size() != 2)
    return error(Code::bad_format, file.name() + ": tensor token_embd.weight: missing, or not a matrix");
  c->vocab_size = c->vocab_used = static_cast<int32_t>(std::min<int64_t>(embed->second.shape[0], INT32_MAX));
  if (c->layers > 0) c->tap_layers = default_taps(c->layers);
  AERIE_TRY(file.integer("tokenizer.ggml.bos_token_id", &c->bos_id, -1));
  AERIE_TRY(gguf_end_ids(file, &c->eos_ids));
  return package::check_config(*c).at(file.name());
}

Status add_text(const ConvertOptions& o, const GgufFile& file, Sink& sink, LlamaConfig* c) {
  if (o.tokenizer == kNoTokenizer) return {};
  if (!o.tokenizer.empty()) {
    AERIE_TRY(sink.tokenizer_file(o.tokenizer, c).status());
  } else {
    AERIE_ASSIGN(const auto tokenizer, gguf_tokenizer(file));
    if (!tokenizer) {
      sink.warn(o.source + ": no tokenizer inside: the package speaks token ids only");
      return {};
    }
    AERIE_TRY(sink.tokenizer(*tokenizer, file.raw("tokenizer.ggml."), c).at(o.source + ": tokenizer.ggml.tokens"));
  }
  std::string_view chat;
  if (file.has("tokenizer.chat_template")) AERIE_TRY(file.text("tokenizer.chat_template", &chat));
  return sink.writer().add_blob("chat_template", {reinterpret_cast<const uint8_t*>(chat.data()), chat.size()});
}

}  // namespace

Status import_gguf(const ConvertOptions& o, Sink& sink) {
  AERIE_ASSIGN(const auto file, GgufFile::open(o.source));
  std::string_view arch;
  AERIE_TRY(file->text("general.architecture", &arch));
  if (arch != "llama" && arch != "qwen2" && arch != "qwen3")
    return unsupported(*file, "general.architecture: \"" + std::string(arch) + "\" (llama, which Mistral is, too, qwen2 and qwen3 are read)");
  LlamaConfig c;
  c.qk_norm = arch == "qwen3";
  AERIE_TRY(read_config(*file, std::string(arch) + ".", &c));
  const HalvesOfHeads halves(*file, c);
  const TensorSource& source = arch == "llama" ? static_cast<const TensorSource&>(halves) : *file;
  TensorTaker take(source);
  AERIE_TRY(read_rope_divisors(*file, take, &c));
  // Some files of a tied model have the embedding twice.
  const bool tied = !take.has("output.weight") || file->same("output.weight", "token_embd.weight");
  AERIE_TRY(import_decoder(o, sink, take, kGgufNames, tied, &c));
  AERIE_TRY(add_text(o, *file, sink, &c));
  sink.finish_target(o.source, c);
  return {};
}

}  // namespace aerie

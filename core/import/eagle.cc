// EAGLE-1/2 heads as published (SafeAILab/EAGLE): fc, one decoder layer without input norm; nothing after
// it. Embedding and LM head are the target's.
#include <bit>

#include "core/import/hf_config.h"
#include "core/import/layer.h"
#include "core/package/validate.h"
#include "core/platform/file.h"
#include "kernels/cpu/cpu_device.h"

namespace aerie {

namespace {

using nlohmann::json;

uint32_t bf16_bits(float v) {
  const auto bits = std::bit_cast<uint32_t>(v);
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

// Published heads carry a copy of the target's embedding. A second one in memory would be waste.
Result<bool> is_targets_own(const Package& target, const std::vector<float>& embed, int64_t rows, int64_t cols) {
  AERIE_ASSIGN(const kernels::Tensor t, target.tensor("embed"));
  if (t.dtype != kernels::DType::f32 && t.dtype != kernels::DType::bf16) return false;  // nothing left to compare
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t k = 0; k < cols; ++k)
      if (bf16_bits(kernels::panel16_at(t, r, k)) != bf16_bits(embed[static_cast<size_t>(r * cols + k)])) return false;
  return true;
}

}  // namespace

Status import_eagle(const ConvertOptions& o, Sink& sink) {
  const std::string config_path = platform::join_path(checkpoint_directory(o.source), "config.json");
  AERIE_ASSIGN(const json j, read_json(config_path));
  AERIE_ASSIGN(const auto source, open_safetensors(o.source));
  AERIE_ASSIGN(const auto target, Package::open(o.drafter_for));
  if (!target->target()) return error(Code::mismatch, o.drafter_for + ": not a target package");
  const LlamaConfig& t = *target->target();

  const ConfigReader config(j);
  LlamaConfig c;  // the head, as a model of one layer
  AERIE_TRY(read_layer_config(config, &c).at(config_path));
  AERIE_TRY(config.integer("vocab_size", &c.vocab_size, t.vocab_size).at(config_path));
  c.vocab_used = c.vocab_size;
  c.layers = 1;
  AERIE_TRY(package::check_config(c).at(config_path));
  if (c.rope_scaling.kind != RopeScaling::Kind::none)
    return error(Code::unsupported, config_path + ": rope_scaling: not supported in drafter heads");
  const auto differs = [&](const char* key, int32_t ours, int32_t theirs) {
    return error(Code::mismatch, config_path + ": " + key + ": " + std::to_string(ours) + ", the target " +
                                     o.drafter_for + " has " + std::to_string(theirs));
  };
  if (c.hidden != t.hidden) return differs("hidden_size", c.hidden, t.hidden);
  if (c.vocab_size != t.vocab_size) return differs("vocab_size", c.vocab_size, t.vocab_size);

  TensorTaker take(*source);
  LayerImport import(o, sink, take, 8);
  const int64_t h = c.hidden;
  bool bias = true;
  AERIE_TRY(config.boolean("bias", &bias, true).at(config_path));  // absent means true
  AERIE_TRY(import.weight("fc", "fc.weight", h, 2 * h));
  if (bias) AERIE_TRY(import.vector("fc.bias", "fc.bias", h));
  c.qkv_bias = take.has("layers.0.self_attn.q_proj.bias");
  AERIE_TRY(import.layer("layers.0.", "layers.0.", c));
  if (take.has("embed_tokens.weight")) {
    AERIE_ASSIGN(const auto embed, import.take("embed_tokens.weight", c.vocab_size, h));
    AERIE_ASSIGN(const bool same, is_targets_own(*target, embed, c.vocab_size, h));
    if (!same) AERIE_TRY(sink.weight("embed", embed, c.vocab_size, h));
  }
  take.ignore_if([](const std::string& n) { return n.ends_with(".rotary_emb.inv_freq"); });
  AERIE_TRY(take.nothing_left());

  DrafterConfig d;
  d.plugin_id = "eagle";
  d.target_fingerprint = target->fingerprint();
  const auto param = [&](const char* name, double value) { d.params.push_back({name, value}); };
  param("hidden", c.hidden);
  param("heads", c.heads);
  param("kv_heads", c.kv_heads);
  param("head_dim", c.head_dim);
  param("ffn", c.ffn);
  param("rms_eps", static_cast<double>(c.rms_eps));
  param("rope_theta", static_cast<double>(c.rope_theta));
  param("vocab_size", c.vocab_size);
  param("positions", c.max_context);
  sink.finish_drafter(target->name().substr(0, 240) + "-eagle", d);
  return {};
}

}  // namespace aerie

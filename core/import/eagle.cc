// EAGLE-1/2 heads as published (SafeAILab/EAGLE): fc, one decoder layer without input norm; the
// embedding and LM head are the target's.
#include "core/import/sink.h"
#include "core/import/source.h"

namespace aerie {

Status import_eagle(const ConvertOptions& o, Sink& sink) {
  using nlohmann::json;
  AERIE_ASSIGN(const json j, read_json(o.source + "/config.json"));
  AERIE_ASSIGN(const auto source, open_safetensors(o.source));
  AERIE_ASSIGN(const auto target, Package::open(o.drafter_for));
  if (!target->target()) return error(Code::mismatch, o.drafter_for + ": not a target package");
  const LlamaConfig& t = *target->target();
  const auto number = [&](const char* key, double fallback) {
    return j.contains(key) && j[key].is_number() ? j[key].get<double>() : fallback;
  };
  const auto where = [&](const std::string& what) { return error(Code::mismatch, o.source + ": " + what); };
  const double hidden = number("hidden_size", t.hidden), heads = number("num_attention_heads", 0),
               ffn = number("intermediate_size", 0);
  if (hidden != t.hidden)
    return where("hidden_size " + std::to_string(static_cast<int64_t>(hidden)) + ", the target has " + std::to_string(t.hidden));
  if (number("vocab_size", t.vocab_size) != t.vocab_size)
    return where("vocab_size " + std::to_string(static_cast<int64_t>(number("vocab_size", 0))) + ", the target has " +
                 std::to_string(t.vocab_size));
  if (heads < 1 || heads > 4096 || ffn < 1 || ffn > (1 << 22))
    return error(Code::bad_format, o.source + "/config.json: num_attention_heads or intermediate_size is missing or absurd");
  if (j.contains("hidden_act") && j["hidden_act"] != "silu")
    return error(Code::unsupported, o.source + "/config.json: hidden_act " + j["hidden_act"].dump());
  if (j.contains("rope_scaling") && !j["rope_scaling"].is_null())
    return error(Code::unsupported, o.source + "/config.json: rope_scaling");
  const double kv_heads = number("num_key_value_heads", heads), head_dim = number("head_dim", static_cast<int64_t>(hidden / heads));
  const auto h = static_cast<int64_t>(hidden), f = static_cast<int64_t>(ffn);
  const auto q = static_cast<int64_t>(heads * head_dim), kv = static_cast<int64_t>(kv_heads * head_dim);

  TensorTaker take(*source);
  const auto concat = [](std::vector<float> a, const std::vector<float>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  };
  const std::string at = "layers.0.";
  AERIE_ASSIGN(const auto fc, take.take("fc.weight", h, 2 * h));
  AERIE_TRY(sink.weight("fc", fc, h, 2 * h));
  const bool bias = !j.contains("bias") || j["bias"] != false;  // an absent key means a bias
  if (bias != take.has("fc.bias"))
    return error(Code::bad_format, o.source + ": tensor fc.bias: " + (bias ? "missing (config bias is true or absent)" : "unexpected (config bias is false)"));
  if (bias) {
    AERIE_ASSIGN(const auto b, take.take("fc.bias", 1, h));
    AERIE_TRY(sink.vector("fc.bias", b));
  }
  AERIE_ASSIGN(const auto wq, take.take(at + "self_attn.q_proj.weight", q, h));
  AERIE_ASSIGN(const auto wk, take.take(at + "self_attn.k_proj.weight", kv, h));
  AERIE_ASSIGN(const auto wv, take.take(at + "self_attn.v_proj.weight", kv, h));
  AERIE_TRY(sink.weight("layers.0.attn.qkv", concat(concat(wq, wk), wv), q + 2 * kv, h));
  if (take.has(at + "self_attn.q_proj.bias")) {
    AERIE_ASSIGN(const auto bq, take.take(at + "self_attn.q_proj.bias", 1, q));
    AERIE_ASSIGN(const auto bk, take.take(at + "self_attn.k_proj.bias", 1, kv));
    AERIE_ASSIGN(const auto bv, take.take(at + "self_attn.v_proj.bias", 1, kv));
    AERIE_TRY(sink.vector("layers.0.attn.qkv.bias", concat(concat(bq, bk), bv)));
  }
  AERIE_ASSIGN(const auto wo, take.take(at + "self_attn.o_proj.weight", h, q));
  AERIE_TRY(sink.weight("layers.0.attn.o", wo, h, q));
  AERIE_ASSIGN(const auto norm, take.take(at + "post_attention_layernorm.weight", 1, h));
  AERIE_TRY(sink.vector("layers.0.mlp_norm", norm));
  AERIE_ASSIGN(const auto gate, take.take(at + "mlp.gate_proj.weight", f, h));
  AERIE_ASSIGN(const auto up, take.take(at + "mlp.up_proj.weight", f, h));
  AERIE_TRY(sink.weight("layers.0.mlp.gate_up", concat(gate, up), 2 * f, h));
  AERIE_ASSIGN(const auto down, take.take(at + "mlp.down_proj.weight", h, f));
  AERIE_TRY(sink.weight("layers.0.mlp.down", down, h, f));
  if (take.has("embed_tokens.weight")) {
    AERIE_ASSIGN(const auto embed, take.take("embed_tokens.weight", t.vocab_size, h));
    AERIE_TRY(sink.weight("embed", embed, t.vocab_size, h));
  }
  AERIE_TRY(take.nothing_left());

  DrafterConfig d;
  d.plugin_id = "eagle";
  d.target_fingerprint = target->fingerprint();
  d.params = {{"hidden", hidden},     {"heads", heads},
              {"kv_heads", kv_heads}, {"head_dim", head_dim},
              {"ffn", ffn},           {"rms_eps", number("rms_norm_eps", 1e-6)},
              {"rope_theta", number("rope_theta", 10000)}};
  sink.hash(d.target_fingerprint.data(), d.target_fingerprint.size());
  sink.writer().set_name(target->name() + "-eagle");
  sink.writer().set_fingerprint(sink.fingerprint());
  sink.writer().set_drafter(std::move(d));
  return {};
}

}  // namespace aerie

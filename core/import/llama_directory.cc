// Hugging Face LlamaForCausalLM directories.
#include <algorithm>
#include <cmath>

#include "core/import/sink.h"
#include "core/import/source.h"
#include "core/package/validate.h"
#include "core/platform/file.h"
#include "core/text/tokenizer.h"

namespace aerie {

namespace {

using nlohmann::json;

Status integer(const json& j, const char* key, int32_t* out, bool required = true) {
  if (!j.contains(key) || j[key].is_null())
    return required ? error(Code::bad_format, std::string("config.json: ") + key + " is missing") : Status();
  if (!j[key].is_number_integer() || j[key].get<int64_t>() < INT32_MIN || j[key].get<int64_t>() > INT32_MAX)
    return error(Code::bad_format, std::string("config.json: ") + key + " is not an integer");
  *out = j[key].get<int32_t>();
  return {};
}

void number(const json& j, const char* key, float* out) {
  if (j.contains(key) && j[key].is_number()) *out = j[key].get<float>();
}

Status rope(const json& config, LlamaConfig* c) {
  number(config, "rope_theta", &c->rope_theta);
  const char* key = config.contains("rope_parameters") ? "rope_parameters" : "rope_scaling";
  if (!config.contains(key) || !config[key].is_object()) return {};
  const json& r = config[key];
  number(r, "rope_theta", &c->rope_theta);
  std::string type = "default";
  for (const char* k : {"type", "rope_type"})
    if (r.contains(k) && r[k].is_string()) type = r[k];
  RopeScaling& s = c->rope_scaling;
  number(r, "factor", &s.factor);
  if (type == "default") {
    s = {};
  } else if (type == "linear") {
    s.kind = RopeScaling::Kind::linear;
  } else if (type == "llama3") {
    s.kind = RopeScaling::Kind::llama3;
    number(r, "low_freq_factor", &s.low_freq_factor);
    number(r, "high_freq_factor", &s.high_freq_factor);
    AERIE_TRY(integer(r, "original_max_position_embeddings", &s.original_context));
  } else {
    return error(Code::unsupported, "config.json: rope_scaling " + type + " (linear and llama3 are read)");
  }
  return {};
}

Status read_config(const json& j, LlamaConfig* c) {
  AERIE_TRY(integer(j, "vocab_size", &c->vocab_size));
  AERIE_TRY(integer(j, "hidden_size", &c->hidden));
  AERIE_TRY(integer(j, "intermediate_size", &c->ffn));
  AERIE_TRY(integer(j, "num_hidden_layers", &c->layers));
  AERIE_TRY(integer(j, "num_attention_heads", &c->heads));
  c->kv_heads = c->heads;
  AERIE_TRY(integer(j, "num_key_value_heads", &c->kv_heads, false));
  if (c->heads > 0) c->head_dim = c->hidden / c->heads;
  AERIE_TRY(integer(j, "head_dim", &c->head_dim, false));
  c->max_context = 2048;
  AERIE_TRY(integer(j, "max_position_embeddings", &c->max_context, false));
  c->vocab_used = c->vocab_size;
  AERIE_TRY(integer(j, "vocab_used", &c->vocab_used, false));
  c->rms_eps = 1e-6f;  // Hugging Face's default
  number(j, "rms_norm_eps", &c->rms_eps);
  AERIE_TRY(rope(j, c));
  if (j.contains("hidden_act") && j["hidden_act"] != "silu")
    return error(Code::unsupported, "config.json: hidden_act " + j["hidden_act"].dump() + " (silu is read)");
  if (j.contains("mlp_bias") && j["mlp_bias"] == true) return error(Code::unsupported, "config.json: mlp_bias");
  AERIE_TRY(integer(j, "bos_token_id", &c->bos_id, false));
  if (j.contains("eos_token_id")) {
    const json& e = j["eos_token_id"];
    if (e.is_number_integer()) c->eos_ids = {e.get<int32_t>()};
    else if (e.is_array())
      for (const auto& id : e) {
        if (!id.is_number_integer()) return error(Code::bad_format, "config.json: eos_token_id");
        c->eos_ids.push_back(id.get<int32_t>());
      }
  }
  if (j.contains("aerie_tap_layers") && j["aerie_tap_layers"].is_array()) {
    for (const auto& l : j["aerie_tap_layers"]) {
      if (!l.is_number_integer()) return error(Code::bad_format, "config.json: aerie_tap_layers");
      c->tap_layers.push_back(l.get<int32_t>());
    }
  } else {  // EAGLE-3's: inputs of layers 2, n/2, n-3
    const int32_t last = std::max(c->layers - 1, 0);
    c->tap_layers = {std::min(2, last), c->layers / 2, std::max(c->layers - 3, 0)};
  }
  return {};
}

}  // namespace

Status import_llama_directory(const ConvertOptions& o, Sink& sink) {
  AERIE_ASSIGN(const json j, read_json(o.source + "/config.json"));
  AERIE_ASSIGN(const auto source, open_safetensors(o.source));
  TensorTaker take(*source);
  LlamaConfig c;
  if (Status s = read_config(j, &c); !s.ok()) return s.at(o.source);
  // Whether the head is tied and q/k/v have biases is what the file holds, not what the config says.
  c.tied = !take.has("lm_head.weight");
  c.qkv_bias = take.has("model.layers.0.self_attn.q_proj.bias");
  if (Status s = package::check_config(c); !s.ok()) return s.at(o.source + "/config.json");
  if (c.tied && j.contains("tie_word_embeddings") && j["tie_word_embeddings"] == false)
    return error(Code::bad_format, o.source + ": tensor lm_head.weight: missing (tie_word_embeddings is false)");
  take.ignore_if([](const std::string& n) { return n.size() > 19 && n.rfind("rotary_emb.inv_freq") == n.size() - 19; });

  uint64_t total = 0, done = 0;
  for (const auto& t : source->tensors()) total += static_cast<uint64_t>(t.second.elements());
  Status status;
  const auto get = [&](const std::string& name, int64_t rows, int64_t cols) -> std::vector<float> {
    if (!status.ok()) return {};
    auto v = take.take(name, rows, cols);
    if (!v.ok()) {
      status = v.status();
      return {};
    }
    done += v->size();
    if (o.progress && !o.progress(done, total)) status = error(Code::cancelled, "conversion cancelled");
    return std::move(*v);
  };
  const auto concat = [](std::vector<float> a, const std::vector<float>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  };
  const int64_t q = int64_t{c.heads} * c.head_dim, kv = int64_t{c.kv_heads} * c.head_dim, h = c.hidden, f = c.ffn;
  const auto weight = [&](const std::string& name, const std::vector<float>& v, int64_t rows, int64_t cols) {
    if (status.ok()) status = sink.weight(name, v, rows, cols);
  };
  const auto vector = [&](const std::string& name, const std::vector<float>& v) {
    if (status.ok()) status = sink.vector(name, v);
  };
  weight("embed", get("model.embed_tokens.weight", c.vocab_size, h), c.vocab_size, h);
  vector("norm", get("model.norm.weight", 1, h));
  if (!c.tied) weight("lm_head", get("lm_head.weight", c.vocab_size, h), c.vocab_size, h);
  for (int32_t i = 0; i < c.layers && status.ok(); ++i) {
    const std::string from = "model.layers." + std::to_string(i) + ".", to = "layers." + std::to_string(i) + ".";
    vector(to + "attn_norm", get(from + "input_layernorm.weight", 1, h));
    weight(to + "attn.qkv",
           concat(concat(get(from + "self_attn.q_proj.weight", q, h), get(from + "self_attn.k_proj.weight", kv, h)),
                  get(from + "self_attn.v_proj.weight", kv, h)),
           q + 2 * kv, h);
    if (c.qkv_bias)
      vector(to + "attn.qkv.bias",
             concat(concat(get(from + "self_attn.q_proj.bias", 1, q), get(from + "self_attn.k_proj.bias", 1, kv)),
                    get(from + "self_attn.v_proj.bias", 1, kv)));
    weight(to + "attn.o", get(from + "self_attn.o_proj.weight", h, q), h, q);
    if (c.qkv_bias && take.has(from + "self_attn.o_proj.bias")) {
      // Hugging Face's attention_bias adds one here too; a zero one changes nothing.
      for (const float b : get(from + "self_attn.o_proj.bias", 1, h))
        if (b != 0 && status.ok()) status = error(Code::unsupported, o.source + ": tensor " + from + "self_attn.o_proj.bias: not zero");
    }
    vector(to + "mlp_norm", get(from + "post_attention_layernorm.weight", 1, h));
    weight(to + "mlp.gate_up", concat(get(from + "mlp.gate_proj.weight", f, h), get(from + "mlp.up_proj.weight", f, h)), 2 * f, h);
    weight(to + "mlp.down", get(from + "mlp.down_proj.weight", h, f), h, f);
  }
  AERIE_TRY(status);
  AERIE_TRY(take.nothing_left());

  std::string path = o.tokenizer.empty() ? o.source + "/tokenizer.json" : o.tokenizer;
  if (!o.tokenizer.empty() || platform::path_kind(path) == platform::PathKind::file) {
    AERIE_ASSIGN(const auto bytes, platform::read_file(path, 64u << 20));
    auto tokenizer = text::Tokenizer::from_hf_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    if (!tokenizer.ok()) return tokenizer.status().at(path);
    if ((*tokenizer)->vocab_size() > c.vocab_size)
      return error(Code::mismatch, path + ": " + std::to_string((*tokenizer)->vocab_size()) + " tokens, the model has " +
                                       std::to_string(c.vocab_size));
    const std::vector<uint8_t> blob = (*tokenizer)->serialize();
    sink.hash(blob.data(), blob.size());
    AERIE_TRY(sink.writer().add_blob("tokenizer", blob));
  }
  std::string name = o.source;
  while (name.size() > 1 && name.back() == '/') name.pop_back();
  sink.writer().set_name(name.substr(name.rfind('/') + 1));
  const int32_t shape[] = {c.vocab_size, c.hidden, c.layers, c.heads, c.kv_heads, c.head_dim, c.ffn};
  sink.hash(shape, sizeof shape);
  sink.writer().set_fingerprint(sink.fingerprint());
  sink.writer().set_target(std::move(c));
  return {};
}

}  // namespace aerie

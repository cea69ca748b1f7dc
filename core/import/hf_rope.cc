#include "core/import/hf_rope.h"

#include <algorithm>
#include <cmath>

#include "core/import/yarn.h"
#include "core/package/validate.h"

namespace aerie {

using nlohmann::json;

namespace {

// A model that YaRN lengthens reads all of the longer context, whatever max_position_embeddings says.
Status read_yarn(const ConfigReader& r, int32_t reads, SourceRope* rope) {
  RopeScaling& s = rope->scaling;
  AERIE_TRY(r.boolean("truncate", &rope->whole_waves, true));
  AERIE_TRY(r.number("beta_slow", &s.low_freq_factor, 1));
  AERIE_TRY(r.number("beta_fast", &s.high_freq_factor, 32));
  AERIE_TRY(r.integer("original_max_position_embeddings", &s.original_context, reads));
  float of_numerator = 0, of_denominator = 0;  // DeepSeek's
  AERIE_TRY(r.number("mscale", &of_numerator, 0));
  AERIE_TRY(r.number("mscale_all_dim", &of_denominator, 0));
  const bool both = of_numerator != 0 && of_denominator != 0;
  const float whole = both ? yarn_attention_factor(s.factor, of_numerator) / yarn_attention_factor(s.factor, of_denominator)
                           : yarn_attention_factor(s.factor);
  AERIE_TRY(r.number("attention_factor", &s.attention_factor, whole));
  rope->context = std::max(reads, yarn_context(s));
  return {};
}

Status read_factors(const ConfigReader& r, const char* key, std::vector<float>* out) {
  if (!r.has(key)) return error(Code::bad_format, std::string(key) + ": is missing");
  const json& list = r.at(key);
  if (!list.is_array()) return error(Code::bad_format, std::string(key) + ": is not a list");
  for (const json& v : list) {
    if (!v.is_number() || !(v.get<double>() > 0) || !(v.get<double>() < 1e6))
      return error(Code::bad_format, std::string(key) + ": holds something that is no number above 0");
    out->push_back(v.get<float>());
  }
  return {};
}

Status read_longrope(const ConfigReader& j, const ConfigReader& r, int32_t reads, int32_t wanted, SourceRope* rope) {
  int32_t original = 0;
  AERIE_TRY(j.integer("original_max_position_embeddings", &original, reads));
  AERIE_TRY(r.integer("original_max_position_embeddings", &original, original));
  if (original < 2) return error(Code::bad_format, "original_max_position_embeddings: " + std::to_string(original));
  std::vector<float> of_short, of_long;
  AERIE_TRY(read_factors(r, "short_factor", &of_short));
  AERIE_TRY(read_factors(r, "long_factor", &of_long));
  float factor = static_cast<float>(reads) / static_cast<float>(original);
  AERIE_TRY(r.number("factor", &factor, factor));
  const double whole = factor <= 1 ? 1 : std::sqrt(1 + std::log(double{factor}) / std::log(original));
  AERIE_TRY(r.number("attention_factor", &rope->scaling.attention_factor, static_cast<float>(whole)));
  choose_longrope(std::move(of_short), std::move(of_long), original, reads, wanted, rope);
  return {};
}

Status read_scaling(const ConfigReader& j, const ConfigReader& r, const std::string& type, int32_t reads, int32_t wanted, SourceRope* rope) {
  RopeScaling* const s = &rope->scaling;
  // Phi-3's first files call it su or yarn.
  if (type == "longrope" || type == "su" || (type == "yarn" && r.has("long_factor"))) return read_longrope(j, r, reads, wanted, rope).at("longrope");
  static const struct {
    const char* name;
    RopeScaling::Kind kind;
  } kinds[] = {{"default", RopeScaling::Kind::none}, {"linear", RopeScaling::Kind::linear}, {"llama3", RopeScaling::Kind::llama3},
               {"yarn", RopeScaling::Kind::yarn}, {"proportional", RopeScaling::Kind::none}};
  const auto known = std::find_if(std::begin(kinds), std::end(kinds), [&](const auto& k) { return type == k.name; });
  if (known == std::end(kinds)) return unsupported_key("type " + type, "not supported (default, linear, llama3, yarn, longrope and proportional are)");
  rope->whole_head = type == "proportional";
  if (rope->whole_head && r.has("factor")) {
    s->kind = RopeScaling::Kind::linear;
    return r.number("factor", &s->factor, 1);
  }
  if (known->kind == RopeScaling::Kind::none) return {};  // beside an older key that says more
  s->kind = known->kind;
  if (!r.has("factor")) return error(Code::bad_format, "factor: is missing");
  AERIE_TRY(r.number("factor", &s->factor, 1));
  if (s->kind == RopeScaling::Kind::linear) return {};
  if (s->kind == RopeScaling::Kind::yarn) return read_yarn(r, reads, rope);
  for (const char* key : {"low_freq_factor", "high_freq_factor"})
    if (!r.has(key)) return error(Code::bad_format, std::string(key) + ": is missing");
  AERIE_TRY(r.number("low_freq_factor", &s->low_freq_factor, 1));
  AERIE_TRY(r.number("high_freq_factor", &s->high_freq_factor, 4));
  return r.integer("original_max_position_embeddings", &s->original_context);
}

bool of_layer_types(const json& value) {
  return std::any_of(value.begin(), value.end(), [](const json& v) { return v.is_object(); });
}

}  // namespace

// Before transformers 5 "rope_scaling" beside "rope_theta"; since then "rope_parameters" holding both, perhaps by type of layer.
Status read_rope(const ConfigReader& j, const char* layer_type, int32_t reads, int32_t wanted, SourceRope* out) {
  AERIE_TRY(j.number("rope_theta", &out->theta, out->theta));
  AERIE_TRY(j.number("partial_rotary_factor", &out->partial, out->partial));
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (!j.has(key)) continue;
    const json* value = &j.at(key);
    if (!value->is_object()) return error(Code::bad_format, std::string(key) + ": is not an object");
    if (of_layer_types(*value)) {
      if (!layer_type) return unsupported_key(key, "differs from layer to layer");
      const auto own = value->find(layer_type);
      if (own == value->end() || own->is_null()) continue;
      if (!own->is_object() || of_layer_types(*own)) return error(Code::bad_format, std::string(key) + ": " + layer_type + ": is not an object of numbers");
      value = &*own;
    }
    const ConfigReader r(*value);
    AERIE_TRY(r.number("rope_theta", &out->theta, out->theta).at(key));
    AERIE_TRY(r.number("partial_rotary_factor", &out->partial, out->partial).at(key));
    std::string type = "default";
    for (const char* name : {"type", "rope_type"}) {  // the newer name wins
      if (!r.has(name)) continue;
      if (!r.at(name).is_string()) return error(Code::bad_format, std::string(key) + ": " + name + ": is not a string");
      type = r.at(name).get<std::string>();
    }
    if (type == "default" && r.has("factor") && !r.has("type") && !r.has("rope_type"))
      return error(Code::bad_format, std::string(key) + ": a factor without a rope_type");
    if (const Status s = read_scaling(j, r, type, reads, wanted, out); !s.ok()) return s.at(key);
  }
  if (!out->whole_waves) AERIE_TRY(package::check_rope_scaling(out->scaling));  // which no package will have
  if (!(out->partial > 0) || out->partial > 1) return error(Code::bad_format, "partial_rotary_factor: is not in (0, 1]");
  return {};
}

}  // namespace aerie

#include "core/package/rope_params.h"

#include <cmath>

#include "core/package/validate.h"

namespace aerie {

std::vector<DrafterConfig::Param> rope_scaling_params(const RopeScaling& s) {
  if (s.kind == RopeScaling::Kind::none) return {};
  std::vector<DrafterConfig::Param> p{{"rope_scaling", static_cast<double>(s.kind)}, {"rope_scaling.factor", s.factor}};
  if (s.kind != RopeScaling::Kind::linear) {
    p.push_back({"rope_scaling.low_freq_factor", s.low_freq_factor});
    p.push_back({"rope_scaling.high_freq_factor", s.high_freq_factor});
    p.push_back({"rope_scaling.original_context", static_cast<double>(s.original_context)});
  }
  if (s.kind == RopeScaling::Kind::yarn) p.push_back({"rope_scaling.attention_factor", s.attention_factor});
  return p;
}

Result<RopeScaling> read_rope_scaling(const DrafterConfig& c) {
  RopeScaling s;
  double kind = 0, original = s.original_context;
  for (const auto& [name, value] : c.params) {
    if (name == "rope_scaling") kind = value;
    if (name == "rope_scaling.factor") s.factor = static_cast<float>(value);
    if (name == "rope_scaling.low_freq_factor") s.low_freq_factor = static_cast<float>(value);
    if (name == "rope_scaling.high_freq_factor") s.high_freq_factor = static_cast<float>(value);
    if (name == "rope_scaling.original_context") original = value;
    if (name == "rope_scaling.attention_factor") s.attention_factor = static_cast<float>(value);
  }
  if (kind != 0 && kind != 1 && kind != 2 && kind != 3) return error(Code::unsupported, "rope_scaling: unknown to this build");
  if (!(original >= 1 && original <= 1 << 24)) return error(Code::bad_format, "rope_scaling.original_context: " + std::to_string(original));
  s.kind = static_cast<RopeScaling::Kind>(kind);
  s.original_context = static_cast<int32_t>(original);
  if (s.kind != RopeScaling::Kind::yarn) s.attention_factor = 1;  // no other kind has one
  AERIE_TRY(package::check_rope_scaling(s));
  return s;
}

}  // namespace aerie

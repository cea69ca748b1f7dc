#include "shape.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <sstream>

#include "kernels/ops.h"

namespace aerie::inflate {

namespace {

Status invalid(const std::string& what) { return error(Code::invalid_argument, "--shape: " + what); }

// Heads are given as widths: a small model's heads may be of another size than the namesake's, and the cost of
// projections, keys and values depends on the product alone.
struct Preset {
  const char* name;
  int32_t hidden, layers, query_width, kv_width, ffn, vocab;
};
constexpr Preset kPresets[] = {{"110m", 768, 16, 768, 256, 2048, 32000},
                               {"1b", 2048, 16, 2048, 512, 8192, 32000},
                               {"8b", 4096, 32, 4096, 1024, 14336, 128256}};

}  // namespace

Result<Shape> parse_shape(const std::string& text, int32_t head_dim) {
  for (const Preset& p : kPresets) {
    if (text != p.name) continue;
    if (head_dim < 1 || p.query_width % head_dim || p.kv_width % head_dim)
      return invalid(text + ": its heads cannot be split into heads of " + std::to_string(head_dim));
    return Shape{p.hidden, p.layers, p.query_width / head_dim, p.kv_width / head_dim, p.ffn, p.vocab, 0};
  }
  Shape s;
  std::map<std::string, int32_t*> fields = {{"dim", &s.hidden},        {"layers", &s.layers}, {"heads", &s.heads},
                                            {"kv_heads", &s.kv_heads}, {"ffn", &s.ffn},       {"vocab", &s.vocab},
                                            {"head_dim", &s.head_dim}, {"experts", &s.experts},
                                            {"experts_used", &s.experts_used}};
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');) {
    const size_t eq = part.find('=');
    const auto field = fields.find(part.substr(0, eq));
    if (eq == std::string::npos || field == fields.end())
      return invalid(part + ": not 110m, 1b, 8b or dim=, layers=, heads=, kv_heads=, ffn=, vocab=, experts=, experts_used=");
    const char* end = part.data() + part.size();
    const auto [stop, code] = std::from_chars(part.data() + eq + 1, end, *field->second);
    if (code != std::errc() || stop != end || *field->second < 1) return invalid(part + ": not a positive number");
  }
  for (const char* optional : {"head_dim", "experts", "experts_used"}) fields.erase(optional);
  for (const auto& [name, value] : fields)
    if (*value < 1) return invalid(name + " is missing");
  return s;
}

Status check_shape(const LlamaConfig& small, const Shape& big) {
  const auto less = [](const char* what, int32_t ours, int32_t theirs) {
    return invalid(std::string(what) + " " + std::to_string(ours) + " is less than the model's " + std::to_string(theirs));
  };
  if (big.hidden < small.hidden) return less("dim", big.hidden, small.hidden);
  if (big.layers < small.layers) return less("layers", big.layers, small.layers);
  if (big.ffn < small.ffn) return less("ffn", big.ffn, small.ffn);
  if (big.vocab < small.vocab_size) return less("vocab", big.vocab, small.vocab_size);
  if ((big.experts > 0) != (big.experts_used > 0) || big.experts_used > std::min(big.experts, int32_t{kernels::kMaxExpertsUsed}) ||
      big.experts > kernels::kMaxExperts)
    return invalid("experts_used " + std::to_string(big.experts_used) + " of experts " + std::to_string(big.experts));
  if (small.departs()) return error(Code::unsupported, "the model departs from Llama's architecture: not inflated");
  if (small.qk_norm) return error(Code::unsupported, "the model norms q and k (Qwen3): not inflated");
  // Spread rotary pairs would turn at the same speed, but scores are divided by the root of the head size, and
  // quantised query weights cannot be multiplied by it without rounding.
  if (big.head_dim && big.head_dim != small.head_dim)
    return error(Code::unsupported, "--shape: head_dim " + std::to_string(big.head_dim) + ": the model's " +
                                        std::to_string(small.head_dim) + " must be kept for the same function; " +
                                        "more heads of that size cost the same");
  if (big.hidden % 32 || big.ffn % 32 || small.hidden % 32 || small.ffn % 32 || small.head_dim % 32)
    return error(Code::unsupported, "--shape: dim, ffn and head size must be multiples of 32, here and in the model");
  return {};
}

int32_t shown(const Map& m) { return m.empty() ? 0 : std::max(0, *std::max_element(m.begin(), m.end()) + 1); }

Map Maps::rows_from(int32_t small, int32_t big, int32_t rest) const {
  Map m(static_cast<size_t>(big), rest);
  for (int32_t i = 0; i < small; ++i) m[static_cast<size_t>(i)] = i;
  return m;
}

Map Maps::columns(int32_t small, int32_t big, int32_t groups) const {
  Map m(static_cast<size_t>(groups) * static_cast<size_t>(big / unit), kQuiet);
  for (int32_t g = 0; g < groups; ++g)
    for (int32_t i = 0; i < small / unit; ++i) m[static_cast<size_t>(g * (big / unit) + i)] = g * (small / unit) + i;
  return m;
}

Map place_layers(int32_t small, int32_t big, Map* first_of) {
  Map m(static_cast<size_t>(big), -1);
  first_of->clear();
  for (int32_t i = 0; i < small; ++i) {
    const auto at = static_cast<int32_t>(int64_t{i} * big / small);
    m[static_cast<size_t>(at)] = i;
    first_of->push_back(at);
  }
  return m;
}

float norm_factor(int32_t small, int32_t big) {
  return static_cast<float>(std::sqrt(static_cast<double>(small) / static_cast<double>(big)));
}

float scaled_eps(double eps, int32_t small, int32_t big) {  // the product of an f32 and an int32 is exact in double
  return static_cast<float>(eps * small / big);
}

bool exact_ratio(int32_t small, int32_t big) {
  while (big > small && big % 4 == 0) big /= 4;
  return big == small;
}

}  // namespace aerie::inflate

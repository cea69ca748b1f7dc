#include "shape.h"

#include <cmath>
#include <map>
#include <sstream>

namespace aerie::inflate {

Result<Shape> parse_shape(const std::string& text) {
  if (text == "110m") return Shape{768, 16, 12, 4, 2048, 32000};
  if (text == "1b") return Shape{2048, 16, 32, 8, 8192, 32000};
  if (text == "8b") return Shape{4096, 32, 32, 8, 14336, 128256};
  Shape s;
  const std::map<std::string, int32_t*> fields = {{"dim", &s.hidden},           {"layers", &s.layers}, {"heads", &s.heads},
                                                  {"kv_heads", &s.kv_heads}, {"ffn", &s.ffn},       {"vocab", &s.vocab}};
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');) {
    const size_t eq = part.find('=');
    const auto field = fields.find(part.substr(0, eq));
    if (eq == std::string::npos || field == fields.end())
      return error(Code::invalid_argument, "--shape: " + part + ": not 110m, 1b, 8b or dim=, layers=, heads=, kv_heads=, ffn=, vocab=");
    *field->second = std::atoi(part.c_str() + eq + 1);
  }
  for (const auto& [name, value] : fields)
    if (*value < 1) return error(Code::invalid_argument, "--shape: " + name + " is missing or not positive");
  return s;
}

Status check_shape(const LlamaConfig& small, const Shape& big) {
  const auto less = [](const char* what, int32_t ours, int32_t theirs) {
    return error(Code::invalid_argument, std::string("--shape: ") + what + " " + std::to_string(ours) + " is less than the model's " +
                                             std::to_string(theirs));
  };
  if (big.hidden < small.hidden) return less("dim", big.hidden, small.hidden);
  if (big.layers < small.layers) return less("layers", big.layers, small.layers);
  if (big.ffn < small.ffn) return less("ffn", big.ffn, small.ffn);
  if (big.vocab < small.vocab_size) return less("vocab", big.vocab, small.vocab_size);
  if (big.hidden % 32 || big.ffn % 32 || small.hidden % 32 || small.ffn % 32 || small.head_dim % 32)
    return error(Code::unsupported, "--shape: dim, ffn and head size must be multiples of 32, here and in the model");
  return {};
}

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

Result<Heads> place_heads(int32_t heads, int32_t kv_heads, int32_t big_heads, int32_t big_kv_heads) {
  if (big_heads % big_kv_heads) return error(Code::invalid_argument, "--shape: heads is not a multiple of kv_heads");
  const int32_t group = heads / kv_heads, big_group = big_heads / big_kv_heads;
  const int32_t each = (group + big_group - 1) / big_group;  // big groups a small one takes
  if (each * kv_heads > big_kv_heads)
    return error(Code::invalid_argument, "--shape: " + std::to_string(big_kv_heads) + " groups of " + std::to_string(big_group) +
                                             " query heads do not hold the model's " + std::to_string(kv_heads) + " of " + std::to_string(group));
  Heads h;
  h.kv.assign(static_cast<size_t>(big_kv_heads), -1);
  h.query.assign(static_cast<size_t>(big_heads), -1);
  h.repeated.assign(static_cast<size_t>(big_heads), false);
  for (int32_t s = 0; s < kv_heads; ++s)
    for (int32_t part = 0; part < each; ++part) {
      const int32_t b = s * each + part, first = s * group + part * big_group;
      h.kv[static_cast<size_t>(b)] = s;
      for (int32_t i = 0; i < big_group; ++i) {
        const bool live = part * big_group + i < group;
        h.query[static_cast<size_t>(b * big_group + i)] = live ? first + i : first;
        h.repeated[static_cast<size_t>(b * big_group + i)] = !live;
      }
    }
  return h;
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

bool exact_ratio(int32_t small, int32_t big) {
  while (big > small && big % 4 == 0) big /= 4;
  return big == small;
}

}  // namespace aerie::inflate

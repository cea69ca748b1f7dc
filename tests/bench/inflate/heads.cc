// Query heads stay with their keys and values: small KV groups in big ones.
#include "shape.h"

namespace aerie::inflate {

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

}  // namespace aerie::inflate

// Prompt lookup decoding (PLD): the longest recent n-gram that ends the text and occurred before
// proposes what followed it then. No weights; good wherever text repeats itself.
#include "ngram.h"

#include <algorithm>

namespace ngram {

constexpr int32_t kLongest = 4, kShortest = 2;  // n-gram lengths tried, long ones first

int32_t Lookup::propose_host(const aerie_host_context* context, aerie_host_candidates* out) {
  const int32_t* t = context->tokens;
  const int32_t n = context->n_tokens;
  out->count = 0;
  for (int32_t length = std::min(kLongest, n - 1); length >= kShortest; --length) {
    const int32_t* suffix = t + n - length;
    for (int32_t at = n - length - 1; at >= 0; --at) {  // the latest occurrence
      if (!std::equal(suffix, suffix + length, t + at)) continue;
      const int32_t follow = at + length;
      const int32_t count = std::min({n - follow, kMaxPath, out->capacity, context->max_depth});
      for (int32_t i = 0; i < count; ++i) {
        out->token[i] = t[follow + i];
        out->parent[i] = i - 1;
        out->confidence[i] = confidence(length + i);
      }
      out->count = count;
      return AERIE_D_OK;
    }
  }
  return AERIE_D_OK;
}

int32_t Lookup::open(const aerie_drafter_open_info*, aerie_drafter_needs* needs, aerie_drafter_error*) {
  needs->levels = 1;
  needs->max_depth = kMaxPath;
  return AERIE_D_OK;
}

}  // namespace ngram

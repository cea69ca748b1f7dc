// Prompt lookup decoding (PLD): the longest recent n-gram that ends the text and occurred before
// proposes what followed it then. No weights; good wherever text repeats itself.
#include <algorithm>
#include <cstring>
#include <new>

#include "aerie/drafter.h"

namespace {

constexpr int32_t kLongest = 4, kShortest = 2;  // n-gram lengths tried, long ones first
constexpr int32_t kMaxPath = 10;                // tokens proposed (PLD's published default)

// Confidence of the i-th proposed token (0-based) after a match of n tokens: longer matches are better,
// and each further token is less sure. Only the order matters to a path.
float confidence(int32_t n, int32_t i) {
  const float first = n >= 4 ? 0.8f : n == 3 ? 0.65f : 0.5f;
  return i == 0 ? first : 0.85f;
}

int32_t propose_host(void*, const aerie_host_context* context, aerie_host_candidates* out) {
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
        out->confidence[i] = confidence(length, i);
      }
      out->count = count;
      return AERIE_D_OK;
    }
  }
  return AERIE_D_OK;
}

void destroy(void*) {}
int32_t open(void*, const aerie_drafter_open_info*, aerie_drafter_needs* needs, aerie_drafter_error*) {
  needs->levels = 1;
  needs->max_depth = kMaxPath;
  return AERIE_D_OK;
}
int32_t begin(void*, int32_t) { return AERIE_D_OK; }
void end(void*, int32_t) {}

int32_t describe(uint32_t i, aerie_drafter_desc* out) {
  if (i != 0) return AERIE_D_INVALID;
  out->flags = AERIE_DRAFTER_HOST_TOKENS | AERIE_DRAFTER_NO_PACKAGE;
  std::strcpy(out->id, "ngram");
  std::strcpy(out->title, "Prompt lookup (PLD)");
  std::strcpy(out->version, "0.1.0");
  return AERIE_D_OK;
}

int32_t create(const aerie_drafter_host*, const char*, aerie_drafter* out, aerie_drafter_error*) {
  out->destroy = destroy;
  out->open = open;
  out->begin = begin;
  out->end = end;
  out->propose_host = propose_host;
  return AERIE_D_OK;
}

}  // namespace

extern "C" const aerie_drafter_plugin_table* aerie_drafter_plugin_entry(void) {
  static const aerie_drafter_plugin_table table = {sizeof table, AERIE_DRAFTER_ABI_MAJOR, 0, AERIE_DRAFTER_ABI_MINOR,
                                                   describe,     create};
  return &table;
}

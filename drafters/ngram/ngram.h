// Two drafters that guess from the text itself: "ngram" (prompt lookup) and "ngram-suffix" (suffix automaton).
#pragma once

#include "aerie/drafter.h"

namespace ngram {

constexpr int32_t kMaxPath = 10;  // tokens proposed after a match (PLD's published default)

// Confidence that a match of n tokens goes on as it did before, for the i-th token proposed (0-based): longer matches
// are better, and each further token is less sure.
inline float confidence(int32_t n, int32_t i) {
  const float first = n >= 4 ? 0.8f : n == 3 ? 0.65f : n == 2 ? 0.5f : 0.25f;
  return i == 0 ? first : 0.85f;
}

int32_t create_lookup(aerie_drafter* out);
int32_t create_suffix(aerie_drafter* out);

}  // namespace ngram

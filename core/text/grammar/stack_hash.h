#pragma once

#include <cstddef>
#include <cstdint>

namespace aerie::text::grammar {

inline uint64_t hash_of_words(const uint32_t* words, size_t n) {
  uint64_t h = n;
  for (size_t i = 0; i < n; ++i) h = (h ^ words[i]) * 0x9E3779B97F4A7C15u, h ^= h >> 29;
  return h;
}

}  // namespace aerie::text::grammar

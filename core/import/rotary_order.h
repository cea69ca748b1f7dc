// Order of the rows of q and k. Rotary pairs are neighbours in llama2.c's and llama.cpp's checkpoints of Llama, the halves of a
// head in Hugging Face's and ours. Every dot product of q and k stays as it was.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace aerie {

// w (heads * head_dim, cols) with element i of every head where `place` (i) says.
template <class Place>
std::vector<float> reordered_heads(const std::vector<float>& w, int64_t heads, int64_t head_dim, int64_t cols, Place&& place) {
  std::vector<float> out(w.size());
  for (int64_t h = 0; h < heads; ++h)
    for (int64_t i = 0; i < head_dim; ++i)
      std::copy_n(w.begin() + (h * head_dim + i) * cols, cols, out.begin() + (h * head_dim + place(i)) * cols);
  return out;
}

// head_dim even.
inline std::vector<float> rotate_half_order(const std::vector<float>& w, int64_t heads, int64_t head_dim, int64_t cols) {
  return reordered_heads(w, heads, head_dim, cols, [&](int64_t i) { return (i % 2) * (head_dim / 2) + i / 2; });
}

// Where only the first `rotated` elements of a head are, their halves being the pairs: the halves of the whole head are pairs, of
// which the first rotated / 2 are these. Both even.
inline std::vector<float> partly_rotated_order(const std::vector<float>& w, int64_t heads, int64_t head_dim, int64_t rotated, int64_t cols) {
  const int64_t half = head_dim / 2, turned = rotated / 2;
  return reordered_heads(w, heads, head_dim, cols, [&](int64_t i) {
    if (i < turned) return i;
    if (i < rotated) return half + i - turned;
    const int64_t j = i - rotated;  // of those that are left alone
    return j < half - turned ? turned + j : half + turned + j - (half - turned);
  });
}

}  // namespace aerie

// Order of the rows of q and k. Rotary pairs are neighbours in llama2.c's and llama.cpp's checkpoints of Llama, the halves of a
// head in Hugging Face's and ours. Every dot product of q and k stays as it was.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace aerie {

// w: (heads * head_dim, cols), head_dim even.
inline std::vector<float> rotate_half_order(const std::vector<float>& w, int64_t heads, int64_t head_dim, int64_t cols) {
  std::vector<float> out(w.size());
  for (int64_t h = 0; h < heads; ++h)
    for (int64_t i = 0; i < head_dim; ++i) {
      const int64_t from = h * head_dim + i, to = h * head_dim + (i % 2) * (head_dim / 2) + i / 2;
      std::copy_n(w.begin() + from * cols, cols, out.begin() + to * cols);
    }
  return out;
}

}  // namespace aerie

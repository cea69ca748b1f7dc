// gpt-oss's experts as its two kinds of files have them.
#pragma once

#include "unit/package/fixtures.h"
#include "unit/package/gguf_builder.h"

namespace aerie::test {

constexpr uint32_t kGgufMxfp4 = 39;

// Published blocks as llama.cpp's: the scale in front, and the lower halves of bytes are the first 16 weights. Rows `first`, `first` + `step` ...
inline std::string gguf_blocks_of(const Source& blocks, const Source& scales, size_t first, size_t step) {
  const auto per_row = static_cast<size_t>(blocks.shape[2]);
  std::string out;
  for (size_t row = first; row < scales.values.size() / per_row; row += step)
    for (size_t b = row * per_row; b < (row + 1) * per_row; ++b) {
      out += static_cast<char>(scales.values[b]);
      const auto code = [&](size_t i) { return static_cast<int>(blocks.values[16 * b + i / 2]) >> (i % 2 * 4) & 15; };
      for (size_t i = 0; i < 16; ++i) out += static_cast<char>(code(i) | code(i + 16) << 4);
    }
  return out;
}

// As llama.cpp's converter makes them of the directory's tensors: gates apart from what they gate, rows before columns.
inline void add_gpt_oss_experts(const Sources& tensors, Gguf* g) {
  for (const auto& [name, s] : tensors) {
    const size_t at = name.find("mlp.experts.");
    if (at == std::string::npos || name.ends_with("_scales")) continue;
    const std::string layer = "blk." + name.substr(std::strlen("model.layers."), at - std::strlen("model.layers."));
    const bool down = name.find("down_proj") != std::string::npos, bias = name.ends_with("_bias"), blocks = name.ends_with("_blocks");
    const int64_t experts = s.shape[0], all = s.shape[bias || blocks ? 1 : 2], cols = bias ? 1 : blocks ? s.shape[2] * 32 : s.shape[1];
    const int64_t sides = down ? 1 : 2, rows = all / sides;
    for (int64_t side = 0; side < sides; ++side) {
      const std::string to = layer + (down ? "ffn_down_exps" : side ? "ffn_up_exps" : "ffn_gate_exps") + (bias ? ".bias" : ".weight");
      if (blocks) {
        const Source& scales = tensors.at(name.substr(0, name.size() - std::strlen("_blocks")) + "_scales");
        g->tensor(to, {experts, rows, cols}, kGgufMxfp4, gguf_blocks_of(s, scales, static_cast<size_t>(side), static_cast<size_t>(sides)));
        continue;
      }
      std::vector<float> values;
      for (int64_t e = 0; e < experts; ++e)
        for (int64_t r = side; r < all; r += sides)
          for (int64_t c = 0; c < cols; ++c) values.push_back(s.values[static_cast<size_t>((e * cols + c) * all + r)]);
      g->tensor(to, bias ? std::vector<int64_t>{experts, rows} : std::vector<int64_t>{experts, rows, cols}, values);
    }
  }
}

}  // namespace aerie::test

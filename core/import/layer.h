// What Llama models and EAGLE heads have in common: a decoder layer under Hugging Face's names.
#pragma once

#include <string>
#include <vector>

#include "core/import/sink.h"
#include "core/import/source.h"

namespace aerie {

class LayerImport {
 public:
  // `steps` tensors or groups of them will be taken: the unit of progress.
  LayerImport(const ConvertOptions& options, Sink& sink, TensorTaker& taker, int64_t steps)
      : options_(options), sink_(sink), taker_(taker), steps_(static_cast<uint64_t>(steps)) {}

  Result<std::vector<float>> take(const std::string& name, int64_t rows, int64_t cols);
  // One source tensor under another name.
  Status weight(const std::string& to, const std::string& from, int64_t rows, int64_t cols);
  Status vector(const std::string& to, const std::string& from, int64_t n);
  // qkv (and bias when c.qkv_bias), o, mlp_norm, gate_up, down: from `from`self_attn.q_proj... to `to`attn.qkv...
  // qkv reads qkv_cols columns, c.hidden unless told (EAGLE-3: twice that).
  Status layer(const std::string& from, const std::string& to, const LlamaConfig& c, int64_t qkv_cols = 0);

 private:
  struct Part {
    const char* name;
    int64_t rows;
  };
  // Source tensors stacked by rows; cols 0: vectors joined.
  Result<std::vector<float>> stack(const std::string& from, std::initializer_list<Part> parts, int64_t cols);
  Status step();

  const ConvertOptions& options_;
  Sink& sink_;
  TensorTaker& taker_;
  uint64_t steps_, done_ = 0;
};

}  // namespace aerie

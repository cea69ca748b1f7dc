// What an architecture of llama.cpp's computes otherwise than Llama, as its keys say or as llama.cpp has it where they say nothing.
#pragma once

#include "core/import/gguf_file.h"
#include "core/import/source_model.h"

namespace aerie {

// What a family reads of.
struct GgufSource {
  const GgufFile& file;
  std::string arch;   // what its keys begin with, "llama."
  TensorTaker& take;  // of the tensors that are parameters
  Status unsupported(const std::string& what) const { return error(Code::unsupported, file.name() + ": " + what); }
  Status bad(const std::string& what) const { return error(Code::bad_format, file.name() + ": " + what); }
};

// A mixture with other scores than a softmax, an expert that every row takes, or layers without experts before the others: what llama.cpp
// has in its code for an architecture. Values are expert_gating_func's.
struct GgufMixture {
  static constexpr int32_t kSoftmax = 1, kSigmoid = 2;
  int32_t scores;       // 0: as the file says
  int32_t usual;        // where it says nothing; 0: it must
  bool own_width;       // the shared expert's is said, else it is so many times that of one
  bool qwen2 = false;   // it counts a sigmoid, and widths follow from feed_forward_length where they are not said
};

struct GgufFamily {
  const char* architecture;
  bool neighbours;  // SourceModel's
  // RoPE and departures. m->config has its sizes, which are sound.
  Status (*read)(const GgufSource& s, SourceModel* m);
  // Whether it may have a mixture of them, and whether llama.cpp makes what they count add up to 1 there.
  enum class Experts : uint8_t { none, normed, as_they_are, as_said } experts = Experts::none;
  const GgufMixture* more = nullptr;
  bool nextn = more != nullptr;  // it may have layers for multi-token prediction
  bool by_layer = false;         // sizes may differ from layer to layer; `read` reads them
};

// The norm before the MLP has a name in some of them that is another norm's elsewhere.
constexpr DecoderNames mlp_norm_behind_attention() {
  DecoderNames names = kGgufNames;
  names.mlp_norm = "post_attention_norm";
  names.attn_post_norm = names.mlp_post_norm = "";
  return names;
}
inline constexpr DecoderNames kGgufMlpNormBehindAttention = mlp_norm_behind_attention();

// Code::unsupported, by name, for those that are not read.
Result<const GgufFamily*> gguf_family_of(const GgufFile& file);

// gguf_family.cc. Rotary positions that theta and a scaling say all of; of `m`, too.
Status plain_gguf_rope(const GgufSource& g, SourceModel* m, SourceRope* rope);
// Rotary positions of the first elements of a head, perhaps; of `m`, too.
Status partial_gguf_rope(const GgufSource& g, SourceModel* m);
// Which layers have a window: a list, or every layer but the last of so many.
Result<std::vector<bool>> read_gguf_pattern(const GgufSource& g, int32_t fallback, const SourceModel& m);
// gguf_delta.cc
Status gguf_qwen35(const GgufSource& g, SourceModel* m);
Status gguf_qwen3next(const GgufSource& g, SourceModel* m);
// gguf_lfm2.cc
Status gguf_lfm2(const GgufSource& g, SourceModel* m);
// gguf_gemma4.cc
Status gguf_gemma4(const GgufSource& g, SourceModel* m);
// gguf_gpt_oss.cc
Status gguf_gpt_oss(const GgufSource& g, SourceModel* m);

// gguf_rope.cc. Rotary positions of layers without a window; not yet those of `m`.
Status read_gguf_rope(const GgufSource& s, const SourceModel& m, SourceRope* rope);

// gguf_shared_experts.cc. What GgufFamily::more is about, when experts are counted.
Status read_more_of_gguf_experts(const GgufSource& s, const GgufFamily& family, SourceModel* m);
Status gguf_glm4moe(const GgufSource& g, SourceModel* m);
Status gguf_minimax_m2(const GgufSource& g, SourceModel* m);

// gguf_experts.cc. A mixture of experts, if there is one.
Status read_gguf_experts(const GgufSource& s, const GgufFamily& family, SourceModel* m);

}  // namespace aerie

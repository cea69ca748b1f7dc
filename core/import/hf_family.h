// What a model_type of Hugging Face's computes otherwise than Llama.
#pragma once

#include <functional>

#include "core/import/hf_config.h"

namespace aerie {

// Sizes that a file of the family need not say; 0 and -1: it must, or there are none.
struct FamilyDefaults {
  int32_t heads = 0, kv_heads = 0, head_dim = 0, vocab = 0, context = 2048;
  float eps = 1e-6f;
  int32_t bos = -1, eos = -1;
  bool no_ffn = false;  // intermediate_size is not said: all layers have experts
};

struct Family {
  const char* model_type;
  FamilyDefaults defaults;
  // RoPE and departures, and what else of `m` is not read for every family. m->config has its sizes.
  Status (*read)(const ConfigReader& j, SourceModel* m);
};

// Rotary positions that all layers share, and that theta and a scaling say all of.
Status plain_rope(const ConfigReader& j, SourceModel* m, SourceRope* rope, float theta = 10000);
// The same where only the first elements of a head may be rotated; rope->partial: how many, where the file says nothing.
Status partial_rope(const ConfigReader& j, SourceModel* m, SourceRope* rope);
// Which layers look at a window: by layer_types, where the file has them, else as usual(layer) says.
Result<std::vector<bool>> sliding_layers(const ConfigReader& j, const SourceModel& m, const std::function<bool(int32_t)>& usual);
// Layers for which `sliding` is true look at config.json's sliding_window, at `fallback` where it has none.
Status read_windows(const ConfigReader& j, const std::vector<bool>& sliding, int32_t fallback, SourceModel* m);
Status read_granite(const ConfigReader& j, SourceModel* m);
// Of Gemma's embedding: the square root of its width, rounded to the type that the weights are trained in, as transformers does.
float embed_scale_of(const ConfigReader& j, int32_t hidden);

// hf_experts.cc: families with a mixture of experts.
// How many there are and, under `used_key`, how many a row takes, else these.
Status read_experts(const ConfigReader& j, int32_t experts, int32_t used, bool normed, const DecoderNames& names, SourceModel* m,
                    const char* used_key = "num_experts_per_tok");
Status read_mixtral(const ConfigReader& j, SourceModel* m);
Status read_qwen3_moe(const ConfigReader& j, SourceModel* m);
Status read_olmoe(const ConfigReader& j, SourceModel* m);
Status read_granitemoe(const ConfigReader& j, SourceModel* m);
Status read_granitemoeshared(const ConfigReader& j, SourceModel* m);
// Code::unsupported where an integer, if it is there, is another than that one.
Status only(const ConfigReader& j, const char* key, int32_t value);
// Layers without experts that Qwen's files may name.
Status refuse_dense_layers(const ConfigReader& j);
Status read_gpt_oss(const ConfigReader& j, SourceModel* m);  // hf_gpt_oss.cc
// hf_shared_experts.cc: and with an expert that every row takes, or other scores.
Status read_qwen2_moe(const ConfigReader& j, SourceModel* m);
// Experts of Qwen's, with one for every row and a gate of it, but for whether they are normed; numbers where a file says nothing.
Status read_qwen2_experts(const ConfigReader& j, int32_t count, int32_t used, int32_t ffn, int32_t shared, SourceModel* m);
const ExpertNames& qwen2_expert_names();
Status read_glm4_moe(const ConfigReader& j, SourceModel* m);
Status read_dots1(const ConfigReader& j, SourceModel* m);
Status read_ernie4_5_moe(const ConfigReader& j, SourceModel* m);
Status read_minimax_m2(const ConfigReader& j, SourceModel* m);

Status read_gemma4(const ConfigReader& j, SourceModel* m);  // hf_gemma4.cc

// hf_delta.cc: families with recurrent layers.
Status read_qwen3_5(const ConfigReader& j, SourceModel* m);
Status read_qwen3_5_moe(const ConfigReader& j, SourceModel* m);
Status read_qwen3_next(const ConfigReader& j, SourceModel* m);
// hf_lfm2.cc: families whose recurrent layers are convolutions.
Status read_lfm2(const ConfigReader& j, SourceModel* m);
Status read_lfm2_moe(const ConfigReader& j, SourceModel* m);

// Code::unsupported, by name, for those that are not read.
Result<const Family*> family_of(const ConfigReader& j);

}  // namespace aerie

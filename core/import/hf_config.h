// Hugging Face's config.json of Llama-like models.
#pragma once

#include "core/import/hf_rope.h"
#include "core/import/json.h"
#include "core/import/layer.h"
#include "core/package/config.h"

namespace aerie {

// A model as its config.json describes it.
struct HfModel {
  int32_t wanted = 0;  // the longest text that is asked for; 0: any
  LlamaConfig config;  // but what the tensors decide (tied, qkv_bias) and the tokenizer narrows (vocab_used)
  const DecoderNames* names = &kHuggingFaceNames;
  std::vector<float> frequencies;  // rope.frequencies, where config.rope_scaling is listed
  int32_t rotated = 0;             // elements of a head that are rotated, the first; others are left alone
  float norm_offset = 0;           // of norms' weights: Gemma's are 1 more than the file says
  float logits_scale = 1;          // logits are divided by it
  std::vector<std::string> notes;  // what a user should know
};

// Whatever would make the same tensors mean another model is refused by name. Messages are "KEY: what".
Status read_model_config(const ConfigReader& j, HfModel* m);

// A message of package::check_config in the words of the file.
Status in_its_words(const Status& s);

// The parts an EAGLE head's config shares: heads, sizes, eps, rope, activation.
Status read_layer_config(const ConfigReader& j, LlamaConfig* c);

}  // namespace aerie

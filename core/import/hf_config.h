// Hugging Face's config.json of Llama-like models.
#pragma once

#include "core/import/hf_rope.h"
#include "core/import/json.h"

namespace aerie {

// Whatever would make the same tensors mean another model is refused by name. Messages are "KEY: what".
Status read_model_config(const ConfigReader& j, SourceModel* m);

// A message of package::check_config in the words of the file.
Status in_its_words(const Status& s);

// The parts an EAGLE head's config shares: heads, sizes, eps, rope, activation.
Status read_layer_config(const ConfigReader& j, LlamaConfig* c);

// Safetensors of a model, or of the model of language within one that sees images, under the names of the former.
Result<std::unique_ptr<TensorSource>> open_language_model(const std::string& path);

}  // namespace aerie

// What the imports of all drafter heads begin and end with: the config, the target they were made for, taps.
#pragma once

#include <memory>
#include <string>

#include "core/import/hf_config.h"
#include "core/import/layer.h"
#include "core/package/package.h"

namespace aerie {

struct HeadSource {
  std::string config_path;
  platform::JsonDocument config;
  std::unique_ptr<TensorSource> source;
  std::shared_ptr<const Package> target;
  int32_t hidden = 0;  // its own width

  ConfigReader reader() const { return ConfigReader(config.root(), {"eagle_config", "transformer_layer_config"}); }  // speculators'
  const LlamaConfig& target_config() const { return *target->target(); }
  // Errors that name the config file, and for mismatches the target's value.
  Status bad(const char* key, const std::string& what) const;
  Status differs(const std::string& drafter_for, const char* key, int64_t ours, int64_t theirs) const;
};

Result<std::shared_ptr<const Package>> open_target(const ConvertOptions& o);  // of --drafter-for

// Opens config.json, the tensors and the target package; hidden_size and vocab_size, where given, must be its. A head that
// may have a width of its own has one where target_hidden_size is the target's.
Result<HeadSource> open_head(const ConvertOptions& o, bool own_width = false);

// Sizes of a head's decoder layers (heads, ffn, eps, rope; one layer), checked against the target.
Result<LlamaConfig> read_head_layers(const ConvertOptions& o, const HeadSource& head);

// eagle_aux_hidden_state_layer_ids, or EAGLE-3's choice: inputs of target layers.
// A list that begins with 1 counts outputs and is moved by one (SGLang's convention).
Status read_taps(const HeadSource& head, std::vector<int32_t>* taps);

// Takes the head's embedding, `name`, if it is there; it is kept, with a warning, when it is not a copy of the target's. A head
// with a width of its own must have one.
Status import_own_embedding(const HeadSource& head, LayerImport& import, TensorTaker& take, Sink& sink,
                            const std::string& name = "embed_tokens.weight");

// The same of an LM head that should be the target's.
Status import_own_head(const HeadSource& head, LayerImport& import, TensorTaker& take, Sink& sink, const std::string& name);
// Code::mismatch where the model's embedding, `name`, which lies beside what is converted, is not the target's.
Status expect_targets_embedding(const HeadSource& head, LayerImport& import, const std::string& name);

using HeadParams = std::vector<std::pair<std::string, double>>;
HeadParams layer_params(const LlamaConfig& c);
HeadParams tap_params(const std::vector<int32_t>& taps);
void finish_head(const HeadSource& head, Sink& sink, const std::string& plugin, const HeadParams& params);

}  // namespace aerie

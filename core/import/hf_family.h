// What a model_type of Hugging Face's computes otherwise than Llama.
#pragma once

#include "core/import/hf_config.h"

namespace aerie {

// Sizes that a file of the family need not say; 0 and -1: it must, or there are none.
struct FamilyDefaults {
  int32_t heads = 0, kv_heads = 0, head_dim = 0, vocab = 0, context = 2048;
  float eps = 1e-6f;
  int32_t bos = -1;
};

struct Family {
  const char* model_type;
  FamilyDefaults defaults;
  // RoPE and departures, and what else of `m` is not read for every family. m->config has its sizes.
  Status (*read)(const ConfigReader& j, SourceModel* m);
};

// Code::unsupported, by name, for those that are not read.
Result<const Family*> family_of(const ConfigReader& j);

}  // namespace aerie

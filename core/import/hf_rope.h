// Rotary positions as a config.json describes them.
#pragma once

#include "core/import/json.h"
#include "core/import/source_model.h"

namespace aerie {

// `layer_type`: where the file describes those of several types of layers, this one. `reads`: what max_position_embeddings says;
// `wanted`: the longest text that is asked for, 0: any. Messages are "KEY: what".
Status read_rope(const ConfigReader& j, const char* layer_type, int32_t reads, int32_t wanted, SourceRope* out);

}  // namespace aerie

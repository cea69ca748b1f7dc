// A model's own layer for multi-token prediction as a drafter, whatever its files' format.
#pragma once

#include "core/import/head.h"
#include "core/import/source_model.h"

namespace aerie {

struct MtpNames {
  std::string all;  // what all of their names begin with
  std::string fc, input_norm, hidden_norm, norm, layer, embed, lm_head;  // whole, but for the layer's: what its begin with
  bool norm_output;  // drafted rows read what norm gives
};

// `source`: as_ours(). head.config_path: what messages name.
Status import_mtp_layers(const ConvertOptions& o, Sink& sink, const HeadSource& head, const TensorSource& source, const MtpNames& n, SourceModel* m);

}  // namespace aerie

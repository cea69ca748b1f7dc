// The plugin's door: drafters "eagle" (EAGLE-1/2) and "eagle3"; and what their heads share.
#include "eagle.h"

namespace eagle {

int32_t Head::open_head(const aerie_drafter_open_info* info, int64_t fc_cols, int64_t qkv_cols, int32_t layers,
                        aerie_drafter_error* err) {
  const aerie_package* p = info->package;
  int32_t code = 0;
  if ((code = package->decoder_layer(p, "layers.0.", hidden, qkv_cols, &layer, err)) ||
      (code = package->tensor(p, "fc", hidden, fc_cols, &fc, err)))
    return code;
  if (package->has(p, "fc.bias") && (code = package->tensor(p, "fc.bias", 1, hidden, &fc_bias, err))) return code;
  if ((hidden != info->hidden || package->has(p, "embed")) && (code = package->tensor(p, "embed", info->vocab, hidden, &embed, err))) return code;
  if ((code = open_kv(p, layer, layers, &kv, err))) return code;
  if ((code = compute->tensor_create(host, int64_t{info->max_seqs} * info->max_nodes, hidden, &state)))
    return aerie::drafter_fail(err, code, "no room for the node states");
  return AERIE_D_OK;
}

}  // namespace eagle

AERIE_DRAFTER_PLUGIN(eagle::Eagle, eagle::Eagle3)

// The plugin's door: drafters "eagle" (EAGLE-1/2) and "eagle3".
#include "eagle.h"

namespace eagle {

int32_t find_services(const aerie_drafter_host* host, Head* head, aerie_drafter_error* err) {
  head->host = host;
  head->compute = static_cast<const aerie_service_compute*>(host->get_service(host, AERIE_SERVICE_COMPUTE));
  head->package = static_cast<const aerie_service_package*>(host->get_service(host, AERIE_SERVICE_PACKAGE));
  if (head->compute && head->package) return AERIE_D_OK;
  return fail(err, AERIE_D_UNSUPPORTED, "the host lacks " AERIE_SERVICE_COMPUTE " or " AERIE_SERVICE_PACKAGE);
}

int32_t Head::open(const aerie_drafter_open_info* info, const char* prefix, int64_t fc_cols, int64_t qkv_cols,
                   aerie_drafter_error* err) {
  const aerie_package* p = info->package;
  hidden = info->hidden;
  int32_t code = 0;
  if ((code = package->decoder_layer(p, prefix, hidden, qkv_cols, &layer, err)) ||
      (code = package->tensor(p, "fc", hidden, fc_cols, &fc, err)))
    return code;
  if (package->has(p, "fc.bias") && (code = package->tensor(p, "fc.bias", 1, hidden, &fc_bias, err))) return code;
  if (package->has(p, "embed") && (code = package->tensor(p, "embed", info->vocab, hidden, &embed, err))) return code;
  aerie_kv_desc desc{};
  desc.struct_size = sizeof desc;
  desc.layers = 1;
  desc.kv_heads = layer.kv_heads;
  desc.head_dim = layer.head_dim;
  desc.rope_theta = static_cast<float>(package->param(p, "rope_theta", 10000));
  if ((code = compute->kv_create(host, &desc, &kv))) return fail(err, code, "no room for the KV cache");
  if ((code = compute->tensor_create(host, int64_t{info->max_seqs} * info->max_nodes, hidden, &state)))
    return fail(err, code, "no room for the node states");
  return AERIE_D_OK;
}

int32_t begin(void*, int32_t) { return AERIE_D_OK; }
void end(void*, int32_t) {}

}  // namespace eagle

namespace {

int32_t describe(uint32_t i, aerie_drafter_desc* out) {
  if (i > 1) return AERIE_D_INVALID;
  out->flags = AERIE_DRAFTER_FEATURES;
  std::strcpy(out->id, i == 0 ? "eagle" : "eagle3");
  std::strcpy(out->title, i == 0 ? "EAGLE-1/2: autoregression on features" : "EAGLE-3: fused features, own vocabulary");
  std::strcpy(out->version, "0.1.0");
  return AERIE_D_OK;
}

int32_t create(const aerie_drafter_host* host, const char* id, aerie_drafter* out, aerie_drafter_error* err) {
  return std::strcmp(id, "eagle3") ? eagle::create_eagle(host, out, err) : eagle::create_eagle3(host, out, err);
}

}  // namespace

extern "C" const aerie_drafter_plugin_table* aerie_drafter_plugin_entry(void) {
  static const aerie_drafter_plugin_table table = {sizeof table, AERIE_DRAFTER_ABI_MAJOR, 0, AERIE_DRAFTER_ABI_MINOR,
                                                   describe,     create};
  return &table;
}

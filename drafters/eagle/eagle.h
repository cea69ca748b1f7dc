// What EAGLE-1/2 and EAGLE-3 share: the host's services, the buffers and the errors of a one-layer head.
#pragma once

#include <cstdio>
#include <cstring>

#include "aerie/drafter.h"

namespace eagle {

inline int32_t fail(aerie_drafter_error* err, int32_t code, const char* message) {
  if (err && err->struct_size >= sizeof *err) {
    err->code = code;
    std::snprintf(err->message, sizeof err->message, "%s", message);
  }
  return code;
}

struct Head {
  const aerie_drafter_host* host = nullptr;
  const aerie_service_compute* compute = nullptr;
  const aerie_service_package* package = nullptr;

  aerie_decoder_layer layer{};
  aerie_tensor fc{}, fc_bias{}, embed{};
  aerie_tensor state{};  // (max_seqs * max_nodes, H): output of every fed node
  aerie_kv* kv = nullptr;
  int32_t hidden = 0;

  // fc (H, fc_cols), the layer under `prefix` reading qkv_cols columns, own embedding if there is one, KV, states.
  int32_t open(const aerie_drafter_open_info* info, const char* prefix, int64_t fc_cols, int64_t qkv_cols,
               aerie_drafter_error* err);
  void embed_tokens(aerie_plan* plan, const aerie_draft_rows* rows, const aerie_tensor& out) const {
    if (embed.data) compute->embed(plan, &embed, &rows->token, &out);
    else compute->embed_target(plan, &rows->token, &out);
  }
};

int32_t begin(void* self, int32_t seq);
void end(void* self, int32_t seq);

// Fill in `out` for a head whose services are `head`'s; each is a drafter of its own.
int32_t create_eagle(const aerie_drafter_host* host, aerie_drafter* out, aerie_drafter_error* err);
int32_t create_eagle3(const aerie_drafter_host* host, aerie_drafter* out, aerie_drafter_error* err);
// The services a head needs; AERIE_D_UNSUPPORTED when the host lacks one.
int32_t find_services(const aerie_drafter_host* host, Head* head, aerie_drafter_error* err);

}  // namespace eagle

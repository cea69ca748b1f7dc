// External draft model: any packaged target with the same vocabulary proposes the next tokens
// (speculative decoding as first published; Leviathan et al., 2023).
#include <cstdio>
#include <cstring>
#include <new>

#include "aerie/drafter.h"

namespace {

struct SmallModel {
  const aerie_drafter_host* host = nullptr;
  const aerie_service_compute* compute = nullptr;
  const aerie_service_model* model = nullptr;
  aerie_submodel* draft = nullptr;
  aerie_tensor root{};  // (max_seqs * max_nodes, H): final hidden state of each sequence's root
  int32_t hidden = 0;
};

int32_t fail(aerie_drafter_error* err, int32_t code, const char* message) {
  if (err && err->struct_size >= sizeof *err) {
    err->code = code;
    std::snprintf(err->message, sizeof err->message, "%s", message);
  }
  return code;
}

void destroy(void* self) { delete static_cast<SmallModel*>(self); }

int32_t open(void* self, const aerie_drafter_open_info* info, aerie_drafter_needs* needs, aerie_drafter_error* err) {
  SmallModel& s = *static_cast<SmallModel*>(self);
  if (const int32_t code = s.model->open(s.host, info->package, &s.draft, err)) return code;
  if (s.model->vocab_hash(s.draft) != info->target_vocab_hash)
    return fail(err, AERIE_D_INVALID, "vocabulary: the draft model's tokens are not the target's");
  s.hidden = s.model->hidden_size(s.draft);
  if (s.compute->tensor_create(s.host, int64_t{info->max_seqs} * info->max_nodes, s.hidden, &s.root))
    return fail(err, AERIE_D_NO_MEMORY, "no room for the states of the roots");
  needs->levels = 1;
  return AERIE_D_OK;
}

int32_t begin(void*, int32_t) { return AERIE_D_OK; }
void end(void*, int32_t) {}

int32_t observe(void* self, aerie_plan* plan, const aerie_draft_rows* rows) {
  const SmallModel& s = *static_cast<SmallModel*>(self);
  aerie_tensor hidden;
  if (s.compute->scratch(plan, rows->n, s.hidden, &hidden)) return AERIE_D_NO_MEMORY;
  s.model->forward(plan, s.draft, rows, &hidden);
  return s.compute->copy_rows(plan, &hidden, &rows->last_row, &s.root, &rows->root, rows->n_seqs);
}

int32_t propose(void* self, aerie_plan* plan, const aerie_draft_rows* rows, aerie_candidates* out) {
  const SmallModel& s = *static_cast<SmallModel*>(self);
  aerie_tensor hidden;
  if (s.compute->scratch(plan, rows->n, s.hidden, &hidden)) return AERIE_D_NO_MEMORY;
  if (rows->level == 0) s.compute->copy_rows(plan, &s.root, &rows->node, &hidden, nullptr, rows->n);
  else s.model->forward(plan, s.draft, rows, &hidden);
  return s.model->propose(plan, s.draft, &hidden, out);
}

int32_t describe(uint32_t i, aerie_drafter_desc* out) {
  if (i != 0) return AERIE_D_INVALID;
  out->flags = AERIE_DRAFTER_TAKES_TARGET;
  std::strcpy(out->id, "small_model");
  std::strcpy(out->title, "External draft model");
  std::strcpy(out->version, "0.1.0");
  return AERIE_D_OK;
}

int32_t create(const aerie_drafter_host* host, const char*, aerie_drafter* out, aerie_drafter_error* err) {
  auto* s = new (std::nothrow) SmallModel;
  if (!s) return AERIE_D_NO_MEMORY;
  s->host = host;
  s->compute = static_cast<const aerie_service_compute*>(host->get_service(host, AERIE_SERVICE_COMPUTE));
  s->model = static_cast<const aerie_service_model*>(host->get_service(host, AERIE_SERVICE_MODEL));
  if (!s->compute || !s->model) {
    delete s;
    return fail(err, AERIE_D_UNSUPPORTED, "the host lacks aerie.compute/1 or aerie.model/1");
  }
  out->self = s;
  out->destroy = destroy;
  out->open = open;
  out->begin = begin;
  out->end = end;
  out->observe = observe;
  out->propose = propose;
  return AERIE_D_OK;
}

}  // namespace

extern "C" const aerie_drafter_plugin_table* aerie_drafter_plugin_entry(void) {
  static const aerie_drafter_plugin_table table = {sizeof table, AERIE_DRAFTER_ABI_MAJOR, 0, AERIE_DRAFTER_ABI_MINOR,
                                                   describe,     create};
  return &table;
}

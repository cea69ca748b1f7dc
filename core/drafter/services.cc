// Host services: log, alloc, package, model. The compute service has a file of its own.
#include "core/drafter/services.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace aerie {

DrafterResources::~DrafterResources() {
  for (void* p : tensors) target->device()->release(p);
}

namespace {

DrafterResources& of(const aerie_drafter_host* host) { return *static_cast<DrafterResources*>(host->context); }

int32_t report(const Status& status, aerie_drafter_error* err) {
  const int32_t code = status.code() == Code::out_of_memory ? AERIE_D_NO_MEMORY : AERIE_D_INVALID;
  if (err && err->struct_size >= sizeof(aerie_drafter_error)) {
    err->code = code;
    const size_t n = std::min(status.message().size(), sizeof err->message - 1);
    std::memcpy(err->message, status.message().data(), n);
    err->message[n] = 0;
  }
  return code;
}

// ---- log, alloc ----

void log(const aerie_drafter_host* host, int32_t level, const char* message) {
  DrafterResources& d = of(host);
  if (d.log && message) d.log(level, "drafter " + d.id + ": " + message);
}
void* alloc(const aerie_drafter_host*, size_t bytes) { return ::operator new(bytes, std::align_val_t{64}, std::nothrow); }
void release(const aerie_drafter_host*, void* memory) { ::operator delete(memory, std::align_val_t{64}); }

// ---- package ----

int32_t package_tensor(const aerie_package* package, const char* name, aerie_tensor* out, aerie_drafter_error* err) {
  if (!package || !name || !out) return AERIE_D_INVALID;
  Result<kernels::Tensor> t = package->own->weights.tensor(name);
  if (!t.ok()) return report(t.status(), err);
  *out = to_abi(*t);
  return AERIE_D_OK;
}
int32_t package_has(const aerie_package* package, const char* name) {
  return package && name && package->own->package->has(name);
}
double package_param(const aerie_package* package, const char* name, double fallback) {
  if (!package || !name || !package->own->package->drafter()) return fallback;
  for (const auto& p : package->own->package->drafter()->params)
    if (p.name == name) return p.value;
  return fallback;
}

// ---- model ----

int32_t model_open(const aerie_drafter_host* host, const aerie_package* package, aerie_submodel** out,
                   aerie_drafter_error* err) {
  DrafterResources& d = of(host);
  if (!package || !out || !d.opening) return AERIE_D_INVALID;
  if (d.pool) return report(error(Code::invalid_argument, "a drafter has one KV cache"), err);
  ModelOptions options;
  options.kv_positions = d.kv_positions();
  options.kv_dtype = d.target->pool()->cache().dtype;
  auto model = Model::open(d.target->device(), d.package, options);
  if (!model.ok()) return report(model.status(), err);
  d.submodel = *model;
  d.pool = d.submodel->pool();
  *out = &d.submodel_handle;
  return AERIE_D_OK;
}
uint64_t model_vocab_hash(const aerie_submodel* m) { return m->own->submodel->vocab_hash(); }
int32_t model_hidden(const aerie_submodel* m) { return m->own->submodel->config().hidden; }

int32_t model_forward(aerie_plan* plan, aerie_submodel* m, const aerie_draft_rows* rows, const aerie_tensor* hidden) {
  if (!plan || !m || !rows || !hidden || !rows->attention) return AERIE_D_INVALID;
  const Model& model = *m->own->submodel;
  if (hidden->rows < rows->n || hidden->cols != model.config().hidden)
    return compute_fail(plan, "model forward: hidden has the wrong shape");
  const kernels::Tensor h = model.forward(*plan->plan, rows->attention->rows, {}, {});
  plan->plan->add(kernels::CopyRows{h, nullptr, from_abi(*hidden), nullptr, rows->n});
  return AERIE_D_OK;
}

int32_t model_propose(aerie_plan* plan, aerie_submodel* m, const aerie_tensor* hidden, aerie_candidates* out) {
  if (!plan || !m || !hidden || !out) return AERIE_D_INVALID;
  const Model& model = *m->own->submodel;
  if (hidden->cols != model.config().hidden)
    return compute_fail(plan, "model propose: hidden has the wrong shape");
  return record_candidates(plan, model.logits(*plan->plan, from_abi(*hidden)), {}, out);
}

}  // namespace

const void* drafter_service(const aerie_drafter_host*, const char* id) {
  static const aerie_service_log log_table{sizeof log_table, 0, log};
  static const aerie_service_alloc alloc_table{sizeof alloc_table, 0, alloc, release};
  static const aerie_service_package package_table{sizeof package_table, 0, package_tensor, package_has,
                                                   package_param};
  static const aerie_service_model model_table{
      sizeof model_table, 0, model_open, model_vocab_hash, model_hidden, model_forward, model_propose};
  if (!id) return nullptr;
  if (!std::strcmp(id, AERIE_SERVICE_LOG)) return &log_table;
  if (!std::strcmp(id, AERIE_SERVICE_ALLOC)) return &alloc_table;
  if (!std::strcmp(id, AERIE_SERVICE_PACKAGE)) return &package_table;
  if (!std::strcmp(id, AERIE_SERVICE_MODEL)) return &model_table;
  if (!std::strcmp(id, AERIE_SERVICE_COMPUTE)) return compute_service();
  return nullptr;
}

}  // namespace aerie

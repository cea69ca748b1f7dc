// Host services: log, alloc, package, model. The compute service has a file of its own.
#include "core/drafter/services.h"
#include "core/drafter/shapes.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>

namespace aerie {

DrafterResources::~DrafterResources() {
  for (void* p : tensors) target->device()->release(p);
}

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

namespace {

DrafterResources& of(const aerie_drafter_host* host) { return *static_cast<DrafterResources*>(host->context); }

// ---- log, alloc ----

void log(const aerie_drafter_host* host, int32_t level, const char* message) noexcept {
  DrafterResources& d = of(host);
  if (!d.log || !message) return;
  try {
    d.log(std::clamp(level, 0, 3), "drafter " + d.id + ": " + message);
  } catch (...) {  // no memory for the line: it is lost
  }
}
void* alloc(const aerie_drafter_host*, size_t bytes) {
  return bytes <= PTRDIFF_MAX ? ::operator new(bytes, std::align_val_t{64}, std::nothrow) : nullptr;  // rounded up it would wrap
}
void release(const aerie_drafter_host*, void* memory) { ::operator delete(memory, std::align_val_t{64}); }

// ---- package ----

std::string shape(int64_t rows, int64_t cols) {
  const auto side = [](int64_t n) { return n ? std::to_string(n) : std::string("any"); };
  return std::string("(") + side(rows) + ", " + side(cols) + ")";
}

int32_t package_tensor(const aerie_package* package, const char* name, int64_t rows, int64_t cols, aerie_tensor* out,
                       aerie_drafter_error* err) {
  if (!package || !name || !out || !package->own->opening) return AERIE_D_INVALID;
  Result<kernels::Tensor> t = package->own->weights.tensor(name);
  if (!t.ok()) return report(t.status(), err);
  if ((rows && t->rows != rows) || (cols && t->cols != cols))
    return report(error(Code::mismatch, std::string("package: ") + name + ": shape is " + shape(t->rows, t->cols) +
                                            ", the drafter needs " + shape(rows, cols)),
                  err);
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

int32_t package_integer(const aerie_package* package, const char* name, int32_t least, int32_t most, int32_t* out,
                        aerie_drafter_error* err) {
  if (!package || !name || !out) return AERIE_D_INVALID;
  const double value = package_param(package, name, NAN);
  if (std::isnan(value)) return report(error(Code::bad_format, std::string("package: parameter ") + name + " is missing"), err);
  if (!(value >= least && value <= most) || value != std::floor(value))
    return report(error(Code::bad_format, std::string("package: parameter ") + name + ": " + std::to_string(value) +
                                              " is not a whole number from " + std::to_string(least) + " to " +
                                              std::to_string(most)),
                  err);
  *out = static_cast<int32_t>(value);
  return AERIE_D_OK;
}

int32_t package_decoder_layer(const aerie_package* package, const char* prefix, int64_t hidden, int64_t qkv_cols,
                              aerie_decoder_layer* out, aerie_drafter_error* err) {
  if (!package || !prefix || !out || hidden < 1 || qkv_cols < 1) return AERIE_D_INVALID;
  aerie_decoder_layer w{};
  w.struct_size = sizeof w;
  int32_t ffn = 0;
  const auto integer = [&](const char* name, int32_t most, int32_t* value) {
    return package_integer(package, name, 1, most, value, err);
  };
  if (integer("heads", 1024, &w.heads) || integer("kv_heads", 1024, &w.kv_heads) ||
      integer("head_dim", 1024, &w.head_dim) || integer("ffn", 1 << 24, &ffn))
    return AERIE_D_INVALID;
  if (w.heads % w.kv_heads || w.head_dim % 2)
    return report(error(Code::bad_format, "package: parameters heads, kv_heads, head_dim: " + std::to_string(w.heads) +
                                              ", " + std::to_string(w.kv_heads) + ", " + std::to_string(w.head_dim) +
                                              " do not make a layer"),
                  err);
  w.rms_eps = static_cast<float>(package_param(package, "rms_eps", 1e-5));
  const int64_t q = int64_t{w.heads} * w.head_dim, qkv = q + 2 * int64_t{w.kv_heads} * w.head_dim;
  const std::string at = prefix;
  int32_t code = AERIE_D_OK;
  const auto tensor = [&](const char* name, int64_t rows, int64_t cols, aerie_tensor* t, bool needed = true) {
    const std::string full = at + name;
    if (code || (!needed && !package_has(package, full.c_str()))) return;
    code = package_tensor(package, full.c_str(), rows, cols, t, err);
  };
  tensor("attn_norm", 1, hidden, &w.attn_norm, false);
  tensor("attn.qkv", qkv, qkv_cols, &w.qkv);
  tensor("attn.qkv.bias", 1, qkv, &w.qkv_bias, false);
  tensor("attn.o", hidden, q, &w.o);
  tensor("mlp_norm", 1, hidden, &w.mlp_norm);
  tensor("mlp.gate_up", 2 * int64_t{ffn}, hidden, &w.gate_up);
  tensor("mlp.down", hidden, ffn, &w.down);
  if (!code) *out = w;
  return code;
}

// ---- model ----

int32_t model_open(const aerie_drafter_host* host, const aerie_package* package, aerie_submodel** out,
                   aerie_drafter_error* err) {
  DrafterResources& d = of(host);
  if (!package || !out || !d.opening) return AERIE_D_INVALID;
  if (!d.shown_rows) return report(error(Code::invalid_argument, "a drafter of HOST_TOKENS is shown no rows and runs no model"), err);
  if (d.pool) return report(error(Code::invalid_argument, "a drafter has one KV cache"), err);
  ModelOptions options;
  options.kv_positions = d.kv_positions();
  options.kv_dtype = d.target->pool()->cache().dtype;
  options.keep_prefixes = false;  // its pages are kept beside the target's
  // Its texts go back all the time, which recurrent layers do not.
  if (d.package->target() && d.package->target()->departures.recurrent())
    return report(error(Code::unsupported, d.package->path() + ": a model with recurrent layers (delta_layers) does not draft"), err);
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
  if (!m || m->own != plan->own || !rows) return compute_fail(plan, "model forward: missing argument, or another drafter's model");
  const Model& model = *m->own->submodel;
  if (!is_activation(hidden, rows->n, model.config().hidden))
    return compute_fail(plan, "model forward: hidden has the wrong shape: " + shapes({{"hidden", hidden}}) + " for " +
                                  std::to_string(rows->n) + " rows, the model is " + std::to_string(model.config().hidden) + " wide");
  if (!rows_attend(*rows)) return compute_fail(plan, "model forward: rows of level 0 attend to nothing");
  const kernels::Tensor h = model.forward(*plan->plan, rows->attention->rows, {}, {});
  plan->plan->add(kernels::CopyRows{h, nullptr, from_abi(*hidden), nullptr, rows->n});
  return AERIE_D_OK;
}

int32_t model_propose(aerie_plan* plan, aerie_submodel* m, const aerie_tensor* hidden, aerie_candidates* out) {
  if (!m || m->own != plan->own) return compute_fail(plan, "model propose: missing argument, or another drafter's model");
  const Model& model = *m->own->submodel;
  if (!is_activation(hidden) || hidden->cols != model.config().hidden)
    return compute_fail(plan, "model propose: hidden has the wrong shape: " + shapes({{"hidden", hidden}}) + ", the model is " +
                                  std::to_string(model.config().hidden) + " wide");
  return record_candidates(plan, model, from_abi(*hidden), out);
}

}  // namespace

const void* drafter_service(const aerie_drafter_host*, const char* id) {
  static const aerie_service_log log_table{sizeof log_table, 0, log};
  static const aerie_service_alloc alloc_table{sizeof alloc_table, 0, alloc, release};
  static const aerie_service_package package_table{sizeof package_table, 0, Walled<package_tensor>::call,
                                                   Walled<package_has>::call, package_param,
                                                   Walled<package_integer>::call, Walled<package_decoder_layer>::call};
  static const aerie_service_model model_table{sizeof model_table, 0, Walled<model_open>::call, model_vocab_hash,
                                               model_hidden, Walled<model_forward>::call, Walled<model_propose>::call};
  if (!id) return nullptr;
  if (!std::strcmp(id, AERIE_SERVICE_LOG)) return &log_table;
  if (!std::strcmp(id, AERIE_SERVICE_ALLOC)) return &alloc_table;
  if (!std::strcmp(id, AERIE_SERVICE_PACKAGE)) return &package_table;
  if (!std::strcmp(id, AERIE_SERVICE_MODEL)) return &model_table;
  if (!std::strcmp(id, AERIE_SERVICE_COMPUTE)) return compute_service();
  if (!std::strcmp(id, AERIE_SERVICE_LAYERS)) return layers_service();
  if (!std::strcmp(id, AERIE_SERVICE_BLOCK)) return block_service();
  return nullptr;
}

}  // namespace aerie

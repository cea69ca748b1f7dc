// Model and drafter handles.
#include "capi/src/aerie/handles.h"
#include "core/model/evaluate.h"

using namespace aerie;
using namespace aerie::capi;

namespace {

// The host's hook of some options, for the time of one call.
template <class Options>
LoadProgress load_progress(const Options& o) {
  if (!o.progress) return nullptr;
  return [hook = o.progress, user = o.progress_user](uint64_t done, uint64_t total) { return hook(user, done, total) != 0; };
}

Status read_model(const aerie_model_options& o, ModelOptions* out) {
  const auto bad = [](const char* name, int32_t value) {
    return error(Code::invalid_argument, std::string(name) + ": " + std::to_string(value));
  };
  constexpr kernels::DType kKvTypes[] = {kernels::DType::f32, kernels::DType::bf16, kernels::DType::int8};
  if (o.kv_dtype < 0 || o.kv_dtype > 2) return bad("kv_dtype", o.kv_dtype);
  if (o.kv_positions < 0) return bad("kv_positions", o.kv_positions);
  if (o.keep_prefixes < -1 || o.keep_prefixes > 0) return bad("keep_prefixes", o.keep_prefixes);
  if (o.prefill != AERIE_PREFILL_EXACT && o.prefill != AERIE_PREFILL_FAST) return bad("prefill", o.prefill);
  out->kv_positions = o.kv_positions;
  out->kv_dtype = kKvTypes[o.kv_dtype];
  out->keep_prefixes = o.keep_prefixes == 0;
  out->fast_prefill = o.prefill == AERIE_PREFILL_FAST;
  if (o.kv_full)
    out->kv_full = [full = o.kv_full, user = o.kv_full_user](int32_t wanted) {
      const LentBatch lent;
      return full(user, wanted) != 0;
    };
  return {};
}

}  // namespace

extern "C" {

int32_t aerie_model_open(aerie_runtime* runtime, const char* path, const aerie_model_options* options,
                         aerie_model** out, aerie_error* err) {
  return guard(err, [&]() -> Status {
    AERIE_TRY(require(runtime, "runtime"));
    AERIE_TRY(require(path, "path"));
    AERIE_TRY(require(out, "out"));
    aerie_model_options o;
    AERIE_TRY(read_struct(options, &o, "aerie_model_options"));
    ModelOptions m;
    AERIE_TRY(read_model(o, &m));
    OpenOptions open;
    open.check_data = o.check_data != 0;
    open.progress = load_progress(o);
    AERIE_ASSIGN(auto package, Package::open(path, open));
    AERIE_ASSIGN(auto model, Model::open(runtime->runtime->device, std::move(package), m));
    auto handle = std::make_unique<aerie_model>();
    handle->runtime = runtime->runtime;
    handle->model = std::move(model);
    *out = handle.release();
    return {};
  });
}

void aerie_model_retain(aerie_model* model) {
  if (model) model->references.fetch_add(1, std::memory_order_relaxed);
}

void aerie_model_release(aerie_model* model) {
  if (model && model->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete model;
}

int32_t aerie_model_info_get(const aerie_model* model, aerie_model_info* out, aerie_error* err) {
  return guard(err, [&]() -> Status {
    AERIE_TRY(require(model, "model"));
    AERIE_TRY(check_result(out, "aerie_model_info"));
    const LlamaConfig& c = model->model->config();
    const Package& package = model->model->package();
    aerie_model_info info{};
    info.vocab_size = c.vocab_size;
    info.hidden_size = c.hidden;
    info.layers = c.layers;
    info.heads = c.heads;
    info.kv_heads = c.kv_heads;
    info.head_dim = c.head_dim;
    info.ffn = c.ffn;
    info.max_context = c.max_context;
    info.bos_id = c.bos_id;
    info.n_eos = static_cast<int32_t>(c.eos_ids.size());
    info.eos_ids = c.eos_ids.data();
    info.name = package.name().c_str();
    info.fingerprint = package.fingerprint().c_str();
    for (const TensorInfo& t : package.tensors()) info.weight_bytes += static_cast<uint64_t>(t.raw_bytes);
    info.kv_bytes_per_token = static_cast<uint64_t>(model->model->pool()->shape().bytes_per_slot());
    info.prefill = model->model->fast_prefill() ? AERIE_PREFILL_FAST : AERIE_PREFILL_EXACT;
    write_result(info, out);
    return {};
  });
}

int32_t aerie_model_blob(const aerie_model* model, const char* name, const void** data, size_t* size,
                         aerie_error* err) {
  return guard(err, [&]() -> Status {
    AERIE_TRY(require(model, "model"));
    AERIE_TRY(require(name, "name"));
    AERIE_TRY(require(data, "data"));
    AERIE_TRY(require(size, "size"));
    const auto blob = model->model->package().blob(name);
    *data = blob.data();
    *size = blob.size();
    return {};
  });
}

int32_t aerie_model_evaluate(aerie_model* model, const int32_t* tokens, size_t n, const aerie_evaluate_options* options,
                             aerie_error* err) {
  return guard(err, [&]() -> Status {
    AERIE_TRY(require(model, "model"));
    if (n > 0) AERIE_TRY(require(tokens, "tokens"));
    AERIE_TRY(require(options, "options"));
    aerie_evaluate_options o;
    AERIE_TRY(read_struct(options, &o, "aerie_evaluate_options"));
    if (o.n_taps < 0) return error(Code::invalid_argument, "n_taps: " + std::to_string(o.n_taps));
    if (o.n_taps > 0) AERIE_TRY(require(o.taps, "taps"));
    EvaluateOptions e;
    e.taps = {o.taps, static_cast<size_t>(o.n_taps)};
    e.features = o.features;
    e.logits = o.logits;
    if (o.progress)
      e.keep_going = [&](int64_t done) { return o.progress(o.progress_user, static_cast<uint64_t>(done), n) != 0; };
    return evaluate(*model->model, {tokens, n}, e);
  });
}

int32_t aerie_drafter_open(aerie_model* model, const aerie_drafter_options* options, aerie_drafter_handle** out,
                           aerie_error* err) {
  return guard(err, [&]() -> Status {
    AERIE_TRY(require(model, "model"));
    AERIE_TRY(require(options, "options"));
    AERIE_TRY(require(out, "out"));
    aerie_drafter_options o;
    AERIE_TRY(read_struct(options, &o, "aerie_drafter_options"));
    std::shared_ptr<const Package> package;
    std::string id = o.plugin ? o.plugin : "";
    if (o.package) {
      OpenOptions open;
      open.progress = load_progress(o);
      AERIE_ASSIGN(package, Package::open(o.package, open));
      if (id.empty() && package->drafter()) id = package->drafter()->plugin_id;
    } else if (id.empty()) {
      return error(Code::invalid_argument, "drafter: give a package or a plugin id");
    }
    AERIE_ASSIGN(PluginKind kind, model->runtime->find_plugin(id, AERIE_DRAFTER_TAKES_TARGET));
    DrafterOptions d;
    if (o.max_sessions != 0) d.max_sequences = o.max_sessions;
    d.log = model->runtime->log;
    AERIE_ASSIGN(auto drafter, Drafter::open(model->model, std::move(kind), std::move(package), d));
    *out = new aerie_drafter_handle{model->runtime, std::move(drafter)};
    return {};
  });
}

void aerie_drafter_release(aerie_drafter_handle* drafter) { delete drafter; }

}  // extern "C"

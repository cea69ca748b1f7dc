// Profile handle: cost tables through the C ABI.
#include "aerie/profile.h"

#include <algorithm>
#include <thread>

#include "capi/src/aerie/handles.h"
#include "core/drafter/measure_drafter.h"

using namespace aerie;
using namespace aerie::capi;

struct aerie_profile {
  std::shared_ptr<const CostTable> table;  // null: empty
  std::string path;                        // of the file it came from, for errors
  std::string json;
  std::atomic<bool> busy{false}, cancel{false};
};

namespace {

constexpr int32_t kMaxListed = 64, kMaxBatch = 64;

template <class F>
int32_t on_profile(aerie_profile* p, aerie_error* err, F&& f) {
  return guard(err, [&]() -> Status {
    AERIE_TRY(require(p, "profile"));
    const HoldFlag hold(p->busy);
    AERIE_TRY(hold.check("profile"));
    return f();
  });
}

template <class F>
int32_t on_table(aerie_profile* p, aerie_error* err, F&& f) {
  return on_profile(p, err, [&]() -> Status {
    if (!p->table) return error(Code::invalid_argument, "the profile is empty: measure or load one");
    return f(*p->table);
  });
}

Status from_file(const aerie_profile& p, const Status& s) { return p.path.empty() ? s : s.at(p.path); }

Status read_list(const char* name, int32_t n, const int32_t* values, int32_t most, std::vector<int32_t>* out) {
  if (n < 0 || n > kMaxListed) return error(Code::invalid_argument, std::string("n_") + name + ": " + std::to_string(n));
  if (n == 0) return {};
  AERIE_TRY(require(values, name));
  out->assign(values, values + n);
  for (const int32_t v : *out)
    if (v < 1 || v > most)
      return error(Code::invalid_argument, std::string(name) + ": " + std::to_string(v) + " is not in 1 .. " + std::to_string(most));
  std::sort(out->begin(), out->end());
  out->erase(std::unique(out->begin(), out->end()), out->end());
  return {};
}

void make_quick(MeasureOptions* m, const LlamaConfig& config) {
  m->rows = {1, 2, 4, 8, 16, 32, 64, 128};
  if (m->contexts.empty()) m->contexts = {std::clamp(config.max_context / 2, 1, 256)};
  m->least_samples = 1;
  m->most_samples = 5;
  m->point_ms = 60;
}

}  // namespace

extern "C" {

int32_t aerie_profile_create(aerie_profile** out, aerie_error* err) {
  return guard(err, [&]() -> Status {
    AERIE_TRY(require(out, "out"));
    *out = new aerie_profile;
    return {};
  });
}

int32_t aerie_profile_load(const char* path, aerie_profile** out, aerie_error* err) {
  return guard(err, [&]() -> Status {
    AERIE_TRY(require(path, "path"));
    AERIE_TRY(require(out, "out"));
    AERIE_ASSIGN(CostTable table, load_cost_table(path));
    auto profile = std::make_unique<aerie_profile>();
    profile->table = std::make_shared<const CostTable>(std::move(table));
    profile->path = path;
    *out = profile.release();
    return {};
  });
}

void aerie_profile_release(aerie_profile* profile) {
  if (!profile) return;
  while (profile->busy.exchange(true, std::memory_order_acquire)) {
    aerie_profile_cancel(profile);
    std::this_thread::yield();
  }
  delete profile;
}

int32_t aerie_profile_measure(aerie_profile* profile, aerie_model* model, const aerie_profile_options* options, aerie_error* err) {
  return on_profile(profile, err, [&]() -> Status {
    AERIE_TRY(require(model, "model"));
    aerie_profile_options o;
    AERIE_TRY(read_struct(options, &o, "aerie_profile_options"));
    const LlamaConfig& config = model->model->config();
    MeasureOptions m;
    AERIE_TRY(read_list("batches", o.n_batches, o.batches, kMaxBatch, &m.batches));
    AERIE_TRY(read_list("contexts", o.n_contexts, o.contexts, config.max_context, &m.contexts));
    if (o.n_drafters < 0 || o.n_drafters > kMaxListed) return error(Code::invalid_argument, "n_drafters: " + std::to_string(o.n_drafters));
    if (o.n_drafters > 0) AERIE_TRY(require(o.drafters, "drafters"));
    std::vector<std::shared_ptr<Drafter>> drafters;
    for (int32_t i = 0; i < o.n_drafters; ++i) {
      AERIE_TRY(require(o.drafters[i], ("drafters: number " + std::to_string(i)).c_str()));
      drafters.push_back(o.drafters[i]->drafter);
    }
    if (o.quick) make_quick(&m, config);
    m.keep_going = [&] { return !profile->cancel.load(std::memory_order_relaxed); };
    std::function<void(uint64_t, uint64_t)> progress;
    if (o.progress)
      progress = [&](uint64_t done, uint64_t total) {
        if (!o.progress(o.progress_user, done, total)) profile->cancel.store(true, std::memory_order_relaxed);
      };
    Result<CostTable> table = measure_costs(*model->model, drafters, m, std::chrono::milliseconds(o.quick ? 1000 : 0), progress);
    const bool cancelled = profile->cancel.exchange(false, std::memory_order_relaxed);  // maybe too late for it to notice
    if (!table.ok()) return table.status();
    if (cancelled) return error(Code::cancelled, "profile: cancelled");
    profile->table = std::make_shared<const CostTable>(std::move(*table));
    profile->path.clear();
    return {};
  });
}

void aerie_profile_cancel(aerie_profile* profile) {
  if (profile) profile->cancel.store(true, std::memory_order_relaxed);
}

void aerie_profile_clear_cancel(aerie_profile* profile) {
  if (profile) profile->cancel.store(false, std::memory_order_relaxed);
}

int32_t aerie_profile_save(aerie_profile* profile, const char* path, aerie_error* err) {
  return on_table(profile, err, [&](const CostTable& t) -> Status {
    AERIE_TRY(require(path, "path"));
    return save_cost_table(t, path);
  });
}

int32_t aerie_profile_json(aerie_profile* profile, const char** text, size_t* size, aerie_error* err) {
  return on_table(profile, err, [&](const CostTable& t) -> Status {
    AERIE_TRY(require(text, "text"));
    profile->json = cost_table_json(t);
    *text = profile->json.c_str();
    if (size) *size = profile->json.size();
    return {};
  });
}

int32_t aerie_profile_attach(aerie_profile* profile, aerie_model* model, aerie_error* err) {
  return on_table(profile, err, [&](const CostTable&) -> Status {
    AERIE_TRY(require(model, "model"));
    return from_file(*profile, model->model->use_costs(profile->table));
  });
}

int32_t aerie_profile_attach_drafter(aerie_profile* profile, aerie_drafter_handle* drafter, aerie_error* err) {
  return on_table(profile, err, [&](const CostTable&) -> Status {
    AERIE_TRY(require(drafter, "drafter"));
    return from_file(*profile, drafter->drafter->use_costs(profile->table));
  });
}

int32_t aerie_profile_target_ms(aerie_profile* profile, int32_t batch, int32_t context, int32_t rows, double* ms, aerie_error* err) {
  return on_table(profile, err, [&](const CostTable& t) -> Status {
    AERIE_TRY(require(ms, "ms"));
    if (batch < 1 || context < 1 || rows < 1)
      return error(Code::invalid_argument, "batch " + std::to_string(batch) + ", context " + std::to_string(context) + ", rows " +
                                               std::to_string(rows) + ": each is at least 1");
    *ms = t.target.ms(batch, context, rows);
    return {};
  });
}

}  // extern "C"

#include "core/drafter/drafter.h"

#include <chrono>
#include <cstdio>
#include <cstring>
#include <new>
#include <type_traits>

#include "core/drafter/services.h"

namespace aerie {

namespace {

// A recorded call takes microseconds; one that holds the host this long is broken.
constexpr auto kCallDeadline = std::chrono::seconds(2);

// A reduced draft vocabulary names the target's tokens; plugins cannot look, its map is on the device by then.
Status check_vocab_map(const Model& target, const Package& package) {
  constexpr const char* kName = "vocab_map";
  if (!package.has(kName)) return {};
  AERIE_ASSIGN(const kernels::Tensor map, package.tensor(kName));
  if (map.dtype != kernels::DType::i32) return {};  // something else of this name, or the plugin's to refuse
  const auto* ids = static_cast<const int32_t*>(map.data);
  const int32_t vocab = target.config().vocab_size;
  for (int64_t i = 0; i < map.rows * map.cols; ++i)
    if (ids[i] < 0 || ids[i] >= vocab)
      return error(Code::bad_format, package.path() + ": " + kName + ": entry " + std::to_string(i) + ": token " +
                                         std::to_string(ids[i]) + " is not in the target's vocabulary of " +
                                         std::to_string(vocab));
  return {};
}

Status check_package(const PluginKind& kind, const Model& target, const Package* package) {
  const aerie_drafter_desc& d = kind.desc;
  if (!package) {
    if (d.flags & AERIE_DRAFTER_NO_PACKAGE) return {};
    return error(Code::invalid_argument, std::string("drafter ") + d.id + " needs a package");
  }
  if (package->kind() == PackageKind::target) {
    if (d.flags & AERIE_DRAFTER_TAKES_TARGET) return {};
    return error(Code::mismatch, package->path() + ": a target package; drafter " + d.id + " wants one of its own");
  }
  if (package->drafter()->plugin_id != d.id)
    return error(Code::mismatch, package->path() + ": plugin id: made for drafter " + package->drafter()->plugin_id +
                                     ", not " + d.id);
  if (package->drafter()->target_fingerprint != target.package().fingerprint())
    return error(Code::mismatch, package->path() + ": target fingerprint: made for another target (" +
                                     package->drafter()->target_fingerprint + "), this one is " +
                                     target.package().fingerprint());
  return check_vocab_map(target, *package);
}

}  // namespace

Drafter::Drafter(std::shared_ptr<Model> target, PluginKind kind, std::shared_ptr<const Package> package,
                 const DrafterOptions& options)
    : own_(std::move(target), std::move(package)), kind_(std::move(kind)) {
  own_.id = kind_.desc.id;
  own_.log = options.log;
  own_.max_sequences = options.max_sequences;
  own_.shown_rows = !host_tokens();
  for (int32_t i = options.max_sequences - 1; i >= 0; --i) free_sequences_.push_back(i);
}

Result<std::shared_ptr<Drafter>> Drafter::open(std::shared_ptr<Model> target, PluginKind kind,
                                               std::shared_ptr<const Package> package, const DrafterOptions& options) {
  if (options.max_sequences < 1 || options.max_sequences > 4096)
    return error(Code::invalid_argument, "max_sessions: " + std::to_string(options.max_sequences));
  AERIE_TRY(check_package(kind, *target, package.get()));
  std::shared_ptr<Drafter> d(new Drafter(std::move(target), std::move(kind), std::move(package), options));
  AERIE_TRY(d->start());
  return d;
}

Drafter::~Drafter() {
  const auto destroy = [](const void*, const aerie_drafter& d) -> int32_t { return d.destroy(d.self), AERIE_D_OK; };
  if (created_ && plugin_.destroy) (void)guarded("destroy", destroy, nullptr);
}

// `what` failed: in the plugin's own words where it has any.
Status Drafter::failed(const char* what, const Status& s, aerie_drafter_error* err) const {
  err->message[sizeof err->message - 1] = 0;
  std::string said = err->message[0] ? err->message : s.message();
  if (own_.package && said.find(own_.package->path()) == std::string::npos) said.insert(0, own_.package->path() + ": ");
  return error(s.code(), "drafter " + own_.id + ": " + what + ": " + said);
}

Status Drafter::start() {
  AERIE_TRY(create_plugin());
  AERIE_TRY(open_plugin());
  AERIE_TRY(check_needs());
  if (PrefixIndex* prefixes = own_.target->prefixes(); prefixes && own_.pool)
    own_.pool->on_shortage([prefixes, pool = own_.pool.get()] { return prefixes->drop_one(*pool); });
  return find_extensions();
}

Status Drafter::create_plugin() {
  host_ = {sizeof host_, AERIE_DRAFTER_ABI_MAJOR, AERIE_DRAFTER_ABI_MINOR, 0, &own_, drafter_service};
  aerie_drafter_error err{};
  err.struct_size = sizeof err;
  plugin_.struct_size = sizeof plugin_;
  const Status s = call("create", [&](const aerie_drafter&) {
    const int32_t code = kind_.table->create(&host_, kind_.desc.id, &plugin_, &err);
    created_ = code == AERIE_D_OK;  // also if it took too long
    return code;
  });
  if (!s.ok()) return failed("create", s, &err);
  if (!plugin_.destroy || !plugin_.open || !plugin_.begin || !plugin_.end ||
      (host_tokens() ? !plugin_.propose_host : !plugin_.propose || !plugin_.observe))
    return error(Code::plugin, "drafter " + own_.id + ": a function its flags promise is missing");
  return {};
}

Status Drafter::open_plugin() {
  const Model& target = *own_.target;
  aerie_drafter_open_info info{};
  info.struct_size = sizeof info;
  info.max_seqs = own_.max_sequences;
  info.max_nodes = kMaxFedNodes;
  info.max_rows = kMaxDraftRows;
  info.hidden = target.config().hidden;
  info.vocab = target.config().vocab_size;
  info.target_vocab_hash = target.vocab_hash();
  info.target_fingerprint = target.package().fingerprint().c_str();
  info.package = own_.package ? &own_.package_handle : nullptr;
  needs_.struct_size = sizeof needs_;
  needs_.levels = 1;
  aerie_drafter_error err{};
  err.struct_size = sizeof err;
  own_.opening = true;
  const Status s = call("open", [&](const aerie_drafter& d) { return d.open(d.self, &info, &needs_, &err); });
  own_.opening = false;
  if (s.ok()) return {};
  const bool memory = s.code() == Code::out_of_memory || err.code == AERIE_D_NO_MEMORY;
  return failed("open", error(memory ? Code::out_of_memory : Code::mismatch, s.message()), &err);
}

Status Drafter::check_needs() {
  const auto bad = [&](const std::string& what) { return error(Code::plugin, "drafter " + own_.id + ": needs: " + what); };
  const int32_t layers = own_.target->config().layers;
  if (needs_.n_taps < 0 || needs_.n_taps > 8) return bad("n_taps " + std::to_string(needs_.n_taps));
  if (wants_features() != (needs_.n_taps > 0)) return bad("taps and the FEATURES flag disagree");
  for (int32_t i = 0; i < needs_.n_taps; ++i)
    if (needs_.taps[i] < AERIE_FEATURE_FINAL || needs_.taps[i] > layers)
      return bad("tap " + std::to_string(needs_.taps[i]) + ": the target has " + std::to_string(layers) + " layers");
  if (needs_.levels < 1 || needs_.levels > 32) return bad("levels " + std::to_string(needs_.levels));
  if (needs_.max_depth < 0 || needs_.max_width < 0) return bad("negative limit");
  taps_.assign(needs_.taps, needs_.taps + needs_.n_taps);
  return {};
}

Status Drafter::find_extensions() {
  if (!plugin_.get_extension) return {};
  const auto get = [&](const char* id, auto** table) {
    const Status s = call("get_extension", [&](const aerie_drafter& d) {
      *table = static_cast<std::remove_reference_t<decltype(*table)>>(d.get_extension(d.self, id));
      return int32_t{AERIE_D_OK};
    });
    return s.ok() ? s : error(s.code(), "drafter " + own_.id + ": " + s.message());
  };
  const auto bad = [&](const char* id) { return error(Code::plugin, "drafter " + own_.id + ": " + id + ": not a valid table"); };
  const aerie_extension_extra_rows* extra = nullptr;
  AERIE_TRY(get(AERIE_EXTENSION_EXTRA_ROWS, &extra));
  if (extra && (!host_tokens() || extra->struct_size < sizeof *extra || !extra->rows || !extra->chosen ||
                extra->max_rows < 1 || extra->max_rows > kMaxExtraRows))
    return bad(AERIE_EXTENSION_EXTRA_ROWS);
  extra_rows_ = extra;
  const aerie_extension_fork* forks = nullptr;
  AERIE_TRY(get(AERIE_EXTENSION_FORK, &forks));
  if (forks && (forks->struct_size < sizeof *forks || !forks->fork)) return bad(AERIE_EXTENSION_FORK);
  forks_ = forks;
  return {};
}

void Drafter::strike(const Status& why) noexcept {
  const int32_t n = strikes_.fetch_add(1) + 1;
  if (n > kMaxStrikes) return;  // another session's was the last
  char what[80];
  std::snprintf(what, sizeof what, "failure %d of %d%s", n, kMaxStrikes, n >= kMaxStrikes ? ": quarantined, plain decode from here" : "");
  tell(n >= kMaxStrikes ? 0 : 1, why, what);
}

void Drafter::tell(int32_t level, const Status& why, const char* what_follows) noexcept {
  if (!own_.log) return;
  try {
    own_.log(level, "drafter " + own_.id + ": " + why.message() + " (" + what_follows + ")");
  } catch (...) {  // no memory, or the host's log threw
  }
}

Status Drafter::guarded(const char* what, int32_t (*fn)(const void*, const aerie_drafter&), const void* f) noexcept {
  try {
    return run(what, fn, f);
  } catch (const std::bad_alloc&) {  // no memory to say what failed
    return out_of_memory();
  }
}

Status Drafter::run(const char* what, int32_t (*fn)(const void*, const aerie_drafter&), const void* f) {
  const std::lock_guard<std::mutex> lock(call_mutex_);
  std::unique_lock<std::mutex> serial;
  if (kind_.serial) serial = std::unique_lock<std::mutex>(*kind_.serial);
  const auto start = std::chrono::steady_clock::now();
  int32_t code = AERIE_D_FAILED;
  try {
    code = fn(f, plugin_);
  } catch (const std::bad_alloc&) {
    code = AERIE_D_NO_MEMORY;
  } catch (...) {
    return error(Code::plugin, std::string(what) + " threw an exception");
  }
  if (code == AERIE_D_NO_MEMORY) return error(Code::out_of_memory, std::string(what) + ": out of memory");
  if (code != AERIE_D_OK) return error(Code::plugin, std::string(what) + " failed with code " + std::to_string(code));
  if (std::chrono::steady_clock::now() - start > kCallDeadline && std::strcmp(what, "open") != 0)
    return error(Code::plugin, std::string(what) + " took longer than its deadline");
  return {};
}

std::shared_ptr<const TreeExperience> Drafter::experience(const std::string& kind) {
  const std::lock_guard<std::mutex> lock(sequence_mutex_);
  const auto found = experience_.find(kind);
  return found == experience_.end() ? nullptr : found->second;
}

void Drafter::remember(const std::string& kind, std::shared_ptr<const TreeExperience> experience) {
  const std::lock_guard<std::mutex> lock(sequence_mutex_);
  experience_[kind] = std::move(experience);
}

std::shared_ptr<const SeenCosts> Drafter::seen_costs() {
  const std::lock_guard<std::mutex> lock(sequence_mutex_);
  return seen_costs_;
}

void Drafter::remember(std::shared_ptr<const SeenCosts> costs) {
  const std::lock_guard<std::mutex> lock(sequence_mutex_);
  seen_costs_ = std::move(costs);
}

Result<int32_t> Drafter::take_sequence() {
  const std::lock_guard<std::mutex> lock(sequence_mutex_);
  if (free_sequences_.empty())
    return error(Code::limit, "drafter " + own_.id + ": all " + std::to_string(own_.max_sequences) +
                                  " sequences are taken (max_sessions)");
  const int32_t seq = free_sequences_.back();
  free_sequences_.pop_back();
  return seq;
}

bool Drafter::sequence_left() {
  const std::lock_guard<std::mutex> lock(sequence_mutex_);
  return !free_sequences_.empty();
}

void Drafter::give_back_sequence(int32_t seq) {
  const std::lock_guard<std::mutex> lock(sequence_mutex_);
  free_sequences_.push_back(seq);
}

}  // namespace aerie

// Drafter: one opened drafter (plugin + weights) bound to a target. Shared by sessions.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/cost/live_cost.h"
#include "core/drafter/plugin_library.h"
#include "core/drafter/resources.h"
#include "core/policy/tree_policy.h"

namespace aerie {

constexpr int32_t kMaxStrikes = 3;  // failures until a drafter is out

// What passes cost as a session has found it: the target's with this drafter loaded, this drafter's, and its first one of a cycle.
struct SeenCosts {
  LiveCost target, draft;
  double root_ms = 0;
  std::shared_ptr<const DrafterCosts> measured;  // where the drafter's began
};

struct DrafterOptions {
  int32_t max_sequences = 8;
  LogSink log;
};

class Drafter {
 public:
  // `package` may be null for drafters that need none. Everything the plugin says is checked.
  static Result<std::shared_ptr<Drafter>> open(std::shared_ptr<Model> target, PluginKind kind,
                                               std::shared_ptr<const Package> package, const DrafterOptions& options);
  ~Drafter();
  Drafter(const Drafter&) = delete;
  Drafter& operator=(const Drafter&) = delete;

  const char* id() const { return kind_.desc.id; }
  bool wants_features() const { return (kind_.desc.flags & AERIE_DRAFTER_FEATURES) != 0; }
  bool host_tokens() const { return (kind_.desc.flags & AERIE_DRAFTER_HOST_TOKENS) != 0; }
  bool one_sequence() const { return (kind_.desc.flags & AERIE_DRAFTER_ONE_SEQUENCE) != 0; }
  const aerie_drafter_needs& needs() const { return needs_; }
  const std::vector<int32_t>& taps() const { return taps_; }
  const aerie_extension_extra_rows* extra_rows() const { return extra_rows_; }  // null: it offers none
  const aerie_extension_fork* forks() const { return forks_; }                  // likewise
  // A sequence's state is more than the host's KV and what its newest row left.
  bool keeps_state() const { return plugin_.rollback != nullptr || forks_; }
  const std::shared_ptr<Model>& target() const { return own_.target; }
  DrafterResources& resources() { return own_; }

  // A failure: told to the log; the third one quarantines the drafter for good. [any thread]
  void strike(const Status& why) noexcept;
  void tell(int32_t level, const Status& why, const char* what_follows) noexcept;  // the host's log [any thread]
  bool quarantined() const { return strikes_.load(std::memory_order_relaxed) >= kMaxStrikes; }

  // Run a plugin call: one at a time, exceptions stopped, a call over its deadline is a failure. Works without memory. One that is
  // out is not called, and nothing is missed: its sequences have nothing to keep, and it proposes nothing.
  template <class F>
  Status call(const char* what, const F& fn) noexcept {
    return quarantined() ? Status() : guarded(
        what, [](const void* f, const aerie_drafter& d) -> int32_t { return (*static_cast<const F*>(f))(d); }, &fn);
  }

  // What tree policies learned about this drafter in earlier sessions, by kind of draft; null: nothing. [any thread]
  std::shared_ptr<const TreeExperience> experience(const std::string& kind);
  void remember(const std::string& kind, std::shared_ptr<const TreeExperience> experience);

  // What passes cost in the session that ended last; null: none has. [any thread]
  std::shared_ptr<const SeenCosts> seen_costs();
  void remember(std::shared_ptr<const SeenCosts> costs);

  // Costs for later sessions. Code::mismatch: they are not this drafter's, or measured elsewhere. [any thread]
  Status use_costs(std::shared_ptr<const CostTable> table);
  std::shared_ptr<const DrafterCosts> costs();  // null: none attached
  // What `measure` found, which is called once, with a sequence to spare; null: it failed (measure_drafter.h). [any thread]
  std::shared_ptr<const DrafterCosts> quick_costs(const std::function<Result<DrafterCosts>()>& measure);

  Result<int32_t> take_sequence();
  void give_back_sequence(int32_t seq);

 private:
  Drafter(std::shared_ptr<Model> target, PluginKind kind, std::shared_ptr<const Package> package,
          const DrafterOptions& options);
  Status start();
  Status create_plugin();
  Status open_plugin();
  Status check_needs();
  Status find_extensions();
  Status failed(const char* what, const Status& s, aerie_drafter_error* err) const;
  Status guarded(const char* what, int32_t (*fn)(const void* f, const aerie_drafter&), const void* f) noexcept;
  Status run(const char* what, int32_t (*fn)(const void* f, const aerie_drafter&), const void* f);
  bool sequence_left();

  DrafterResources own_;
  PluginKind kind_;
  aerie_drafter_host host_{};
  aerie_drafter plugin_{};
  bool created_ = false;
  aerie_drafter_needs needs_{};
  std::vector<int32_t> taps_;
  const aerie_extension_extra_rows* extra_rows_ = nullptr;
  const aerie_extension_fork* forks_ = nullptr;
  std::mutex call_mutex_, sequence_mutex_, quick_mutex_;
  std::vector<int32_t> free_sequences_;
  std::map<std::string, std::shared_ptr<const TreeExperience>> experience_;  // under sequence_mutex_
  std::shared_ptr<const SeenCosts> seen_costs_;  // likewise
  std::shared_ptr<const DrafterCosts> costs_;    // likewise
  std::shared_ptr<const DrafterCosts> quick_;  // under quick_mutex_
  bool quick_tried_ = false;
  std::atomic<int32_t> strikes_{0};
};

}  // namespace aerie

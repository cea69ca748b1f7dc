// Stepper: moves sessions of one model through their cycles together. Each pass is one plan over the rows of all of
// them, ragged: a draft pass of those that draft, or a target pass of those that read their prompt or verify.
// A session alone is stepped by one of its own, a batch's sessions by the batch's: nothing else tells them apart.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <span>
#include <vector>

#include "core/model/model.h"
#include "core/policy/level_vote.h"
#include "core/session/draft_calls.h"
#include "core/session/pass_clock.h"
#include "core/session/walks.h"

namespace aerie {

class Session;

constexpr size_t kIndexBytes = size_t{512} << 10;  // of a plan, for what is staged in it: for each session, beside its context's

// A drafted node that asks for a row of the next target pass.
struct RankedNode {
  float value;
  int32_t depth, order;
  int32_t row;
  const Session* session;
};

// One thread at a time.
class Stepper {
 public:
  // max_rows: of a target pass, where trees and prompts can be cut to fit; 0: no limit.
  static Result<std::unique_ptr<Stepper>> create(std::shared_ptr<Model> model, int32_t max_rows = 0);
  ~Stepper();
  Stepper(const Stepper&) = delete;
  Stepper& operator=(const Stepper&) = delete;

  // Room for so many sessions of so many tokens.
  Status reserve(size_t sessions, int64_t longest_context);

  // `sessions` may lose others than the one that asks while the model's host makes room for keys and values.
  // Until one of the sessions has something to say, the budget (zero: none) is spent or a cancel is noticed. What came
  // of it is in the sessions. max_tokens 0: whatever a cycle gives. `cancel` may be null. False: it was set.
  bool step(const std::vector<Session*>& sessions, int32_t max_tokens, std::chrono::microseconds budget,
            std::atomic<bool>* cancel);

  // The session takes no further part in the pass in flight.
  void withdraw(Session& session) noexcept;
  // What its sessions had of the running pass is lost, and computed again if they go on.
  void drop_pass() noexcept;

 private:
  Stepper(std::shared_ptr<Model> model, int32_t max_rows) : model_(std::move(model)), max_rows_(max_rows) {}
  bool run(const std::vector<Session*>& sessions, std::chrono::microseconds budget, std::atomic<bool>* cancel);
  void record_next(const std::vector<Session*>& sessions);
  void record_draft(const std::vector<Session*>& sessions);
  void record_target(const std::vector<Session*>& sessions);
  void share_rows();  // row_budget.cc
  void decide_levels(const std::vector<Session*>& sessions);  // batch_vote.cc
  void decide_rows();
  bool try_draft();
  bool try_target();
  // device_cycle.cc
  int32_t levels_on_device() const;
  bool draft_on_device();
  void count_device_drafts();
  bool record_calls();
  bool record_call(DraftCall& call);
  void submitted();
  void pass_ended();
  Status take_results(Session& session) noexcept;
  void commit();
  void settle() noexcept;
  void flight_over() noexcept;
  void all_failed(const std::vector<Session*>& sessions, const Status& why) noexcept;

  std::shared_ptr<Model> model_;
  int32_t max_rows_;
  std::vector<RankedNode> ranked_;
  std::vector<Session*> asking_;
  std::vector<LevelOffer> offers_;
  LevelBallot ballot_;
  std::vector<std::pair<double, Session*>> nodes_;
  std::vector<double> worth_;
  std::unique_ptr<Plan> plan_;
  std::unique_ptr<Plan> settled_;  // a pass that has run in a plan since outgrown: its results, until they are taken
  size_t index_bytes_ = 0;
  std::unique_ptr<kernels::Queue> queue_;

  // The pass in flight.
  std::vector<Session*> flight_, timed_;
  bool drafting_ = false;
  RowsBuilder rows_;
  std::vector<DeltaInputs> kept_;  // of its rows, where recurrent layers' states are made from those that are kept
  Walks walks_;
  DraftCalls calls_;
  // What recording stumbled over: sessions that must go on without their drafter, and why.
  struct {
    std::vector<Session*> sessions;
    Status why;
    Drafter* drafter = nullptr;  // in a target pass: the one that stumbled
    bool observed = false;
  } failed_;
  std::vector<TappedRows> tapped_;
  double pass_ms_ = 0;
  double states_ms_ = 0;  // behind the last pass, for what it accepted
  std::vector<int32_t> level_rows_;
  PassClock clock_;  // of it, the draft passes of device-drawn trees
  std::vector<int32_t> copy_src_, copy_dst_;
};

}  // namespace aerie

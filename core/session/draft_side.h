// DraftSide: one drafter of a session: what it has been shown, the features that wait for it, what its passes cost, and
// the policy that draws trees from it. One that does not draft costs no pass: the features of the newest tokens are kept
// for it, and it is shown these when it is asked again. If it has missed more than that, it begins anew with them.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/cost/live_cost.h"
#include "core/drafter/draft_sequence.h"
#include "core/policy/level_habit.h"
#include "core/policy/tree_policy.h"
#include "core/tree/draft_tree.h"

namespace aerie {

constexpr int32_t kMaxTreeRows = 128;
constexpr int32_t kWaitingRows = 64;  // kept for a drafter that does not draft
// Failures in a row for want of memory or KV until a session does without the drafter. One that has cost it what it had seen counts
// for a third of them: the text is read again each time.
constexpr int32_t kMaxShortages = 64;

// The call that so many more rows go to.
using NextCall = std::function<ObserveCall*(int64_t rows)>;

class DraftSide {
 public:
  static Result<std::unique_ptr<DraftSide>> create(std::shared_ptr<Drafter> drafter, int64_t max_context, const KvSequence* target);
  ~DraftSide();
  DraftSide(const DraftSide&) = delete;
  DraftSide& operator=(const DraftSide&) = delete;

  Drafter& drafter() const { return *drafter_; }
  const std::shared_ptr<Drafter>& shared_drafter() const { return drafter_; }
  DraftSequence& sequence() { return *sequence_; }
  const DraftSequence& sequence() const { return *sequence_; }
  bool usable() const { return !drafter_->quarantined() && shortages_ < kMaxShortages; }
  // The process had no memory for what the drafter was to do, or its pool no pages, which is no failing of its own.
  void found_no_room(const Status& why, bool lost_sync) noexcept;
  void did_well() { shortages_ = 0; }
  bool host_tokens() const { return drafter_->host_tokens(); }
  bool one_pass() const { return drafter_->needs().levels > 1; }  // it answers all levels at once
  bool features() const { return static_cast<bool>(store_); }

  int64_t waiting() const;  // features waiting in the store
  // First token whose row it neither has nor has waiting.
  int64_t next() const { return waiting() > 0 ? first_ + waiting() : sequence_->observed(); }
  // It is about to be shown a text of `size` tokens.
  Status wake(int64_t size);
  // Only the first n tokens are left.
  Status rewind(int64_t n);

  // A pass of the target over rows whose features come to store rows [tap(), ...). `show`: the drafter is shown in it
  // what it has missed; otherwise what waits moves out of the way. Calls add_observe() or keep() accordingly.
  kernels::Tensor tap(int32_t rows) const { return kernels::rows(store_, kWaitingRows, rows); }
  void keep(Plan& plan);
  // Rows for tokens up to `end`: those that wait, then `fresh`, whose first row belongs to token `first`.
  Status add_observe(Plan& plan, std::span<const int32_t> text, int64_t end, const kernels::Tensor& fresh, int64_t first,
                     const NextCall& call);
  void pass_begins();   // nothing of it is recorded yet
  void pass_ended();    // what was shown is observed, what moved has moved
  // Rows of the last pass belong to the tokens from `first` on.
  void took(std::span<const int32_t> rows, int64_t first);
  void forget_waiting();
  // A new side of the same drafter: be where the other one is, in a text of `text_size` tokens, with what it has learned.
  Status take_over(const DraftSide& other, int64_t text_size);
  // What waits, by row of store(); and, for a side that has observed nothing, to go on from sequence().resume(seen) with
  // `rows` waiting up to token `next`, whose features come to tap(rows). False: that cannot be.
  std::span<const int32_t> pending() const { return {pending_.data(), static_cast<size_t>(waiting())}; }
  const kernels::Tensor& store() const { return store_; }
  bool whole() const { return !gap_; }  // nothing is missing between what it has seen and what waits
  bool resume(const DraftSequence::Seen& seen, int64_t rows, int64_t next);
  // What a pass has overwritten, or may have before it was thrown away.
  void lose_tapped();

  bool away = false;              // it has not been asked lately
  bool shows = false;             // the next target pass shows it something
  bool from_image = false;        // what it has seen may be nonsense, and not by its own fault
  kernels::Tensor read_features;  // scratch of a pass that reads a prompt
  std::unique_ptr<TreePolicy> policy;
  DraftTree peek{2};              // of a host drafter: what it proposes, while it is undecided who drafts
  bool peeked = false, answered = false;  // in this cycle; and it went well

  LevelHabit habit;  // of the policy, where the host asks it
  // Costs of its passes.
  LiveCost cost;
  PassCost guess;
  PassCost::Curve curve{};
  double root_ms = 0;
  // Milliseconds of the last proposals of a drafter on the host; 0: none yet. The least counts: what the system takes from the
  // thread is not the drafter's.
  std::array<double, 8> proposals{};
  uint32_t proposed = 0;
  std::shared_ptr<const DrafterCosts> measured;  // by a table, or at first use; null: nobody knows
  int64_t root_rows = 0;  // observed along with the first draft pass

 private:
  explicit DraftSide(std::shared_ptr<Drafter> drafter) : drafter_(std::move(drafter)) {}

  std::shared_ptr<Drafter> drafter_;
  std::unique_ptr<DraftSequence> sequence_;
  // Rows [0, kWaitingRows) are a ring that keeps what waits, a pass of the target writes behind them; token first_ + i
  // reads row pending_[i].
  kernels::Tensor store_;
  int64_t first_ = 0;
  std::vector<int32_t> pending_, from_, to_;
  int32_t slot(size_t i) const { return static_cast<int32_t>((first_ + static_cast<int64_t>(i)) % kWaitingRows); }
  int64_t observing_ = 0;  // what the pass in flight will have shown it
  int32_t shortages_ = 0;
  bool told_shortage_ = false;
  bool moving_ = false, gap_ = false;  // gap_: token first_ is not the next one for it
};

}  // namespace aerie

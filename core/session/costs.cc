// What cost-aware tree policies are told: what passes cost now, and how each cycle ended.
#include <algorithm>

#include "core/session/session.h"

namespace aerie {

namespace {
constexpr double kNewest = 0.2;        // weight of the newest first draft pass
constexpr double kUsualRoot = 2;       // tokens committed by the cycle before
constexpr int64_t kCatchUpRows = 24;   // a pass that observes more than this says nothing about the usual one
}  // namespace

// Confidences mean something else at temperature 0 and with or without shared noise.
std::string Session::draft_kind() const {
  return std::string(policy_->name()) + (options_.sampling.temperature <= 0 ? " greedy" : options_.shared_noise ? " shared" : " none");
}

void Session::share_experience() {
  if (!policy_ || !draft_) return;
  if (auto e = policy_->experience()) options_.drafter->remember(draft_kind(), std::move(e));
}

void Session::prepare_costs() {
  if (!draft_ || !policy_->wants_costs()) return;  // plain decode has nothing to weigh, and measuring takes a while
  if (const auto e = options_.drafter->experience(draft_kind())) policy_->take_over(*e);
  if (target_cost_.known()) return;
  const auto context = static_cast<int64_t>(text_.size());
  if (auto table = model_->costs()) target_cost_.start(std::move(table), context);
  else target_cost_.start(model_->pass_cost());
  guess_drafts();
  const auto drafts = options_.drafter->costs();
  if (!drafts) return;
  if (!drafts->levels.empty()) draft_cost_.start({drafts, &drafts->levels}, context);
  draft_root_ms_ = drafts->roots.ms(1, static_cast<double>(context), kUsualRoot);
}

// Until a draft pass has been seen: one costs a seventh of a target pass.
void Session::guess_drafts() {
  if (!target_cost_.known()) return;
  draft_guess_ = PassCost{};
  draft_guess_.seed(1, target_cost_.ms(1) / 7);
  draft_guess_.seed(16, target_cost_.ms(1) / 4);
}

// In a batch the same pass serves others, who ask for about as much: n rows of this session come with n of each.
const double* Session::in_batch(const PassCost::Curve& alone, PassCost::Curve* curve) const {
  if (beside_ <= 1) return alone.data();
  const double row = (alone[kMaxCostRows] - alone[kMaxCostRows / 2]) / (kMaxCostRows / 2);
  for (int32_t n = 0; n <= kMaxCostRows; ++n) {
    const int32_t rows = n * beside_, measured = std::min(rows, kMaxCostRows);
    (*curve)[static_cast<size_t>(n)] = alone[static_cast<size_t>(measured)] + row * (rows - measured);
  }
  return curve->data();
}

void Session::tell_costs() {
  if (!policy_->wants_costs()) return;
  const auto context = static_cast<int64_t>(text_.size());
  target_cost_.at(context);
  draft_cost_.at(context);
  CycleCosts c;
  c.target = in_batch(target_cost_.curve(), &target_curve_);
  const bool free_drafts = !draft_ || options_.drafter->host_tokens();
  c.draft = free_drafts ? nullptr : in_batch(draft_cost_.known() ? draft_cost_.curve() : draft_guess_.curve(), &draft_curve_);
  c.draft_root = free_drafts ? 0 : draft_root_ms_ > 0 ? draft_root_ms_ : draft_guess_.ms(1);
  policy_->costs(c);
}

// A draft or verify pass has run to its end.
void Session::pass_done(double ms, int32_t rows) {
  if (phase_ == Phase::prefill) return;
  cycle_ms_ += ms;
  if (!policy_->wants_costs()) return;
  if (phase_ == Phase::verify) {
    const bool first = !target_cost_.known();
    if (rows <= kMaxCostRows) target_cost_.measured(rows, ms);
    if (first) guess_drafts();
  } else if (frontier_[0] != 0) {
    if (rows <= kMaxCostRows) draft_cost_.measured(rows, ms);
  } else if (root_rows_ <= kCatchUpRows) {
    draft_root_ms_ += (draft_root_ms_ > 0 ? kNewest : 1) * (ms - draft_root_ms_);
  }
}

void Session::tell_outcome() {
  if (!policy_->wants_costs()) return;
  frontier_.clear();
  for (const kernels::WalkStep& s : steps_) frontier_.push_back(rows_.node[static_cast<size_t>(s.row)]);
  policy_->outcome(tree_, {frontier_, steps_.back().token, cycle_ms_});
}

}  // namespace aerie

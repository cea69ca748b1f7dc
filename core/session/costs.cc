// What cost-aware tree policies are told: what passes cost now, and how each cycle ended.
#include <algorithm>

#include "core/drafter/measure_drafter.h"
#include "core/session/session.h"

namespace aerie {

namespace {
constexpr double kNewest = 0.2;        // weight of the newest first draft pass
constexpr double kTrifle = 0.02;       // of a plain pass
constexpr double kUsualRoot = 2;       // tokens committed by the cycle before
constexpr int64_t kCatchUpRows = 24;   // a pass that observes more than this says nothing about the usual one
}  // namespace

// Confidences mean something else at temperature 0 and with or without shared noise.
std::string Session::draft_kind() const {
  return options_.tree.name + (options_.sampling.temperature <= 0 ? " greedy" : options_.shared_noise ? " shared" : " none");
}

void Session::share_experience() {
  for (const auto& side : sides_)
    if (auto e = side->policy ? side->policy->experience() : nullptr) side->drafter().remember(draft_kind(), std::move(e));
  if (!target_cost_.known() || options_.pass_ms) return;
  for (const auto& side : sides_) side->drafter().remember(std::make_shared<const SeenCosts>(SeenCosts{target_cost_, side->cost, side->root_ms, side->measured}));
}

PassCost Session::told_cost(const Drafter* drafter) const {
  PassCost cost;
  for (int32_t rows = 1; rows <= kMaxCostRows; rows *= 2) cost.seed(rows, options_.pass_ms(drafter, rows));
  return cost;
}

void Session::prepare_costs() {
  if (sides_.empty() || !policy_->wants_costs()) return;  // plain decode has nothing to weigh, and measuring takes a while
  for (const auto& side : sides_) {
    if (const auto e = side->drafter().experience(draft_kind())) side->policy->take_over(*e);
    else if (auto own = side->policy->experience()) side->drafter().remember(draft_kind(), std::move(own));  // others may join
  }
  if (target_cost_.known()) return;
  if (options_.pass_ms) {
    target_cost_.start(told_cost(nullptr));
    for (const auto& side : sides_) {
      side->cost.start(told_cost(&side->drafter()));
      side->root_ms = options_.pass_ms(&side->drafter(), 1);
    }
    return;
  }
  start_target_cost();
  guess_drafts();
  for (const auto& side : sides_) start_draft_costs(side.get());
}

void Session::start_target_cost() {
  const auto context = static_cast<int64_t>(text_.size());
  const auto seen = sides_[0]->drafter().seen_costs();
  auto table = model_->costs();
  const double unsure = table ? kMeasuredWell : kMeasuredQuickly;
  if (!table) table = model_->quick_costs();
  if (seen && target_cost_.resume(seen->target, table.get(), context)) return;
  if (table) target_cost_.start(std::move(table), context, unsure);
}

void Session::start_draft_costs(DraftSide* side) const {
  const auto context = static_cast<int64_t>(text_.size());
  const auto seen = side->drafter().seen_costs();
  auto measured = side->drafter().costs();
  const double unsure = measured ? kMeasuredWell : kMeasuredQuickly;
  if (!measured) measured = quick_costs(side->shared_drafter(), options_.measure_drafts / static_cast<int64_t>(sides_.size()));
  if (!measured) return;
  const bool again = seen && seen->measured == measured && seen->root_ms > 0;
  side->root_ms = again ? seen->root_ms : measured->roots.ms(1, static_cast<double>(context), kUsualRoot);
  const CostGrid* levels = measured->levels.empty() ? nullptr : &measured->levels;  // a drafter of one pass has none
  if (levels && !(again && side->cost.resume(seen->draft, levels, context))) side->cost.start({measured, levels}, context, unsure);
  side->measured = std::move(measured);
}

// Before this session takes a drafter's last sequence: a measurement needs one.
void Session::measure_drafters() const {
  std::vector<std::shared_ptr<Drafter>> unknown = options_.more_drafters;
  unknown.push_back(options_.drafter);
  std::erase_if(unknown, [&](const auto& d) { return !d || d->target() != model_ || d->host_tokens() || d->costs(); });
  for (const auto& drafter : unknown) (void)quick_costs(drafter, options_.measure_drafts / static_cast<int64_t>(unknown.size()));
}

// Where nothing could be measured, until a draft pass has been seen: one costs a seventh of a target pass.
void Session::guess_drafts() {
  if (!target_cost_.known()) return;
  for (const auto& side : sides_) {
    side->guess = PassCost{};
    side->guess.seed(1, target_cost_.ms(1) / 7, kMeasuredQuickly);
    side->guess.seed(16, target_cost_.ms(1) / 4, kMeasuredQuickly);
  }
}

// In a batch the same pass serves others, who ask for about as much: n rows of this session come with n of each, a few more or
// less, so that no step of the curve decides. Of all that decode plainly each brings one, no more and no less.
const double* Session::in_batch(const PassCost::Curve& alone, PassCost::Curve* curve) const {
  if (beside_ <= 1) return alone.data();
  const double row = (alone[kMaxCostRows] - alone[kMaxCostRows / 2]) / (kMaxCostRows / 2);
  const auto beyond = [&](int32_t rows) { return alone[kMaxCostRows] + row * (rows - kMaxCostRows); };
  for (int32_t n = 0; n <= kMaxCostRows; ++n) {
    const int32_t rows = n * beside_, around = n > 1 && rows < kMaxCostRows ? beside_ / 2 : 0;
    double sum = 0;
    for (int32_t r = rows - around; r <= std::min(rows + around, kMaxCostRows); ++r) sum += alone[static_cast<size_t>(r)];
    for (int32_t r = std::max(rows - around, kMaxCostRows + 1); r <= rows + around; ++r) sum += beyond(r);
    (*curve)[static_cast<size_t>(n)] = sum / (2 * around + 1);
  }
  return curve->data();
}

// A table knows such passes.
const double* Session::in_batch(LiveCost& cost, PassCost::Curve* curve, const double** of_all) const {
  const bool together = cost.at(static_cast<int64_t>(text_.size()), beside_);
  *of_all = together ? nullptr : cost.curve().data();
  return together ? cost.curve().data() : in_batch(cost.curve(), curve);
}

void Session::tell_costs(DraftSide* side, TreePolicy& policy) {
  if (!policy.wants_costs()) return;
  CycleCosts c;
  c.target = in_batch(target_cost_, &target_curve_, &c.target_of_all);
  plain_ms_ = c.target_ms(1);
  c.beside = std::max(1, beside_);
  if (side && side->host_tokens()) c.proposal = proposal_ms(*side);
  if (side && !side->host_tokens()) {
    c.draft_of_all = side->guess.curve().data();
    c.draft = side->cost.known() ? in_batch(side->cost, &side->curve, &c.draft_of_all) : in_batch(side->guess.curve(), &side->curve);
    c.draft_root = side->root_ms > 0 ? side->root_ms : side->guess.ms(1);
    c.catch_up = catch_up_ms(*side);
  }
  if (choosing_) {
    const auto at = std::find_if(sides_.begin(), sides_.end(), [&](const auto& s) { return s.get() == side; });
    c.reached = chooser_.speed(choice_options_, plain_ms_);
    c.instead = DrafterChoice::instead(choice_options_, static_cast<size_t>(at - sides_.begin()), c.reached, plain_ms_);
  }
  policy.costs(c);
}

// What asking a drafter on the host takes, for all that step together wait for it. Next to a pass it is nothing, as a rule.
double Session::proposal_ms(const DraftSide& side) const {
  if (options_.pass_ms || side.proposed == 0) return 0;
  const auto known = std::min<size_t>(side.proposed, side.proposals.size());
  const double ms = *std::min_element(side.proposals.begin(), side.proposals.begin() + static_cast<std::ptrdiff_t>(known)) * std::max(1, beside_);
  return ms > kTrifle * plain_ms_ ? ms : 0;
}

// What a drafter's next pass costs beside its usual one, since others wrote meanwhile.
double Session::catch_up_ms(const DraftSide& side) const {
  if (side.host_tokens() || (!side.measured && !options_.pass_ms)) return 0;
  const auto size = static_cast<int64_t>(text_.size());
  const auto ms = [&](double rows) {
    rows *= std::max(1, beside_);
    return options_.pass_ms ? options_.pass_ms(&side.drafter(), static_cast<int32_t>(rows)) : side.measured->roots.ms(1, static_cast<double>(size), rows);
  };
  const int64_t behind = std::min<int64_t>(size - side.sequence().observed(), kWaitingRows);
  return ms(std::max(static_cast<double>(behind), kUsualRoot)) - ms(kUsualRoot);
}

// What a pass has cost for this session's sake. All sessions of a batch wait for it, so what one session's drafts add to
// it counts once for each of them; of what all of them add, each has added its rows' share.
double Session::share_of_verifying(double ms, int32_t rows) const {
  const int32_t nodes = rows - beside_;
  if (beside_ <= 1 || nodes <= 0 || !(plain_ms_ > 0)) return ms;
  return plain_ms_ + (ms - plain_ms_) * (pass_rows() - 1) * beside_ / nodes;
}

// A pass has run to its end, or what was left of it behind the draft passes of device-drawn trees.
void Session::pass_done(double ms, int32_t rows) {
  if (phase_ == Phase::draft && !device_.on()) draft_pass_done(ms, pass_rows(), rows, frontier_[0] == 0);
  if (phase_ == Phase::draft) behind_drafts_ = true;
  if (phase_ != Phase::verify) return;
  if (options_.pass_ms) ms = options_.pass_ms(nullptr, rows);
  cycle_ms_ += share_of_verifying(ms, rows);
  if (host_proposed_) cycle_ms_ += proposal_ms(*side_);
  // The first pass of plain decode behind drafts finds the drafter's weights in the caches, and takes a tenth longer.
  const bool plain = rows <= beside_ && !device_.on(), cold = plain && behind_drafts_;
  behind_drafts_ = !plain && drafter_usable() && !side_->host_tokens();
  if (!policy_->wants_costs() || !weighs_ || cold) return;
  const bool first = !target_cost_.known();
  target_cost_.measured(rows, ms);
  if (first) guess_drafts();
}

void Session::draft_pass_done(double ms, int32_t own_rows, int32_t rows, bool root) {
  if (options_.pass_ms) ms = options_.pass_ms(&side_->drafter(), rows);
  const double share = beside_ > 1 && rows > 0 ? ms * own_rows * beside_ / rows : ms;
  cycle_ms_ += share;
  if (!policy_->wants_costs()) return;
  if (!root) side_->cost.measured(rows, ms);
  else if (side_->root_rows <= kCatchUpRows) side_->root_ms += (side_->root_ms > 0 ? kNewest : 1) * (ms - side_->root_ms);
}

// What was foreseen is no drafter's doing.
void Session::tell_outcome() {
  if (!policy_->wants_costs() || all_foreseen_) return;
  frontier_.clear();
  const size_t drafted = steps_drafted();
  for (size_t i = 0; i < drafted; ++i) frontier_.push_back(rows_.node[static_cast<size_t>(steps_[i].row)]);
  if (!choosing_ || !plain_) policy_->outcome(tree_, {frontier_, steps_[drafted - 1].token, cycle_ms_, selected_});
  if (choosing_) tell_others();
}

}  // namespace aerie

// Who drafts: a session's drafters, and `auto`'s choice between them for every cycle.
#include <algorithm>

#include "core/session/session.h"

namespace aerie {

namespace {
// Who rests asks what passes cost in every fourth cycle: of a small model's pass, telling it each time takes a hundredth.
constexpr uint32_t kLooksAtRest = 4;
}  // namespace

Status Session::open_sides() {
  std::vector<std::shared_ptr<Drafter>> all = options_.more_drafters;
  if (options_.drafter) all.insert(all.begin(), options_.drafter);
  for (size_t i = 0; i < all.size(); ++i) {
    if (!all[i]) return error(Code::invalid_argument, "more_drafters: one of them is NULL");
    if (all[i]->target() != model_) return error(Code::mismatch, "the drafter was opened for another model");
    if (std::find(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(i), all[i]) != all.begin() + static_cast<std::ptrdiff_t>(i))
      return error(Code::invalid_argument, std::string("more_drafters: drafter ") + all[i]->id() + " is listed twice");
    AERIE_ASSIGN(auto side, DraftSide::create(all[i], max_context_, &kv_));
    sides_.push_back(std::move(side));
  }
  return {};
}

bool Session::quarantined() const {
  return std::any_of(sides_.begin(), sides_.end(), [](const auto& side) { return !side->usable(); });
}

std::span<const std::unique_ptr<DraftSide>> Session::followed() const {
  return std::span(sides_).first(choosing_ ? sides_.size() : std::min<size_t>(sides_.size(), 1));
}

// One for each drafter, or one that has none.
Status Session::make_policies(const PolicySpec& tree, std::vector<std::unique_ptr<TreePolicy>>* policies) const {
  const size_t drafters = options_.more_drafters.size() + (options_.drafter ? 1 : 0);
  for (size_t i = 0; i < std::max<size_t>(drafters, 1); ++i) {
    std::unique_ptr<TreePolicy> policy;
    if (options_.policy) {
      policy = options_.policy();
    } else {
      AERIE_ASSIGN(policy, make_policy(tree));
    }
    AERIE_TRY(check_tree(*policy));
    policies->push_back(std::move(policy));
  }
  return {};
}

void Session::use_policies(std::vector<std::unique_ptr<TreePolicy>>* policies) noexcept {
  choosing_ = sides_.size() > 1 && options_.tree.name == "auto";
  if (sides_.empty()) no_drafter_policy_.swap((*policies)[0]);
  for (size_t i = 0; i < sides_.size(); ++i) {
    sides_[i]->policy.swap((*policies)[i]);
    sides_[i]->habit = {};
  }
  for (size_t i = 1; i < sides_.size(); ++i) {
    DraftSide& side = *sides_[i];
    side.forget_waiting();
    // Who was not kept up with the text begins anew near its end.
    const int64_t from = static_cast<int64_t>(text_.size()) - kWaitingRows;
    if (!choosing_ || from <= side.sequence().observed()) continue;
    if (const Status s = side.sequence().restart(from); !s.ok()) drafter_failed(side, s, true);
  }
  chooser_ = DrafterChoice();
  choice_options_.assign(sides_.size(), {});
  draft_with(sides_.empty() ? nullptr : sides_[0].get());
}

void Session::draft_with(DraftSide* side) {
  side_ = side;
  policy_ = side ? side->policy.get() : no_drafter_policy_.get();
}

CycleLimits Session::limits_with(const DraftSide* side, int32_t max_depth) const {
  CycleLimits limits;
  limits.max_depth = max_depth;
  if (!side || !side->usable()) return limits;
  const aerie_drafter_needs& needs = side->drafter().needs();
  if (needs.max_depth > 0) limits.max_depth = std::min(limits.max_depth, needs.max_depth);
  if (side->one_pass()) limits.max_depth = std::min(limits.max_depth, needs.levels);
  return limits;
}

// A drafter on the host answers at once.
void Session::peek(DraftSide& side) {
  ++stats_.draft_passes;
  side.peek.reset(text_.back());
  side.peeked = true;
  const auto start = kernels::Clock::now();
  const Status s = side.sequence().propose_host(text_, side.policy->width(), limits_with(&side, max_depth_).max_depth, &side.peek);
  const auto took = kernels::Clock::now() - start;
  side.proposals[side.proposed++ % side.proposals.size()] = std::chrono::duration<double, std::milli>(took).count();
  proposing_ns_ += static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(took).count());
  side.answered = s.ok();
  if (s.ok()) side.did_well();
  else drafter_failed(side, s, false);
  stats_.proposed += static_cast<uint64_t>(side.peek.size() - 1);
}

// Sets side_, policy_, max_depth_, plain_.
void Session::choose(int32_t max_depth) {
  max_depth_ = max_depth;
  for (const auto& side : sides_) side->peeked = false;
  weighs_ = true;
  if (!choosing_) {
    policy_->begin(limits_with(side_, max_depth));
    weighs_ = !policy_->resting() || rested_++ % kLooksAtRest == 0;
    if (weighs_) tell_costs(side_, *policy_);
    plain_ = policy_->resting();
  } else {
    for (const auto& side : sides_) {
      side->policy->begin(limits_with(side.get(), max_depth));
      tell_costs(side.get(), *side->policy);
    }
    const bool known = target_cost_.known() && max_depth >= 1;
    for (size_t i = 0; i < sides_.size(); ++i) {
      DraftSide& side = *sides_[i];
      if (known && side.usable() && side.host_tokens() && !side.policy->resting()) peek(side);
      choice_options_[i] = {side.policy.get(), known && side.usable(), side.host_tokens() ? &side.peek : nullptr, catch_up_ms(side)};
    }
    const int32_t chosen = chooser_.choose(choice_options_, plain_ms_);
    plain_ = chosen < 0;
    if (!plain_) draft_with(sides_[static_cast<size_t>(chosen)].get());
  }
  max_depth_ = limits_with(side_, max_depth).max_depth;
}

void Session::tell_others() {
  frontier_.clear();
  for (const kernels::WalkStep& s : steps_) frontier_.push_back(s.token);
  for (const auto& side : sides_) {
    if (side.get() == side_ && !plain_) continue;
    if (side->peeked) {
      side->policy->witness(side->peek, frontier_);
      side->policy->wasted(proposal_ms(*side));
    }
    side->policy->idle(static_cast<double>(steps_.size()) / static_cast<double>(sides_.size()));
  }
  chooser_.outcome(static_cast<double>(steps_drafted()), cycle_ms_, plain_ms_);
}

void Session::count_choice() {
  const bool asked = drafter_usable() && !plain_ && max_depth_ >= 1 && (!side_->host_tokens() || rows_.size() > 1);
  const auto at = std::find_if(sides_.begin(), sides_.end(), [&](const auto& side) { return side.get() == side_; }) - sides_.begin();
  stats_.chosen_drafter = asked ? static_cast<int32_t>(at) : -1;
  stats_.chosen_nodes = rows_.size() - 1;
  stats_.chosen_depth = *std::max_element(rows_.depth.begin(), rows_.depth.end());
  if (asked) ++stats_.chosen_cycles[std::min<size_t>(static_cast<size_t>(at), std::size(stats_.chosen_cycles) - 1)];
  else ++stats_.plain_cycles;
}

}  // namespace aerie

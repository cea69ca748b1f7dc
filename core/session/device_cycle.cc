// A cycle of one plan: the device draws the tree, verifies it and keeps what was walked through. For policies whose next
// question is a function of the candidates, and of what is known beforehand. Where the host decides what is verified, because
// a batch shares its rows, the device draws ahead: the levels that are surely asked for, in one plan.
#include <algorithm>
#include <bit>

#include "core/session/session.h"

namespace aerie {

// Nothing but the tree stands between the drafter and the target's pass.
bool Session::begin_device_draft() {
  TreeShape shape;
  // Recurrent layers take their rows in an order of the host's, who would not know this tree's ancestors.
  if (!drafts_on_device_ || model_->recurrent() || walks_on_host() || !policy_->shape(&shape)) return false;
  const auto size = static_cast<int64_t>(text_.size());
  shape.width = side_->sequence().width(shape.width);
  if (one_pass() && policy_->best_nodes() > 0) shape.levels = most_levels();
  // Pages for all of its depth, or as deep a tree as there are pages for.
  const Status s = reserve(size + shape.levels);
  if (s.code() == Code::limit) shape.levels = static_cast<int32_t>(std::min<int64_t>(shape.levels, kv_.room() - size));
  else if (!s.ok()) return false;
  if (!device_.begin(shape, one_pass(), size)) return false;
  policy_->drawn_in(device_.verified(), device_.levels());
  return true;
}

// In a plan of their own, before the host decides what is verified: all levels that the policy surely asks for.
bool Session::begin_drawing_ahead() {
  if (!drafts_on_device_ || options_.sampled_rule || rules_.constrained() || one_pass()) return false;  // a constraint looks at each level
  TreeShape shape;
  if (!policy_->shape(&shape) || shape.weighing) {
    const int32_t width = policy_->width();
    // A device works for powers of two: what such a policy would ask about is among the best of so many, nearly always.
    const auto rows = static_cast<int32_t>(std::bit_ceil(static_cast<uint32_t>(width)));
    shape = {width, rows, std::min(side_->habit.sure(), max_depth_), kMaxTreeNodes - 1, {}, nullptr};
  }
  shape.width = side_->sequence().width(shape.width);
  if (shape.levels < 2 || !device_.begin(shape, false, static_cast<int64_t>(text_.size()))) return false;
  phase_ = Phase::draft;
  recorded_ = false;
  return true;
}

Status Session::ask_on_device(Plan& plan, DraftCalls* calls, int32_t level) {
  DraftSequence& sequence = side_->sequence();
  const auto size = static_cast<int64_t>(text_.size());
  int64_t unseen = 0;  // in a target's pass it is shown already
  if (level == 0) {
    AERIE_TRY(device_.start(plan, sequence));
    if (phase_ == Phase::draft) {
      side_->pass_begins();
      side_->root_rows = unseen = size - sequence.observed();
    }
  }
  const DraftRequest request{&side_->drafter(), level, device_.width(), false, true};
  DraftCall& call = calls->join(request, this, unseen, device_.draft_rows(level));
  if (unseen > 0) AERIE_TRY(side_->add_observe(plan, text_, size, {}, size, [&](int64_t) { return &call.observe; }));
  call.propose.keep_on_device();
  return device_.ask(text_.back(), level, &call.propose, draft_draw());
}

void Session::expand_on_device(Plan& plan, int32_t level, int32_t* wanted) {
  const int32_t end = level + 1 == device_.passes() ? device_.levels() : level + 1;
  for (; level < end; ++level) device_.expand(plan, level, model_->config().vocab_used, wanted);
}

// Rows for the device to fill: where each one's keys and values go is known, who it is and what it stands on is not.
void Session::stage_blank_tree(RowsBuilder* rows, Walks* walks) {
  const auto size = static_cast<int64_t>(text_.size());
  for (int32_t i = 1; i < device_.verified(); ++i) {
    tail_.assign(static_cast<size_t>(device_.levels()), kv_.scratch_slot(i - 1));
    rows->tree(0, size, tail_);
  }
  for (int32_t i = 0; i < device_.verified(); ++i) walks->row(text_.back());
}

void Session::select_on_device(Plan& plan, const RowsBuilder& builder, const Rows& rows, const StagedWalks& walks) {
  if (!device_.on()) return;
  device_.select(plan, rows, first_row_, builder.tail_of(first_row_), walks);
}

void Session::take_device_draft() {
  stats_.draft_passes += static_cast<uint64_t>(device_.passes_run());
  int32_t proposed = device_.proposed();
  selected_.clear();
  Status s = device_.weighs() ? ask_again(&proposed) : Status();
  if (s.ok()) s = device_.take(&tree_, &selected_);
  device_.end();
  count_proposed(proposed);
  if (s.ok()) side_->did_well();
  else drafter_failed(s, false);
  rows_.build(tree_, selected_);
}

// The device has weighed as the policy would have. The policy is asked all the same: that is how it learns.
Status Session::ask_again(int32_t* proposed) {
  AERIE_TRY(device_.land());
  while (policy_->expand(tree_, &frontier_) && !frontier_.empty()) {
    if (one_pass()) {
      take_best(device_.all_tokens(), device_.all_logps());
      break;
    }
    if (!device_.has(tree_, frontier_)) break;  // deeper than there were levels
    device_.answer(&tree_, frontier_);
  }
  *proposed = tree_.size() - 1;
  policy_->select(tree_, &selected_);
  return {};
}

int32_t Session::deepest() const {
  return device_.on() ? device_.levels() : *std::max_element(rows_.depth.begin(), rows_.depth.end());
}

// What was drawn ahead is there: the policy is asked, and what it wants beyond that is drawn pass by pass.
Status Session::take_drawn_ahead() {
  stats_.draft_passes += static_cast<uint64_t>(device_.passes_run()) - 1;
  if (const Status s = device_.land(); !s.ok()) {
    drafter_failed(s, false);
    return start_verify();
  }
  side_->did_well();
  return next_draft_level();
}

int32_t Session::passes_on_device() const {
  return (phase_ == Phase::draft || phase_ == Phase::verify) && device_.on() ? device_.passes() : 0;
}

int32_t Session::drafted_on_device() const { return passes_on_device() > 0 ? device_.passes_run() : 0; }

// The draft passes of such a plan: what each took, of how many rows.
void Session::count_device_drafts(const PassClock& clock, std::span<const int32_t> rows) {
  for (int32_t level = 0; level < drafted_on_device(); ++level) {
    const auto at = static_cast<size_t>(level);
    draft_pass_done(clock.parts()[at], device_.draft_rows(level), rows[at], level == 0);
  }
  if (passes_on_device() == 0 || phase_ != Phase::verify) return;
  const auto ns = static_cast<uint64_t>(clock.all_parts() * 1e6);  // whoever drafts longest, all wait
  stats_.draft_ns += std::min(ns, stats_.verify_ns);
  stats_.verify_ns -= std::min(ns, stats_.verify_ns);
}

int32_t Stepper::levels_on_device() const {
  int32_t most = 0;
  for (const Session* s : flight_) most = std::max(most, s->passes_on_device());
  return most;
}

void Stepper::count_device_drafts() {
  level_rows_.assign(clock_.parts().size(), 0);
  for (const Session* s : flight_)
    for (int32_t level = 0; level < s->drafted_on_device(); ++level)
      level_rows_[static_cast<size_t>(level)] += s->device_.draft_rows(level);
  for (Session* s : flight_) s->count_device_drafts(clock_, level_rows_);
}

// False: a drafter would not record its part.
bool Stepper::draft_on_device() {
  for (Session* s : flight_) {
    for (int32_t level = 0; level < s->passes_on_device(); ++level) {
      Status status = s->ask_on_device(*plan_, &calls_, level);
      if (status.ok()) continue;
      failed_ = {{s}, std::move(status), &s->side_->drafter(), true};
      return false;
    }
  }
  for (const auto& call : calls_.all())
    if (call->request.on_device) call->propose.stage(*plan_);
  const int32_t levels = levels_on_device();
  // A level that no tree has a node for is passed over: flags that ExpandTree sets.
  level_rows_.assign(static_cast<size_t>(levels), 0);
  auto* const wanted = const_cast<int32_t*>(plan_->stage(std::span<const int32_t>(level_rows_)));
  for (int32_t level = 0; level < levels; ++level) {
    if (level > 0) plan_->begin_if(wanted + level);
    for (const auto& call : calls_.all())
      if (call->request.on_device && call->request.level == level && !record_call(*call)) return false;
    if (level > 0) plan_->end_if();
    for (Session* s : flight_)
      if (level < s->passes_on_device()) s->expand_on_device(*plan_, level, wanted + level + 1);
    clock_.part(*plan_);
  }
  return true;
}

}  // namespace aerie

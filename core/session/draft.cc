// Observe and draft: the drafter sees what was committed and proposes a tree, level by level.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/session/session.h"
#include "kernels/fp_env.h"
#include "kernels/scalar_math.h"

namespace aerie {

void Session::drafter_failed(DraftSide& side, const Status& why, bool lost_sync, bool strike) noexcept {
  const auto no_room = [](const Status& s) { return s.code() == Code::out_of_memory || s.code() == Code::limit; };
  ++stats_.drafter_failures;
  if (std::exchange(side.from_image, false)) lost_sync = true;
  else if (no_room(why)) side.found_no_room(why, lost_sync);
  else if (strike) side.drafter().strike(why);
  if (!lost_sync || !side.usable()) return;
  // What it has seen is in doubt: it starts over and is shown the whole text again.
  side.forget_waiting();
  side.sequence().start_over();
}

// After a failure the step is plain decode. Under the sampled rule what was drawn stays: dropping draws
// for a reason that may depend on them would bend the law.
void Session::drop_draft() {
  if (!options_.sampled_rule) tree_.reset(text_.back());
}

bool Session::align_drafters() {
  int64_t from = kv_len_;
  for (const auto& side : followed())  // tokens alone are always at hand
    if (side->usable() && side->features()) from = std::min(from, side->next() - 1);
  if (from == kv_len_) return true;
  // Features for tokens from + 1 .. kv_len_ are gone: the target reads those rows again. They come out
  // bit for bit the same, so nothing but time is spent.
  go_back(from);
  return false;
}

Status Session::start_cycle(bool any_rows) {
  if (const Status s = look_ahead(); !s.ok()) give_up(s);
  if (!active()) return {};
  const auto size = static_cast<int64_t>(text_.size());
  int64_t room = max_context_ - size;
  if (room <= 0) {
    finish_ = Finish::context;
    return {};
  }
  if (max_tokens_ > 0) room = std::min<int64_t>(room, max_tokens_);
  max_emit_ = static_cast<int32_t>(room);
  tree_.reset(text_.back());
  drawn_.reset();
  cycle_ms_ = 0;
  asked_levels_ = 0;
  host_proposed_ = false;
  device_.end();
  for (const auto& side : sides_) side->pass_begins();
  all_foreseen_ = enough_is_foreseen();
  if (all_foreseen_) {
    AERIE_TRY(reserve(size));
    for (const auto& side : sides_) side->peeked = false;
    plain_ = weighs_ = true;
    return start_verify();
  }
  choose(static_cast<int32_t>(std::min<int64_t>(room - 1, CycleLimits{}.max_depth)));
  // A tree that finds no more pages is cut, but not under the sampled rule.
  AERIE_TRY(reserve(size + (options_.sampled_rule ? most_levels() : 0)));
  // Where nobody knows what a pass costs, a plain one tells.
  const bool blind = policy_->wants_costs() && !target_cost_.known();
  if (!drafter_usable() || max_depth_ < 1 || plain_ || blind) return start_verify();

  if (side_->host_tokens()) {
    if (!side_->peeked) peek(*side_);
    std::swap(tree_, side_->peek);
    host_proposed_ = side_->answered;
    return start_verify();
  }
  if (const Status s = side_->wake(size); !s.ok()) {
    drafter_failed(s, true);
    return start_verify();
  }
  const int64_t seen = side_->features() ? side_->next() : std::min(size, side_->sequence().observed() + kMaxDraftRows);
  if (seen != size || (side_->features() && size < 2)) return start_verify();  // nothing to draft from yet
  side_->sequence().begin_cycle(size);
  if (any_rows && begin_device_draft()) return start_verify();
  if (begin_drawing_ahead()) return {};
  return next_draft_level();
}

Status Session::next_draft_level() {
  for (;;) {
    if (!policy_->offer(tree_, &frontier_, &offer_) || frontier_.empty()) return end_draft();
    const bool ahead = device_.has(tree_, frontier_);
    if (!ahead && (!one_pass() || frontier_[0] == 0)) break;
    policy_->decided(offer_.pays(), offer_.ms, 1);  // no pass, nobody waits
    if (!offer_.pays()) return end_draft();
    ++asked_levels_;
    if (ahead) {
      count_proposed(device_.answer(&tree_, frontier_));
      continue;
    }
    const Status s = take_candidates();  // it has answered this level already
    if (s.ok()) continue;
    drafter_failed(s, false);
    drop_draft();
    return start_verify();
  }
  phase_ = Phase::draft;
  recorded_ = offer_decided_ = false;
  return {};
}

// What the sessions of a batch have decided about the level that this one would ask for.
Status Session::level_decided(bool asks, double ms, double share) {
  offer_decided_ = true;
  policy_->decided(asks, ms, share);
  if (!asks) return end_draft();
  ++asked_levels_;
  return {};
}

Status Session::end_draft() {
  side_->habit.asked(asked_levels_);
  return start_verify();
}

DraftDraw Session::draft_draw() const {
  const kernels::Sampling& s = options_.sampling;
  return {options_.shared_noise && !options_.sampled_rule, s.temperature, s.seed, s.stream, options_.sampled_rule};
}

Status Session::add_draft(Plan& plan, DraftCalls* calls) {
  side_->pass_begins();
  const auto size = static_cast<int64_t>(text_.size());
  DraftSequence& sequence = side_->sequence();
  side_->root_rows = size - sequence.observed();
  const DraftDraw draw = draft_draw();
  const DraftRequest request{&side_->drafter(), tree_[frontier_[0]].depth, asked_width(), draw.want_logits};
  DraftCall& call = calls->join(request, this, side_->root_rows, static_cast<int64_t>(frontier_.size()));
  if (side_->root_rows > 0) AERIE_TRY(side_->add_observe(plan, text_, size, {}, size, [&](int64_t) { return &call.observe; }));
  return sequence.propose(&call.propose, tree_, frontier_, draw);
}

// The pass could not be recorded. Too many nodes is our own limit; what was drafted so far is verified.
Status Session::draft_failed(const Status& why, bool lost_sync, bool strike) {
  side_->pass_begins();
  device_.end();
  if (why.code() != Code::limit) {
    drafter_failed(*side_, why, lost_sync, strike);
    drop_draft();
  }
  return start_verify();
}

Status Session::finish_draft() {
  ++stats_.draft_passes;
  side_->pass_ended();
  if (device_.on()) return take_drawn_ahead();
  Status s = side_->sequence().check_candidates(model_->config().vocab_used);
  const bool best_first = s.ok() && one_pass() && policy_->best_nodes() > 0;
  if (best_first) {
    take_best(side_->sequence().candidates().token, side_->sequence().candidates().logp);
    count_proposed(tree_.size() - 1);
  } else if (s.ok()) {
    s = take_candidates();
  }
  if (s.ok()) {
    side_->did_well();
    return best_first ? start_verify() : next_draft_level();
  }
  drafter_failed(s, false);
  drop_draft();
  return start_verify();
}

// A row of the drafter's logits over the target's vocabulary: nothing outside the draft vocabulary can be drawn.
std::span<const float> Session::target_logits(const Candidates& c, size_t row) {
  const auto v = static_cast<size_t>(c.vocab);
  const std::span<const float> own(c.logits.data() + row * v, v);
  if (c.map.empty()) return own;
  wide_logits_.assign(static_cast<size_t>(model_->config().vocab_size), -INFINITY);
  for (size_t i = 0; i < v; ++i)
    if (c.map[i] >= 0 && c.map[i] < model_->config().vocab_size) wide_logits_[static_cast<size_t>(c.map[i])] = own[i];
  return wide_logits_;
}

// Children of the frontier, as the drafter gave them: a list for each row or, from a drafter that answered all
// levels at once, for each depth.
Status Session::take_candidates() {
  const kernels::FpEnv env;
  const Candidates& c = side_->sequence().candidates();
  const auto width = static_cast<size_t>(c.width);
  KeyedDice dice(options_.sampling.seed, options_.sampling.stream, static_cast<int64_t>(text_.size()) - 1);
  for (size_t r = 0; r < frontier_.size(); ++r) {
    const int32_t parent = frontier_[r];
    const size_t row = one_pass() ? static_cast<size_t>(tree_[parent].depth) : r;
    if (one_pass() && row >= static_cast<size_t>(c.levels)) continue;
    if (options_.sampled_rule) {
      // Child position: one past the node's, the root being text_.size() - 1.
      const int64_t position = static_cast<int64_t>(text_.size()) + tree_[parent].depth;
      law_.resize(static_cast<size_t>(model_->config().vocab_size));
      AERIE_TRY(distribution_.compute(target_logits(c, row), model_->config().vocab_used, options_.sampling, law_));
      AERIE_ASSIGN(const DrawnChildren* children, drawn_.draw(parent, law_, c.width, position, dice));
      count_proposed(tree_.add_children(parent, children->token, children->confidence));
    } else {
      const auto tokens = c.token.begin() + static_cast<std::ptrdiff_t>(row * width);
      children_.assign(tokens, tokens + c.width);
      confidence_.resize(width);
      for (size_t i = 0; i < width; ++i) confidence_[i] = kernels::exp_own(c.logp[row * width + i]);
      if (rules_.active()) drop_forbidden(parent);
      count_proposed(tree_.add_children(parent, children_, confidence_));
    }
  }
  return {};
}

// In place of what a constraint may forbid others are at hand.
int32_t Session::asked_width() const {
  constexpr int32_t kSpare = 6;
  return side_->sequence().width(policy_->width() + (rules_.constrained() && !options_.sampled_rule ? kSpare : 0));
}

// Which of `tokens` may come behind path_, the first `most`, to allowed_. What fails here fails in the walk, and is told then:
// drafts that do not come true cost time, nothing else.
void Session::find_allowed(std::span<const int32_t> tokens, size_t most) {
  try {
    if (rules_.find_allowed(path_, tokens, most, &allowed_).ok()) return;
  } catch (...) {  // the host's, or no memory
  }
  allowed_.resize(std::min(tokens.size(), most));
  std::iota(allowed_.begin(), allowed_.end(), size_t{0});
}

// Of children_, to be those of `parent`, what cannot come there, and more than the policy asked for.
void Session::drop_forbidden(int32_t parent) {
  path_.resize(static_cast<size_t>(tree_[parent].depth));
  for (int32_t a = parent; a > 0; a = tree_[a].parent) path_[static_cast<size_t>(tree_[a].depth) - 1] = tree_[a].token;
  find_allowed(children_, static_cast<size_t>(policy_->width()));
  for (size_t i = 0; i < allowed_.size(); ++i) {
    children_[i] = children_[allowed_[i]];
    confidence_[i] = confidence_[allowed_[i]];
  }
  children_.resize(allowed_.size());
  confidence_.resize(allowed_.size());
  put_foreseen_first();
}

// No node of this cycle's tree is deeper.
int32_t Session::most_levels() const { return std::min(max_depth_, policy_->best_depth()); }

// The best nodes of the product of the levels of a drafter that answered them all at once.
void Session::take_best(std::span<const int32_t> token, std::span<const float> logp) {
  const auto width = static_cast<size_t>(asked_width());
  const size_t levels = std::min(token.size() / width, static_cast<size_t>(most_levels()));
  confidence_.resize(levels * width);
  for (size_t i = 0; i < confidence_.size(); ++i) confidence_[i] = kernels::exp_own(logp[i]);
  if (rules_.active() && levels > 0) {  // of those deeper nobody knows what they will stand behind
    path_.clear();
    find_allowed(token.first(width), width);
    best_.assign(confidence_.begin(), confidence_.begin() + static_cast<std::ptrdiff_t>(width));
    std::fill_n(confidence_.begin(), width, 0.0f);
    for (const size_t i : allowed_) confidence_[i] = best_[i];
  }
  level_lists_.clear();
  for (size_t l = 0; l < levels; ++l)
    level_lists_.push_back({token.subspan(l * width, width), {confidence_.data() + l * width, width}});
  product_.grow(&tree_, level_lists_, policy_->best_nodes());
}

}  // namespace aerie

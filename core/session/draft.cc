// Observe and draft: the drafter sees what was committed and proposes a tree, level by level.
#include <algorithm>
#include <cmath>

#include "core/session/session.h"

namespace aerie {

bool Session::drafter_usable() const { return draft_ && !options_.drafter->quarantined(); }

void Session::drafter_failed(const Status& why, bool lost_sync, bool strike) {
  ++stats_.drafter_failures;
  if (strike) options_.drafter->strike(why);
  if (!lost_sync || options_.drafter->quarantined()) return;
  // What it has seen is in doubt: it starts over and is shown the whole text again.
  pending_.clear();
  if (Status s = draft_->restart(); !s.ok()) options_.drafter->strike(s);
}

// After a failure the step is plain decode. Under the sampled rule what was drawn stays: dropping draws
// for a reason that may depend on them would bend the law.
void Session::drop_draft() {
  if (!options_.sampled_rule) tree_.reset(text_.back());
}

int64_t Session::pending_count() const {
  const auto n = static_cast<int64_t>(pending_.size());
  return n > 0 && pending_first_ == draft_->observed() && pending_first_ + n == kv_len_ + 1 ? n : 0;
}

bool Session::align_drafter() {
  if (!feature_store_) return true;  // tokens alone are always at hand
  const int64_t next = draft_->observed() + pending_count();
  if (next >= kv_len_ + 1) return true;
  // Features for tokens next .. kv_len_ are gone: the target reads those rows again. They come out
  // bit for bit the same, so nothing but time is spent.
  pending_.clear();
  kv_len_ = draft_->observed() - 1;
  return false;
}

Status Session::add_observe(Plan& plan, int64_t end, const kernels::Tensor& fresh, ObserveCall* call) {
  if (!feature_store_) {
    observing_ = std::min(end, draft_->observed() + kMaxDraftRows);
    return draft_->observe(call, text_, observing_, {});
  }
  const int64_t waiting = pending_count(), n = waiting + (fresh ? fresh.rows : 0);
  if (draft_->observed() + n != end) return error(Code::internal, "session: features and tokens out of step");
  if (n == 0) return {};
  kernels::Tensor features = fresh;
  if (waiting > 0) {
    features = plan.scratch(n, feature_store_.cols);
    const int32_t* index = plan.stage(std::span<const int32_t>(pending_));
    plan.add(kernels::CopyRows{feature_store_, index, features, nullptr, waiting});
    if (fresh)
      plan.add(kernels::CopyRows{fresh, nullptr, kernels::rows(features, waiting, fresh.rows), nullptr, fresh.rows});
  }
  observing_ = end;
  return draft_->observe(call, text_, end, features);
}

Status Session::start_cycle() {
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
  CycleLimits limits;
  limits.max_depth = static_cast<int32_t>(std::min<int64_t>(room - 1, limits.max_depth));
  if (drafter_usable() && options_.drafter->needs().max_depth > 0)
    limits.max_depth = std::min(limits.max_depth, options_.drafter->needs().max_depth);
  if (drafter_usable() && one_pass()) limits.max_depth = std::min(limits.max_depth, options_.drafter->needs().levels);
  max_depth_ = limits.max_depth;
  // A tree that finds no more pages is cut, but not under the sampled rule.
  AERIE_TRY(reserve(size + (options_.sampled_rule ? std::min(max_depth_, kMaxTreeLevels) : 0)));
  policy_->begin(limits);
  tell_costs();
  cycle_ms_ = 0;
  observing_ = 0;
  host_proposed_ = false;
  // Where nobody knows what a pass costs, a plain one tells.
  const bool blind = policy_->wants_costs() && !target_cost_.known();
  if (!drafter_usable() || limits.max_depth < 1 || resting() || blind) return start_verify();

  if (options_.drafter->host_tokens()) {
    ++stats_.draft_passes;
    const Status s = draft_->propose_host(text_, policy_->width(), limits.max_depth, &tree_);
    host_proposed_ = s.ok();
    if (!s.ok()) drafter_failed(s, false);
    stats_.proposed += static_cast<uint64_t>(tree_.size() - 1);
    return start_verify();
  }
  const int64_t seen = feature_store_ ? draft_->observed() + pending_count()
                                      : std::min(size, draft_->observed() + kMaxDraftRows);
  if (seen != size || (feature_store_ && size < 2)) return start_verify();  // nothing to draft from yet
  draft_->begin_cycle(size);
  return next_draft_level();
}

bool Session::one_pass() const { return options_.drafter->needs().levels > 1; }

Status Session::next_draft_level() {
  for (;;) {
    if (!policy_->expand(tree_, &frontier_) || frontier_.empty()) return start_verify();
    if (!one_pass() || frontier_[0] == 0) break;
    const Status s = take_candidates();  // it has answered this level already
    if (s.ok()) continue;
    drafter_failed(s, false);
    drop_draft();
    return start_verify();
  }
  phase_ = Phase::draft;
  recorded_ = false;
  return {};
}

Status Session::add_draft(Plan& plan, DraftCalls* calls) {
  observing_ = 0;
  const auto size = static_cast<int64_t>(text_.size());
  root_rows_ = size - draft_->observed();
  DraftDraw draw;
  draw.shared_noise = options_.shared_noise && !options_.sampled_rule;
  draw.temperature = options_.sampling.temperature;
  draw.seed = options_.sampling.seed;
  draw.stream = options_.sampling.stream;
  draw.want_logits = options_.sampled_rule;
  const DraftRequest request{options_.drafter.get(), tree_[frontier_[0]].depth, draft_->width(policy_->width()),
                             draw.want_logits};
  DraftCall& call = calls->join(request, this, root_rows_, static_cast<int64_t>(frontier_.size()));
  if (root_rows_ > 0) AERIE_TRY(add_observe(plan, size, {}, &call.observe));
  return draft_->propose(&call.propose, tree_, frontier_, draw);
}

// The pass could not be recorded. Too many nodes is our own limit; what was drafted so far is verified.
Status Session::draft_failed(const Status& why, bool lost_sync, bool strike) {
  observing_ = 0;
  if (why.code() != Code::limit) {
    drafter_failed(why, lost_sync, strike);
    drop_draft();
  }
  return start_verify();
}

Status Session::finish_draft() {
  ++stats_.draft_passes;
  if (observing_ > 0) {
    draft_->observed_to(observing_);
    pending_.clear();
    observing_ = 0;
  }
  Status s = draft_->check_candidates(model_->config().vocab_used);
  const bool best_first = s.ok() && one_pass() && policy_->best_nodes() > 0;
  if (best_first) take_best();
  else if (s.ok()) s = take_candidates();
  if (s.ok()) return best_first ? start_verify() : next_draft_level();
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
  const Candidates& c = draft_->candidates();
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
      confidence_.resize(width);
      for (size_t i = 0; i < width; ++i) confidence_[i] = std::exp(c.logp[row * width + i]);
      count_proposed(tree_.add_children(parent, {c.token.data() + row * width, width}, confidence_));
    }
  }
  return {};
}

// The best nodes of the product of the levels of a drafter that answered them all at once.
void Session::take_best() {
  const Candidates& c = draft_->candidates();
  const auto width = static_cast<size_t>(c.width);
  const auto levels = static_cast<size_t>(std::min({c.levels, max_depth_, policy_->best_depth()}));
  confidence_.resize(levels * width);
  for (size_t i = 0; i < confidence_.size(); ++i) confidence_[i] = std::exp(c.logp[i]);
  level_lists_.clear();
  for (size_t l = 0; l < levels; ++l)
    level_lists_.push_back({{c.token.data() + l * width, width}, {confidence_.data() + l * width, width}});
  product_.grow(&tree_, level_lists_, policy_->best_nodes());
  count_proposed(tree_.size() - 1);
}

}  // namespace aerie

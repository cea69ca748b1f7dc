// Verify and commit: one target pass over the selected nodes, the walk, and what it keeps.
#include <algorithm>
#include <cstring>
#include <iterator>

#include "core/session/session.h"

namespace aerie {

namespace {

// The target's law for the sampled rule, from logits in host memory.
class HostLaw final : public TargetLaw {
 public:
  HostLaw(std::span<const float> logits, int32_t vocab, int32_t used, const kernels::Sampling& sampling,
          Distribution& distribution)
      : logits_(logits), vocab_(vocab), used_(used), sampling_(sampling), distribution_(distribution) {}
  int32_t vocab() const override { return vocab_; }
  Status probabilities(int32_t row, std::span<double> p) override {
    const auto v = static_cast<size_t>(vocab_);
    return distribution_.compute(logits_.subspan(static_cast<size_t>(row) * v, v), used_, sampling_, p);
  }

 private:
  std::span<const float> logits_;
  int32_t vocab_, used_;
  const kernels::Sampling& sampling_;
  Distribution& distribution_;
};

}  // namespace

// The first row of the feature store past those that wait, where n more fit; 0: none wait, or it is time to show them.
// (Their rows are those of their pass: behind a tree they lie apart.)
int64_t Session::room_after_pending(int32_t n) const {
  if (pending_count() == 0 || pending_count() + n >= kMaxTreeRows / 2) return 0;
  const int64_t first = *std::max_element(pending_.begin(), pending_.end()) + 1;
  return first + n <= kMaxTreeRows ? first : 0;
}

Status Session::start_verify() {
  selected_.clear();
  if (tree_.size() > 1) policy_->select(tree_, &selected_);
  rows_.build(tree_, selected_);
  const int32_t n = rows_.size();
  const auto size = static_cast<int64_t>(text_.size());
  const LlamaConfig& config = model_->config();
  const int32_t deepest = *std::max_element(rows_.depth.begin(), rows_.depth.end());
  // Pages for everything the walk may keep: after this nothing can fail for want of room.
  AERIE_TRY(kv_.reserve(size + deepest));
  for (bool with_drafter = drafter_usable() && !options_.drafter->host_tokens();; with_drafter = false) {
    plan_->clear();
    observing_ = 0;
    // A resting policy lets rows pile up, to be shown in one pass.
    feature_offset_ = with_drafter && resting() && feature_store_ ? room_after_pending(n) : 0;
    const bool waits = feature_offset_ > 0 || (with_drafter && resting() && !feature_store_ && size - draft_->observed() < kMaxTreeRows / 2);
    if (with_drafter && !waits && draft_->observed() < size) {
      // No draft this time; the drafter is shown what it has missed all the same, before this pass
      // overwrites the features.
      const Status s = feature_store_ && pending_count() == 0 ? Status() : record_observe(size, {});
      if (!s.ok()) {
        drafter_failed(s, true);
        continue;
      }
    }
    break;
  }
  ask_extra_rows();
  builder_.clear();
  builder_.sequence(kv_);
  builder_.plain(text_.back(), size - 1);
  for (int32_t i = 1; i < n; ++i) {
    const auto depth = static_cast<size_t>(rows_.depth[static_cast<size_t>(i)]);
    tail_.assign(depth, 0);
    for (int32_t a = i, d = static_cast<int32_t>(depth); d > 0; a = rows_.parent[static_cast<size_t>(a)], --d)
      tail_[static_cast<size_t>(d) - 1] = kv_.scratch_slot(a - 1);
    builder_.tree(rows_.token[static_cast<size_t>(i)], size, tail_);
  }
  stage_extra_rows();
  const Rows rows = builder_.stage(*plan_);
  kernels::Tensor features;
  std::span<const int32_t> taps;
  if (feature_store_ && drafter_usable()) {
    features = kernels::rows(feature_store_, feature_offset_, n);
    taps = options_.drafter->taps();
  }
  const kernels::Tensor hidden = model_->forward(*plan_, rows, taps, features);
  const kernels::Tensor logits = model_->logits(*plan_, hidden);
  if (options_.sampled_rule) {
    logits_.resize(static_cast<size_t>(n) * static_cast<size_t>(config.vocab_size));
    plan_->add(kernels::Download{logits_.data(), logits.data, static_cast<int64_t>(logits_.size() * 4)});
  } else {
    const kernels::WalkSeq seq{options_.sampling, size - 1, 0, 0};
    kernels::Walk walk;
    walk.logits = logits;
    walk.vocab_used = config.vocab_used;
    walk.token = plan_->stage(std::span<const int32_t>(rows_.token));
    walk.first_child = plan_->stage(std::span<const int32_t>(rows_.first_child));
    walk.next_sibling = plan_->stage(std::span<const int32_t>(rows_.next_sibling));
    walk.seqs = plan_->stage(std::span<const kernels::WalkSeq>(&seq, 1));
    walk.n_seqs = 1;
    walk.max_steps = deepest + 1;
    const int64_t bytes = kernels::walk_out_bytes(walk.max_steps);
    walk.out = plan_->scratch(1, (bytes + 3) / 4).data;
    plan_->add(walk);
    plan_->add(kernels::Download{walk_out_.data(), walk.out, bytes});
    if (!extra_token_.empty()) record_extra_walk(logits);
  }
  phase_ = Phase::verify;
  return plan_->submit(*queue_);
}

Status Session::walk_result() {
  kernels::WalkOut head;
  std::memcpy(&head, walk_out_.data(), sizeof head);
  if (head.status != 0 || head.count < 1)
    return error(Code::device, "the target produced a logit that is not finite after token " +
                                   std::to_string(text_.size() - 1));
  steps_.resize(static_cast<size_t>(head.count));
  std::memcpy(steps_.data(), walk_out_.data() + sizeof head, steps_.size() * sizeof steps_[0]);
  return {};
}

Status Session::sampled_result() {
  const LlamaConfig& config = model_->config();
  HostLaw law(logits_, config.vocab_size, config.vocab_used, options_.sampling, distribution_);
  const auto root = static_cast<int64_t>(text_.size()) - 1;
  KeyedDice dice(options_.sampling.seed, options_.sampling.stream, root);
  std::vector<SampledStep>& path = sampled_steps_;
  AERIE_TRY(multi_round_.verify(rows_, drawn_, policy_->draw_order(), root, law, dice, &path));
  steps_.clear();
  const auto v = static_cast<size_t>(config.vocab_size);
  for (const SampledStep& s : path) {
    const std::span<const float> row(logits_.data() + static_cast<size_t>(s.row) * v, v);
    steps_.push_back({s.row, s.token, static_cast<float>(raw_logprob(row, config.vocab_used, s.token)), 0});
  }
  return {};
}

// Cut the walk at a limit, an end of text, a stop token or a stop string.
void Session::truncate(int32_t max_tokens) {
  const LlamaConfig& config = model_->config();
  size_t keep = std::min(steps_.size(), static_cast<size_t>(max_emit_));
  if (max_tokens > 0) keep = std::min(keep, static_cast<size_t>(max_tokens));
  const auto listed = [](const std::vector<int32_t>& ids, int32_t t) {
    return std::find(ids.begin(), ids.end(), t) != ids.end();
  };
  for (size_t i = 0; i < keep; ++i) {
    const int32_t t = steps_[i].token;
    if (!options_.ignore_eos && listed(config.eos_ids, t)) finish_ = Finish::eos;
    else if (listed(options_.stop_tokens, t)) finish_ = Finish::stop_token;
    else if (stops_.active()) {
      const int32_t cut = stops_.push(t, i > 0 ? steps_[i - 1].token : text_.back());
      if (cut >= 0) {
        finish_ = Finish::stop_string;
        stop_bytes_ = cut;
      }
    }
    if (finish_ != Finish::none) keep = i + 1;
  }
  const bool full = keep == steps_.size() && finish_ == Finish::none && static_cast<int32_t>(keep) < max_emit_;
  for (size_t i = 0; i < std::min(keep, std::size(stats_.tried)); ++i) {
    if (rows_.first_child[static_cast<size_t>(steps_[i].row)] < 0) break;
    ++stats_.tried[i];
    stats_.taken[i] += i + 1 < steps_.size();
  }
  steps_.resize(keep);
  ++stats_.cycles;
  stats_.emitted += keep;
  stats_.accepted += keep - 1;
  stats_.verified += static_cast<uint64_t>(rows_.size() - 1);
  if (full) {
    ++stats_.full_cycles;
    stats_.full_emitted += keep;
  }
}

Status Session::finish_verify(int32_t max_tokens) {
  AERIE_TRY(options_.sampled_rule ? sampled_result() : walk_result());
  if (!extra_token_.empty()) tell_choices();
  if (observing_ > 0) {
    draft_->observed_to(observing_);
    observing_ = 0;
  }
  tell_outcome();
  const size_t drafted = steps_.size() - 1;  // all but the last were nodes of the tree
  truncate(max_tokens);
  emitted_.clear();
  for (size_t i = 0; i < steps_.size(); ++i)
    emitted_.push_back({steps_[i].token, steps_[i].logprob, i < drafted});
  copy_src_.clear();
  copy_dst_.clear();
  const auto size = static_cast<int64_t>(text_.size());
  for (size_t i = 1; i < steps_.size(); ++i) {
    copy_src_.push_back(kv_.scratch_slot(steps_[i].row - 1));
    copy_dst_.push_back(kv_.slot(size - 1 + static_cast<int64_t>(i)));
  }
  if (copy_src_.empty()) {
    commit();
    return {};
  }
  plan_->clear();
  const int32_t* src = plan_->stage(std::span<const int32_t>(copy_src_));
  const int32_t* dst = plan_->stage(std::span<const int32_t>(copy_dst_));
  plan_->add(kernels::KvCopy{kv_.cache(), src, dst, static_cast<int32_t>(copy_src_.size())});
  AERIE_TRY(plan_->submit(*queue_));
  phase_ = Phase::commit;
  // The tokens are decided; a copy of a few rows is not worth giving the frame back for.
  AERIE_ASSIGN(const kernels::RunState state, queue_->advance(kernels::kNoDeadline));
  if (state != kernels::RunState::done) return error(Code::device, "commit did not finish");
  commit();
  return {};
}

void Session::commit() {
  if (feature_offset_ == 0) {
    pending_first_ = static_cast<int64_t>(text_.size());
    pending_.clear();
  }
  for (const kernels::WalkStep& s : steps_) {
    text_.push_back(s.token);
    pending_.push_back(static_cast<int32_t>(feature_offset_) + s.row);
  }
  if (!feature_store_ || !drafter_usable()) pending_.clear();
  kv_len_ += static_cast<int64_t>(steps_.size());
  phase_ = Phase::idle;
}

}  // namespace aerie

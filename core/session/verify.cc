// Verify and commit: one target pass over the selected nodes, the walk, and what it keeps.
#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "core/session/session.h"
#include "kernels/fp_env.h"

namespace aerie {

namespace {

// The target's law for the sampled rule, from logits in host memory.
class HostLaw final : public TargetLaw {
 public:
  using Logits = std::function<Result<std::span<const float>>(int32_t row)>;
  using Ends = std::function<bool(int32_t token)>;
  HostLaw(Logits logits, Ends ends, int32_t vocab, int32_t used, const kernels::Sampling& sampling, Distribution& distribution)
      : logits_(std::move(logits)), ends_(std::move(ends)), vocab_(vocab), used_(used), sampling_(sampling), distribution_(distribution) {}
  int32_t vocab() const override { return vocab_; }
  bool ends(int32_t token) override { return ends_(token); }
  Status probabilities(int32_t row, std::span<double> p) override {
    AERIE_ASSIGN(const std::span<const float> logits, logits_(row));
    return distribution_.compute(logits, used_, sampling_, p);
  }

 private:
  Logits logits_;
  Ends ends_;
  int32_t vocab_, used_;
  const kernels::Sampling& sampling_;
  Distribution& distribution_;
};

}  // namespace

// Pages for everything the walk may keep: after this nothing can fail for want of room. Where they are short the tree
// is cut to those there are; the law of the sampled rule forbids that.
Status Session::reserve_tree() {
  const auto size = static_cast<int64_t>(text_.size());
  const Status s = reserve(size + *std::max_element(rows_.depth.begin(), rows_.depth.end()));
  if (s.code() != Code::limit || options_.sampled_rule) return s;
  std::erase_if(selected_, [&](int32_t node) { return size + tree_[node].depth > kv_.room(); });
  rows_.build(tree_, selected_);
  return {};
}

Status Session::build_rows() {
  rows_.build(tree_, selected_);
  add_foreseen_rows();
  return reserve_tree();
}

Status Session::start_verify() {
  selected_.clear();
  rows_decided_ = !offers_rows();
  if (rows_decided_ && tree_.size() > 1) policy_->select(tree_, &selected_);
  AERIE_TRY(build_rows());
  const auto size = static_cast<int64_t>(text_.size());
  // A drafter that is not asked waits. Otherwise, without a draft, it is shown what it has missed all the same, before
  // this pass overwrites the features.
  for (const auto& side : sides_) side->shows = false;
  for (const auto& side : followed()) {
    if (!side->usable() || side->host_tokens()) continue;
    const bool waits = plain_ || side.get() != side_;
    side->away = side->away || waits;
    if (waits) continue;
    if (const Status s = side->wake(size); !s.ok()) {
      drafter_failed(*side, s, true);
      continue;
    }
    side->shows = side->sequence().observed() < size && (!side->features() || side->waiting() > 0);
  }
  if (rows_decided_) ask_extra_rows();
  phase_ = Phase::verify;
  recorded_ = false;
  return {};
}

Status Session::add_missed(Plan& plan, DraftCalls* calls, Drafter** failed) {
  const auto size = static_cast<int64_t>(text_.size());
  for (const auto& side : sides_) {
    side->pass_begins();
    if (!side->shows) {
      side->keep(plan);
      continue;
    }
    *failed = &side->drafter();
    DraftCall& call = calls->join({&side->drafter()}, this, size - side->sequence().observed(), 0);
    AERIE_TRY(side->add_observe(plan, text_, size, {}, size, [&](int64_t) { return &call.observe; }));
  }
  return {};
}

void Session::stage_verify(RowsBuilder* rows, Walks* walks, std::vector<TappedRows>* tapped) {
  const int32_t n = device_.on() ? device_.verified() : rows_.size();
  const auto size = static_cast<int64_t>(text_.size());
  rows->plain(text_.back(), size - 1);
  if (device_.on()) stage_blank_tree(rows, walks);
  for (int32_t i = 1; i < rows_.size(); ++i) {
    const auto depth = static_cast<size_t>(rows_.depth[static_cast<size_t>(i)]);
    tail_.assign(depth, 0);
    for (int32_t a = i, d = static_cast<int32_t>(depth); d > 0; a = rows_.parent[static_cast<size_t>(a)], --d)
      tail_[static_cast<size_t>(d) - 1] = kv_.scratch_slot(a - 1);
    rows->tree(rows_.token[static_cast<size_t>(i)], size, tail_);
  }
  if (!device_.on()) walks->tree(rows_);
  if (!walks_on_host()) {
    walk_ = walks->start(options_.sampling, size - 1, first_row_, deepest());
    for (int32_t i = 1; i <= deepest(); ++i) walks->keep(walk_, i, kv_.slot(size - 1 + i));
  }
  stage_extra_rows(rows, walks);
  branches_ = rows->branches();
  for (const auto& side : followed())
    if (side->usable() && side->features()) tapped->push_back({side->drafter().taps(), first_row_, side->tap(n)});
}

// Walks on the host: the sampled rule's, and those that rules take part in.
void Session::record_download(Plan& plan, const kernels::Tensor& logits) {
  if (device_.on()) device_.download(plan);
  if (!walks_on_host()) return;
  const kernels::Tensor own = kernels::rows(logits, first_row_, rows_.size());
  logits_ = static_cast<const float*>(own.data);
  if (model_->device()->host_reads()) return;
  read_back_.resize(static_cast<size_t>(own.rows * own.cols));
  logits_ = read_back_.data();
  plan.add(kernels::Download{read_back_.data(), own.data, static_cast<int64_t>(read_back_.size() * 4)});
}

// Raw logits of a row, of ids that can be drawn.
std::span<const float> Session::target_row(int32_t row) const {
  return {logits_ + int64_t{row} * model_->config().vocab_size, static_cast<size_t>(model_->config().vocab_used)};
}

Status Session::not_finite() const {
  return error(Code::device, "the target produced a logit that is not finite after token " + std::to_string(text_.size() - 1));
}

Status Session::walk_result(const Walks& walks) {
  const auto steps = walks.result(walk_);
  if (steps.empty()) return not_finite();
  steps_.assign(steps.begin(), steps.end());
  for (kernels::WalkStep& s : steps_) s.row -= first_row_;
  return {};
}

Status Session::sampled_result() {
  const kernels::FpEnv env;
  const LlamaConfig& config = model_->config();
  AERIE_TRY(rules_.begin_walk(text_, generated_from_));
  HostLaw law([&](int32_t row) { return rules_.active() ? rules_.apply(target_row(row)) : Result<std::span<const float>>(target_row(row)); },
              [&](int32_t token) { return rules_.active() && ends_walk(token); }, config.vocab_size, config.vocab_used, options_.sampling, distribution_);
  const auto root = static_cast<int64_t>(text_.size()) - 1;
  KeyedDice dice(options_.sampling.seed, options_.sampling.stream, root);
  std::vector<SampledStep>& path = sampled_steps_;
  AERIE_TRY(multi_round_.verify(rows_, drawn_, policy_->draw_order(), root, law, dice, &path));
  steps_.clear();
  for (const SampledStep& s : path)
    steps_.push_back({s.row, s.token, static_cast<float>(raw_logprob(target_row(s.row), config.vocab_used, s.token)), 0});
  return {};
}

// What a token ends by itself.
Finish Session::finish_of(int32_t token) const {
  const auto listed = [token](const std::vector<int32_t>& ids) { return std::find(ids.begin(), ids.end(), token) != ids.end(); };
  if (!options_.ignore_eos && listed(model_->config().eos_ids)) return Finish::eos;
  return listed(options_.stop_tokens) ? Finish::stop_token : Finish::none;
}

size_t Session::most_emitted() const {
  return static_cast<size_t>(max_tokens_ > 0 ? std::min(max_emit_, max_tokens_) : max_emit_);
}

// Cut the walk at a limit, an end of text, a stop token or a stop string.
void Session::truncate() {
  rescan_stops();
  size_t keep = std::min(steps_.size(), most_emitted());
  for (size_t i = 0; i < keep; ++i) {
    const int32_t t = steps_[i].token;
    finish_ = finish_of(t);
    if (finish_ == Finish::none && stops_.active()) {
      const int32_t cut = stops_.push(t, i > 0 ? steps_[i - 1].token : text_.back());
      if (cut >= 0) {
        finish_ = Finish::stop_string;
        stop_bytes_ = cut;
      }
    }
    if (finish_ != Finish::none) keep = i + 1;
  }
  cut_ = keep < steps_.size();
  steps_.resize(keep);
}

void Session::count_cycle() {
  const size_t n = steps_.size();
  for (size_t i = 0; i < std::min(n, std::size(stats_.tried)); ++i) {
    if (rows_.first_child[static_cast<size_t>(steps_[i].row)] < 0) break;
    ++stats_.tried[i];
    stats_.taken[i] += i + 1 < n || cut_;
  }
  count_foreseen();
  ++stats_.cycles;
  stats_.emitted += n;
  stats_.accepted += n - 1;
  stats_.verified += static_cast<uint64_t>(rows_.size() - 1);
  if (cut_ || finish_ != Finish::none || static_cast<int32_t>(n) >= max_emit_) return;
  ++stats_.full_cycles;
  stats_.full_emitted += n;
}

Status Session::finish_verify(const Walks& walks, RowsBuilder* pass, std::vector<int32_t>* copy_src, std::vector<int32_t>* copy_dst) {
  if (device_.on()) take_device_draft();
  AERIE_TRY(options_.sampled_rule ? sampled_result() : rules_.active() ? ruled_result() : walk_result(walks));
  if (!extra_token_.empty()) tell_choices(walks);
  for (const auto& side : sides_) side->pass_ended();
  tell_outcome();
  count_choice();
  const size_t drafted = steps_.size() - 1;  // all but the last were nodes of the tree
  truncate();
  look_behind();
  emitted_.clear();
  for (size_t i = 0; i < steps_.size(); ++i)
    emitted_.push_back({steps_[i].token, steps_[i].logprob, i < drafted});
  if (branches_) {
    path_.clear();
    for (const kernels::WalkStep& s : steps_) path_.push_back(first_row_ + s.row);
    pass->keep_path(kv_, path_);
  }
  if (!walks_on_host()) return {};  // the pass has kept what it walked through
  const auto size = static_cast<int64_t>(text_.size());
  for (size_t i = 1; i < steps_.size(); ++i) {
    copy_src->push_back(kv_.scratch_slot(steps_[i].row - 1));
    copy_dst->push_back(kv_.slot(size - 1 + static_cast<int64_t>(i)));
  }
  return {};
}

void Session::commit() {
  count_cycle();
  frontier_.clear();
  for (const kernels::WalkStep& s : steps_) frontier_.push_back(s.row);
  for (const auto& side : sides_) side->lose_tapped();
  for (const auto& side : followed())
    if (side->usable()) side->took(frontier_, static_cast<int64_t>(text_.size()));
  learn_successors();
  for (const kernels::WalkStep& s : steps_) text_.push_back(s.token);
  if (!cut_ && walked_) rules_.commit(text_.size());
  kv_len_ += static_cast<int64_t>(steps_.size());
  kv_.state().advance(kv_len_);
  phase_ = Phase::idle;
}

}  // namespace aerie

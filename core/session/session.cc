#include "core/session/session.h"

#include <algorithm>
#include <new>

#include "core/policy/in_range.h"
#include "core/session/batch.h"

namespace aerie {

namespace {
constexpr double kLeastRepetition = double{0.01f};
constexpr float kMostBias = 1e6f;  // of a token that is to come whatever others say: no sum overflows
}  // namespace

Result<std::unique_ptr<Session>> Session::create(std::shared_ptr<Model> model, SessionOptions options) {
  AERIE_ASSIGN(auto s, make(std::move(model), std::move(options)));
  for (const auto& side : s->sides_)
    if (const Status begun = side->sequence().begin(); !begun.ok()) return begun.at(std::string("drafter ") + side->drafter().id());
  return s;
}

Result<std::unique_ptr<Session>> Session::make(std::shared_ptr<Model> model, SessionOptions options) {
  const int64_t limit = model->config().max_context;
  if (options.max_context < 0 || options.max_context > limit)
    return error(Code::invalid_argument, "max_context " + std::to_string(options.max_context) + ": the model has " +
                                             std::to_string(limit));
  std::unique_ptr<Session> s(new Session(std::move(model), std::move(options)));
  AERIE_TRY(s->start());
  return s;
}

Session::Session(std::shared_ptr<Model> model, SessionOptions options)
    : model_(std::move(model)),
      options_(std::move(options)),
      max_context_(options_.max_context > 0 ? options_.max_context : model_->config().max_context),
      kv_(model_->pool(), max_context_, kMaxTreeRows),
      rules_(model_->config().vocab_size, model_->config().vocab_used) {}

Status Session::start() {
  AERIE_TRY(check_sampling(options_.sampling, options_.logits));
  rules_.set(options_.logits);
  for (const int32_t t : options_.stop_tokens)
    if (t < 0 || t >= model_->config().vocab_size)
      return error(Code::invalid_argument, "stop token " + std::to_string(t) + " is not in the vocabulary");
  std::vector<std::unique_ptr<TreePolicy>> policies;
  AERIE_TRY(make_policies(options_.tree, &policies));
  AERIE_ASSIGN(own_, Stepper::create(model_));
  AERIE_TRY(own_->reserve(1, max_context_));
  if (policies[0]->wants_costs()) measure_drafters();
  AERIE_TRY(open_sides());
  choice_options_.reserve(sides_.size());
  use_policies(&policies);
  prepare_costs();
  draft_rows_.reserve(sides_.size());
  drafts_on_device_ = options_.drafts_on_device.value_or(model_->device()->far());
  // A commit allocates nothing: it is whole or it has not begun.
  text_.reserve(static_cast<size_t>(max_context_));
  frontier_.reserve(kMaxTreeNodes);
  emitted_.reserve(kMaxTreeNodes);
  return {};
}

Session::~Session() {
  if (batch_) batch_->forget(*this);
  if (flight_) flight_->withdraw(*this);
  try {
    leave_prefix();
    share_experience();
  } catch (const std::bad_alloc&) {  // the next session learns anew
  }
}

Status Session::check_sampling(const kernels::Sampling& s, const LogitOptions& logits) const {
  AERIE_TRY(in_range("sampling: temperature", s.temperature, 0, 1000));
  AERIE_TRY(in_range("sampling: top_p", s.top_p, 0, 1));
  AERIE_TRY(in_range("sampling: min_p", s.min_p, 0, 1));
  const PenaltyOptions& p = logits.penalties;
  AERIE_TRY(in_range("sampling: repetition_penalty", p.repetition, kLeastRepetition, 100));
  AERIE_TRY(in_range("sampling: presence_penalty", p.presence, -100, 100));
  AERIE_TRY(in_range("sampling: frequency_penalty", p.frequency, -100, 100));
  AERIE_TRY(in_range("sampling: penalty_window", p.window, 0, INT32_MAX));
  for (const LogitBias& b : logits.biases) {
    if (b.token < 0 || b.token >= model_->config().vocab_size)
      return error(Code::invalid_argument, "sampling: logit_bias: token " + std::to_string(b.token) + " is not in the vocabulary");
    if (!(b.bias <= kMostBias))  // NaN too
      return error(Code::invalid_argument, "sampling: logit_bias of token " + std::to_string(b.token) + " is " + std::to_string(b.bias));
  }
  return in_range("sampling: top_k", s.top_k, 0, INT32_MAX);
}

Status Session::check_tree(const TreePolicy& policy) const {
  if (!options_.sampled_rule) return {};
  if (!policy.draw_order())
    return error(Code::unsupported, std::string("the sampled rule is not exact with a reranked tree (") +
                                        policy.name() + "); use chain or static");
  if (options_.drafter && options_.drafter->host_tokens())
    return error(Code::unsupported, std::string("drafter ") + options_.drafter->id() +
                                        " gives no distribution to sample from");
  return {};
}

Status Session::append(std::span<const int32_t> tokens) {
  if (tokens.size() > static_cast<size_t>(max_context_) - text_.size())
    return error(Code::limit, "append: " + std::to_string(tokens.size()) + " tokens after " + std::to_string(text_.size()) +
                                  ", the context is " + std::to_string(max_context_));
  for (const int32_t t : tokens)
    if (t < 0 || t >= model_->config().vocab_size)
      return error(Code::invalid_argument, "append: token " + std::to_string(t) + " is not in the vocabulary of " +
                                               std::to_string(model_->config().vocab_size));
  if (tokens.empty()) return {};
  discard();
  text_.insert(text_.end(), tokens.begin(), tokens.end());
  generated_from_ = text_.size();
  rules_.begin_at(text_.size());
  stops_.reset();
  finish_ = Finish::none;
  return {};
}

Status Session::rewind(size_t length) {
  if (length > text_.size())
    return error(Code::invalid_argument, "rewind to " + std::to_string(length) + ": the text has " +
                                             std::to_string(text_.size()) + " tokens");
  discard();
  finish_ = Finish::none;
  if (length < text_.size()) {
    leave_prefix();
    text_.resize(length);
    const auto n = static_cast<int64_t>(length);
    go_back(std::min(kv_len_, std::max<int64_t>(0, n - 1)));
    for (const auto& side : sides_) {
      if (const Status s = side->rewind(n); !s.ok()) drafter_failed(*side, s, true);
    }
    kv_.shrink(kv_len_);
  }
  if (length == 0) from_image_ = false;
  generated_from_ = std::min(generated_from_, length);
  rules_.rewound(length);
  stops_stale_ = true;
  return {};
}

void Session::go_back(int64_t position) { kv_len_ = kv_.state() ? kv_.state().rewind(position) : position; }

void Session::rescan_stops() {
  if (!stops_stale_) return;
  stops_.reset();
  if (stops_.active())
    for (size_t i = generated_from_; i < text_.size(); ++i) (void)stops_.push(text_[i], i > 0 ? text_[i - 1] : -1);
  stops_stale_ = false;
}

Status Session::set_sampling(const kernels::Sampling& sampling, const LogitOptions& logits) {
  AERIE_TRY(check_sampling(sampling, logits));
  LogitOptions own = logits;
  discard();
  rules_.set(own);
  if (finish_ == Finish::constraint) finish_ = Finish::none;  // what was forbidden may come
  options_.sampling = sampling;
  options_.logits = std::move(own);
  return {};
}

Status Session::set_constraint(std::shared_ptr<const Constraint> constraint) {
  if (constraint) model_->successors().prepare();
  discard();
  if (finish_ == Finish::constraint) finish_ = Finish::none;
  return rules_.constrain(std::move(constraint), text_.size());
}

Status Session::set_tree(PolicySpec tree) {
  std::vector<std::unique_ptr<TreePolicy>> policies;
  AERIE_TRY(make_policies(tree, &policies));
  discard();
  share_experience();
  const bool known = target_cost_.known();
  std::swap(options_.tree, tree);
  use_policies(&policies);
  try {
    prepare_costs();
  } catch (...) {  // no memory: the tree of before stays
    if (!known) target_cost_ = LiveCost();
    std::swap(options_.tree, tree);
    use_policies(&policies);
    throw;
  }
  return {};
}

void Session::set_stop_strings(std::vector<std::string> strings, StopScanner::TokenBytes bytes) {
  discard();
  stops_.set(std::move(strings), std::move(bytes));
  stops_stale_ = true;  // one may have begun already
}

void Session::discard() noexcept {
  if (phase_ == Phase::idle) return;
  if (flight_) flight_->withdraw(*this);
  // The pass may have overwritten the features that wait for the drafter: the target reads those rows again.
  for (const auto& side : sides_) {
    if (phase_ == Phase::verify && recorded_) side->lose_tapped();
    side->pass_begins();
    // Rows of a discarded plan may have reached the drafter: it forgets them and is shown them again.
    const Status s = side->sequence().rollback(side->host_tokens() ? static_cast<int64_t>(text_.size()) : side->sequence().observed() + 1);
    if (!s.ok()) drafter_failed(*side, s, true);
  }
  phase_ = Phase::idle;
}

Status Session::step(int32_t max_tokens, std::chrono::microseconds budget, StepResult* out) {
  if (batch_) return error(Code::busy, "step: the session is in a batch, which is stepped as a whole");
  if (max_tokens < 0 || budget.count() < 0) return error(Code::invalid_argument, "step: negative limit");
  own_->step(alone_, max_tokens, budget, nullptr);
  *out = result();
  return status_;
}

StepResult Session::result() const {
  StepResult r;
  if (!status_.ok()) return r;
  r.tokens = emitted_;
  r.finish = finish_;
  r.stop_bytes = finish_ == Finish::stop_string ? stop_bytes_ : 0;
  r.state = finish_ != Finish::none ? StepState::done : emitted_.empty() ? StepState::pending : StepState::tokens;
  return r;
}

// ---- as a Stepper drives it ----

void Session::begin_step(int32_t max_tokens) {
  emitted_.clear();
  status_ = text_.empty() ? error(Code::invalid_argument, "step: append a prompt first") : Status();
  ended_before_ = finish_ != Finish::none;
  max_tokens_ = max_tokens;
  in_passes_ = 0;
}

bool Session::take_cancel() {
  if (!active() || !cancel_.exchange(false, std::memory_order_relaxed)) return false;
  status_ = error(Code::cancelled, "step: cancelled");
  return true;
}

Status Session::begin(bool any_rows) {
  if (text_.empty()) return error(Code::invalid_argument, "step: append a prompt first");  // its host took it while another asked for room
  keep_prefix();
  if (kv_len_ + 1 < static_cast<int64_t>(text_.size())) take_prefix();
  if (!align_drafters()) return start_prefill();
  if (kv_len_ + 1 < static_cast<int64_t>(text_.size())) return start_prefill();
  return start_cycle(any_rows);
}

void Session::in_flight(Stepper* stepper) {
  flight_ = stepper;
  flown_ = phase_;
  recorded_ = true;
}

int32_t Session::pass_rows() const {
  switch (phase_) {
    case Phase::prefill: return static_cast<int32_t>(prefill_end_ - kv_len_);
    case Phase::draft: return device_.on() ? 0 : static_cast<int32_t>(frontier_.size());
    case Phase::verify: return (device_.on() ? device_.verified() : rows_.size()) + static_cast<int32_t>(extra_token_.size());
    case Phase::idle: break;
  }
  return 0;
}

void Session::stage_rows(Plan& plan, RowsBuilder* rows, Walks* walks, std::vector<TappedRows>* tapped) {
  first_row_ = rows->size();
  rows->sequence(kv_);
  if (phase_ == Phase::prefill) stage_prefill(plan, rows, tapped);
  else stage_verify(rows, walks, tapped);
}

DraftSide* Session::side_of(const Drafter& drafter) const {
  for (const auto& side : sides_)
    if (&side->drafter() == &drafter) return side.get();
  return nullptr;
}

// The pass is recorded once more, without this drafter.
void Session::pass_without(const Drafter& drafter, const Status& why, bool strike) {
  DraftSide* side = side_of(drafter);
  if (!side) return;
  drafter_failed(*side, why, true, strike);
  side->shows = false;
  if (side == side_) device_.end();
}

Status Session::finish_pass(const Walks& walks, RowsBuilder* pass, std::vector<int32_t>* copy_src, std::vector<int32_t>* copy_dst) {
  if (phase_ == Phase::draft) return finish_draft();
  if (phase_ == Phase::verify) return finish_verify(walks, pass, copy_src, copy_dst);
  finish_prefill();
  return {};
}

void Session::count_time(uint64_t ns) {
  in_passes_ += ns;
  (flown_ == Phase::prefill ? stats_.prefill_ns : flown_ == Phase::draft ? stats_.draft_ns : stats_.verify_ns) += ns;
}

void Session::count_proposing(uint64_t ns) {
  in_passes_ += ns;
  stats_.draft_ns += ns;
}

// Wherever the cycle stood; what was committed stays, and so does the place to go on from.
void Session::give_up(const Status& why) noexcept {
  discard();
  emitted_.clear();
  finish_ = Finish::none;
  stops_stale_ = true;
  try {
    status_ = why;
  } catch (const std::bad_alloc&) {
    status_ = out_of_memory();
  }
}

}  // namespace aerie

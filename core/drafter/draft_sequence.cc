#include "core/drafter/draft_sequence.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace aerie {

namespace {
constexpr int32_t kTreeCapacity = 4096;
constexpr int32_t kHostCapacity = 512;
constexpr int64_t kMissed = 64;  // tokens that are read again for a sequence that began behind where the text now ends
}  // namespace

Result<std::unique_ptr<DraftSequence>> DraftSequence::create(std::shared_ptr<Drafter> drafter, int64_t max_context, const KvSequence* target) {
  std::unique_ptr<DraftSequence> s(new DraftSequence(std::move(drafter), max_context, target));
  AERIE_ASSIGN(s->seq_, s->drafter_->take_sequence());
  return s;
}

DraftSequence::DraftSequence(std::shared_ptr<Drafter> drafter, int64_t max_context, const KvSequence* target)
    : drafter_(std::move(drafter)),
      target_(drafter_->resources().reads_target ? target : nullptr),
      least_(drafter_->wants_features() ? 1 : 0),
      first_(least_),
      observed_(least_),
      fed_(kTreeCapacity, -1) {
  if (drafter_->resources().pool)
    kv_ = std::make_unique<KvSequence>(drafter_->resources().pool, max_context + 1, kMaxFedNodes);
  if (drafter_->host_tokens()) {
    host_token_.resize(kHostCapacity);
    host_parent_.resize(kHostCapacity);
    host_node_.resize(kHostCapacity);
    host_confidence_.resize(kHostCapacity);
  }
}

DraftSequence::~DraftSequence() {
  if (seq_ < 0) return;
  (void)drafter_->call("end", [&](const aerie_drafter& d) {
    d.end(d.self, seq_);
    return int32_t{AERIE_D_OK};
  });
  drafter_->give_back_sequence(seq_);
}

void DraftSequence::start_over(int64_t from) noexcept {
  observed_ = first_ = std::max(least_, from);
  if (kv_) kv_->shrink(0);
  begun_ = false;
}

Status DraftSequence::begin() {
  if (begun_) return {};
  AERIE_TRY(drafter_->call("begin", [&](const aerie_drafter& d) { return d.begin(d.self, seq_); }));
  begun_ = true;
  return {};
}

Status DraftSequence::restart(int64_t from) {
  start_over(from);
  return begin();
}

Status DraftSequence::rollback(int64_t n) {
  if (drafter_->host_tokens()) {  // it is shown no rows: what it keeps is of the text itself
    observed_ = std::min(observed_, n);
    return forget_from(n);
  }
  if (n - 1 < first_ && first_ > least_) return restart(n - kMissed);  // it never saw that
  // Row n - 1 goes too: showing it again makes it the newest row, whose state answers for the root.
  const int64_t keep = std::max(first_, std::min(observed_, n - 1));
  observed_ = keep;
  if (kv_) kv_->shrink(keep - first_);
  return forget_from(keep - first_);
}

Status DraftSequence::forget_from(int64_t row) {
  if (!begun_) return {};
  return drafter_->call("rollback", [&](const aerie_drafter& d) {
    return d.rollback ? d.rollback(d.self, seq_, static_cast<int32_t>(row)) : int32_t{AERIE_D_OK};
  });
}

DraftSequence::Seen DraftSequence::resumable(int64_t n) const {
  return drafter_->host_tokens() || drafter_->keeps_state() ? nothing() : Seen{first_, std::max(first_, n)};
}

Status DraftSequence::resume(const Seen& seen) {
  const bool none = drafter_->host_tokens() || drafter_->keeps_state();
  if (seen.begin < least_ || seen.rows() < 0 || (none && seen.end != least_))
    return error(Code::bad_format, "drafter observed: not of this drafter");
  if (kv_) AERIE_TRY(kv_->reserve(seen.rows()));
  first_ = seen.begin;
  observed_ = seen.end;
  return {};
}

DraftRows DraftSequence::rows() const {
  if (drafter_->keeps_state() || first_ != least_) return {};
  return {kv_.get(), observed_ - first_, least_ > 0};
}

int64_t DraftSequence::after(const Prefix::Draft& kept, int64_t target_pages, int64_t text_size) const {
  if (drafter_->keeps_state()) return observed_;
  const int64_t rows = kv_ ? kept.rows : target_pages * kernels::kPageSlots;
  return std::max(observed_, std::min(rows + least_, text_size - 1));
}

void DraftSequence::restore(const Prefix::Draft& kept, int64_t observed) {
  observed_ = observed;
  first_ = least_;
  if (kv_) kv_->share(kept.pages, observed_ - first_);
}

Status DraftSequence::take_over(const DraftSequence& other, int64_t text_size) {
  AERIE_TRY(begin());
  if (!other.begun_) return {};  // it is shown the text
  if (const aerie_extension_fork* extension = drafter_->forks())
    AERIE_TRY(drafter_->call("fork", [&](const aerie_drafter& d) { return extension->fork(d.self, other.seq_, seq_); }));
  else if (drafter_->keeps_state()) return {};  // it is shown the text
  observed_ = other.observed_;
  first_ = other.first_;
  if (kv_) kv_->share(*other.kv_, observed_ - first_);
  return rollback(text_size);
}

Status DraftSequence::observe(ObserveCall* call, std::span<const int32_t> text, int64_t begin, int64_t end,
                              const kernels::Tensor& features) {
  if (end <= begin || drafter_->host_tokens()) return {};
  AERIE_TRY(this->begin());
  if (kv_) AERIE_TRY(kv_->reserve(end - first_, begin - first_));
  call->sequence(seq_, kv_.get(), features, target_);
  for (int64_t i = begin; i < end; ++i) call->row(text[static_cast<size_t>(i)], i - first_, i);
  return {};
}

Status DraftSequence::observe(Plan& plan, std::span<const int32_t> text, int64_t end, const kernels::Tensor& features) {
  own_observe_.begin(*drafter_);
  AERIE_TRY(observe(&own_observe_, text, observed_, end, features));
  return own_observe_.record(plan);
}

void DraftSequence::begin_cycle(int64_t text_size) {
  std::fill(fed_.begin(), fed_.end(), -1);
  fed_[0] = 0;
  n_fed_ = 1;
  text_size_ = text_size;
}

int32_t DraftSequence::width(int32_t wanted) const {
  const int32_t width = std::min({wanted, kernels::kMaxTopK, drafter_->target()->config().vocab_used});
  return drafter_->needs().max_width > 0 ? std::min(width, drafter_->needs().max_width) : width;
}

Status DraftSequence::propose(ProposeCall* call, const DraftTree& tree, std::span<const int32_t> frontier,
                              const DraftDraw& draw) {
  const auto n = static_cast<int32_t>(frontier.size());
  const int32_t level = tree[frontier[0]].depth, levels = drafter_->needs().levels;
  if (level > 0 && levels > 1) return error(Code::internal, "a one-pass drafter is asked about roots only");
  const bool again = fed_[static_cast<size_t>(frontier[0])] >= 0;  // this level was recorded before: the same ids
  if (n > kMaxDraftRows || (!again && n_fed_ + n > kMaxFedNodes)) return error(Code::limit, "too many nodes in one draft");
  // Rows of the drafter, the root's included: it is observed by now, or in this pass.
  const int64_t committed = text_size_ - first_;
  if (kv_ && (level > 0 || has_block())) AERIE_TRY(kv_->reserve(committed, kv_->room()));
  call->sequence(seq_, kv_.get(), &candidates_, target_, text_size_ - 1);
  for (const int32_t at : frontier) {
    const DraftNode& node = tree[at];
    if (level > 0 && !again) fed_[static_cast<size_t>(at)] = n_fed_++;
    if (level == 0) block_slots();
    else tail_.assign(static_cast<size_t>(level), 0);
    if (kv_)
      for (int32_t a = at, d = level; d > 0; a = tree[a].parent, --d)
        tail_[static_cast<size_t>(d) - 1] = kv_->scratch_slot(fed_[static_cast<size_t>(a)]);
    call->row(node.token, committed - 1 + level, node_base() + fed_[static_cast<size_t>(at)],
              level > 0 ? node_base() + fed_[static_cast<size_t>(node.parent)] : -1, committed, tail_);
    add_keys(call, level, draw);
  }
  return {};
}

// Where the root's block goes: into tail_, which is empty without one.
void DraftSequence::block_slots() {
  tail_.clear();
  for (int32_t i = 0; i < drafter_->resources().block_rows; ++i) tail_.push_back(kv_->scratch_slot(i));
}

// For the token after a text of text_size_ + level, and for further levels.
void DraftSequence::add_keys(ProposeCall* call, int32_t level, const DraftDraw& draw) const {
  for (int32_t l = 0; l < drafter_->needs().levels; ++l)
    call->key({draw.seed, draw.stream, text_size_ + level + l, draw.shared_noise ? draw.temperature : 0, 0});
}

Status DraftSequence::propose_blank(ProposeCall* call, int32_t root_token, int32_t level, int32_t n, int32_t first,
                                    const DraftDraw& draw) {
  const int64_t committed = text_size_ - first_;
  if (kv_ && (level > 0 || has_block())) AERIE_TRY(kv_->reserve(committed, kv_->room()));
  call->sequence(seq_, kv_.get(), &candidates_, target_, text_size_ - 1);
  for (int32_t r = 0; r < n; ++r) {
    const int32_t row = level > 0 ? first + r : 0;
    if (level == 0) block_slots();
    else tail_.assign(static_cast<size_t>(level), kv_ ? kv_->scratch_slot(row) : 0);
    call->row(root_token, committed - 1 + level, node_base() + row, level > 0 ? node_base() : -1, committed, tail_);
    add_keys(call, level, draw);
  }
  return {};
}

Status DraftSequence::stage_slots(Plan& plan, int32_t n, const int32_t** out) {
  *out = nullptr;
  if (!kv_) return {};
  AERIE_TRY(kv_->reserve(text_size_ - first_, kv_->room()));  // a fork has none of its own yet
  slots_.clear();
  for (int32_t i = 0; i < n; ++i) slots_.push_back(kv_->scratch_slot(i));
  *out = plan.stage(std::span<const int32_t>(slots_));
  return {};
}

Status DraftSequence::propose(Plan& plan, const DraftTree& tree, std::span<const int32_t> frontier, int32_t width,
                              const DraftDraw& draw) {
  own_propose_.begin(*drafter_, tree[frontier[0]].depth, this->width(width), draw.want_logits);
  AERIE_TRY(propose(&own_propose_, tree, frontier, draw));
  return own_propose_.record(plan);
}

Status DraftSequence::check_candidates(int32_t vocab_used) const {
  const Candidates& c = candidates_;
  const auto width = static_cast<size_t>(c.width);
  for (size_t row = 0; row * width < c.token.size(); ++row) {
    if (c.token[row * width] < 0) return error(Code::plugin, "propose: logits are not finite");
    for (size_t i = row * width; i < (row + 1) * width; ++i) {
      if (c.token[i] < 0) continue;  // fewer than `width` tokens exist
      if (c.token[i] >= vocab_used) return error(Code::plugin, "propose: token " + std::to_string(c.token[i]));
      if (std::isnan(c.logp[i]) || c.logp[i] > 1e-3f) return error(Code::plugin, "propose: confidence is not finite");
    }
  }
  return {};
}

Status DraftSequence::propose_host(std::span<const int32_t> text, int32_t width, int32_t max_depth, DraftTree* tree) {
  AERIE_TRY(begin());
  const LlamaConfig& target = drafter_->target()->config();
  aerie_host_context context{};
  context.struct_size = sizeof context;
  context.seq = seq_;
  context.tokens = text.data();
  context.n_tokens = static_cast<int32_t>(text.size());
  context.width = width;
  context.max_depth = max_depth;
  aerie_host_candidates out{};
  out.struct_size = sizeof out;
  out.capacity = kHostCapacity;
  out.token = host_token_.data();
  out.parent = host_parent_.data();
  out.confidence = host_confidence_.data();
  AERIE_TRY(drafter_->call("propose_host",
                           [&](const aerie_drafter& d) { return d.propose_host(d.self, &context, &out); }));
  if (out.count < 0 || out.count > kHostCapacity)
    return error(Code::plugin, "propose_host: count " + std::to_string(out.count));
  for (int32_t i = 0; i < out.count; ++i) {  // all of it, before any of it is used
    const auto s = static_cast<size_t>(i);
    if (host_parent_[s] < -1 || host_parent_[s] >= i)
      return error(Code::plugin, "propose_host: node " + std::to_string(i) + ": parent " + std::to_string(host_parent_[s]));
    if (host_token_[s] < 0 || host_token_[s] >= target.vocab_size)
      return error(Code::plugin, "propose_host: node " + std::to_string(i) + ": token " + std::to_string(host_token_[s]));
    if (!(host_confidence_[s] >= 0.0f && host_confidence_[s] <= 1.0f))
      return error(Code::plugin, "propose_host: node " + std::to_string(i) + ": confidence is not in [0, 1]");
  }
  for (int32_t i = 0; i < out.count; ++i) {
    const auto s = static_cast<size_t>(i);
    const int32_t parent = host_parent_[s] < 0 ? 0 : host_node_[static_cast<size_t>(host_parent_[s])];
    host_node_[s] = -1;
    // Its parent was left out, or it repeats a token of the prompt that can never be drawn: nobody's fault.
    if (parent < 0 || host_token_[s] >= target.vocab_used) continue;
    if (tree->add_children(parent, {&host_token_[s], 1}, {&host_confidence_[s], 1}) == 1) host_node_[s] = tree->size() - 1;
  }
  return {};
}

Status DraftSequence::extra_rows(int32_t capacity, std::vector<int32_t>* token, std::vector<int32_t>* parent) {
  token->clear();
  parent->clear();
  const aerie_extension_extra_rows* extra = drafter_->extra_rows();
  if (!extra) return {};
  capacity = std::min(capacity, extra->max_rows);
  if (capacity < 1) return {};
  int32_t count = 0;
  AERIE_TRY(drafter_->call("extra rows", [&](const aerie_drafter& d) {
    return extra->rows(d.self, seq_, capacity, host_token_.data(), host_parent_.data(), &count);
  }));
  const auto bad = [](const std::string& what) { return error(Code::plugin, "extra rows: " + what); };
  if (count < 0 || count > capacity) return bad("count " + std::to_string(count));
  for (int32_t i = 0; i < count; ++i) {
    const auto s = static_cast<size_t>(i);
    if (host_parent_[s] < -1 || host_parent_[s] >= i)
      return bad("row " + std::to_string(i) + ": parent " + std::to_string(host_parent_[s]));
    if (host_token_[s] < 0 || host_token_[s] >= drafter_->target()->config().vocab_size)
      return bad("row " + std::to_string(i) + ": token " + std::to_string(host_token_[s]));
  }
  token->assign(host_token_.begin(), host_token_.begin() + count);
  parent->assign(host_parent_.begin(), host_parent_.begin() + count);
  return {};
}

Status DraftSequence::chosen(std::span<const int32_t> choice) {
  return drafter_->call("chosen", [&](const aerie_drafter& d) {
    return drafter_->extra_rows()->chosen(d.self, seq_, static_cast<int32_t>(choice.size()), choice.data());
  });
}

}  // namespace aerie

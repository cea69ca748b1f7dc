#include "core/drafter/draft_call.h"

#include <algorithm>

namespace aerie {

namespace {

aerie_tensor index(const int32_t* address, size_t n) {
  return to_abi(kernels::matrix(const_cast<int32_t*>(address), 1, static_cast<int64_t>(n), kernels::DType::i32));
}
aerie_tensor index(Plan& plan, const std::vector<int32_t>& values) {
  return index(plan.stage(std::span<const int32_t>(values)), values.size());
}

void prepare(Candidates* c, int32_t rows, int32_t levels, int32_t width, bool want_logits, bool stay = false) {
  c->rows = rows;
  c->levels = levels;
  c->width = width;
  const size_t n = static_cast<size_t>(rows) * static_cast<size_t>(levels) * static_cast<size_t>(width);
  c->token.assign(n, -1);
  c->logp.assign(n, 0.0f);
  c->want_logits = want_logits;
  c->filled = false;
  c->stay = stay;
}

// A plugin refuses a plan that has found no memory, which is no failing of its own.
Status said(const Status& plugin, const Plan& plan) { return plan.status().ok() ? plugin : plan.status(); }

}  // namespace

// ---- observe ----

void ObserveCall::begin(Drafter& drafter) {
  drafter_ = &drafter;
  has_kv_ = false;
  attention_.clear();
  for (auto* v : {&token_, &position_, &last_, &root_, &sequence_}) v->clear();
  features_.clear();
  targets_.clear();
  newest_.clear();
}

void ObserveCall::sequence(int32_t seq, const KvSequence* kv, const kernels::Tensor& features, const KvSequence* target) {
  if (target) targets_.push_back(target);
  newest_.push_back(0);
  sequence_.push_back(seq);
  root_.push_back(seq * kMaxFedNodes);
  last_.push_back(rows());
  if (features) features_.push_back(features);
  if (kv) attention_.sequence(*kv);
  has_kv_ = kv != nullptr;
}

void ObserveCall::row(int32_t token, int64_t position, int64_t at) {
  last_.back() = rows();
  newest_.back() = at;
  token_.push_back(token);
  position_.push_back(static_cast<int32_t>(position));
  if (has_kv_) attention_.plain(token, position);
}

Status ObserveCall::record(Plan& plan) {
  if (token_.empty()) return {};
  kernels::Tensor features;
  if (features_.size() == 1) {
    features = features_[0];
  } else if (!features_.empty()) {  // end to end
    features = plan.scratch(rows(), features_[0].cols);
    int64_t at = 0;
    for (const kernels::Tensor& f : features_) {
      plan.add(kernels::CopyRows{f, nullptr, kernels::rows(features, at, f.rows), nullptr, f.rows});
      at += f.rows;
    }
  }
  aerie_attention attention;
  if (has_kv_) attention.rows = attention_.stage(plan);
  target_.clear();
  for (size_t s = 0; s < targets_.size(); ++s) {
    target_.sequence(*targets_[s]);
    target_.beside(token_[static_cast<size_t>(last_[s])], newest_[s]);
  }
  if (!targets_.empty()) attention.target = target_.stage(plan);
  aerie_draft_rows rows{};
  rows.struct_size = sizeof rows;
  rows.n = this->rows();
  rows.n_seqs = static_cast<int32_t>(sequence_.size());
  rows.token = index(plan, token_);
  rows.position = index(plan, position_);
  rows.last_row = index(plan, last_);
  rows.root = index(plan, root_);
  rows.sequence = index(plan, sequence_);
  if (features) rows.feature = to_abi(features);
  rows.attention = &attention;
  aerie_plan handle{&plan, &drafter_->resources()};
  return said(drafter_->call("observe", [&](const aerie_drafter& d) { return d.observe(d.self, &handle, &rows); }), plan);
}

// ---- propose ----

void ProposeCall::begin(Drafter& drafter, int32_t level, int32_t width, bool want_logits) {
  drafter_ = &drafter;
  level_ = level;
  width_ = width;
  want_logits_ = want_logits;
  has_kv_ = reads_target_ = noise_ = stay_ = staged_ = false;
  attention_.clear();
  target_.clear();
  for (auto* v : {&token_, &position_, &node_, &parent_, &sequence_}) v->clear();
  keys_.clear();
  shares_.clear();
}

void ProposeCall::sequence(int32_t seq, const KvSequence* kv, Candidates* out, const KvSequence* target, int64_t root) {
  shares_.push_back({out, rows(), 0});
  if (kv) attention_.sequence(*kv);
  has_kv_ = kv != nullptr;
  if (target) target_.sequence(*target);
  reads_target_ = target != nullptr;
  root_ = root;
  current_ = seq;
}

void ProposeCall::row(int32_t token, int64_t position, int32_t node, int32_t parent, int64_t committed,
                      std::span<const int32_t> tail) {
  ++shares_.back().n;
  token_.push_back(token);
  position_.push_back(static_cast<int32_t>(position));
  node_.push_back(node);
  parent_.push_back(parent);
  sequence_.push_back(current_);
  if (has_kv_ && level_ > 0) attention_.tree(token, committed, tail);
  else if (in_blocks()) attention_.block(token, drafter_->resources().block_filler, committed, tail);
  if (reads_target_ && level_ > 0) target_.beside(token, root_);
}

void ProposeCall::key(const kernels::DrawKey& key) {
  keys_.push_back(key);
  noise_ = noise_ || key.temperature > 0;
}

void ProposeCall::stage(Plan& plan) {
  staged_ = true;
  staged_attention_ = {};
  if (has_kv_ && level_ > 0) staged_attention_.rows = attention_.stage(plan);
  if (in_blocks()) {
    staged_attention_.block = attention_.stage(plan);
    if (drafter_->resources().block_windows) staged_attention_.causal = attention_.stage_causal(plan, staged_attention_.block);
  }
  if (reads_target_ && level_ > 0) staged_attention_.target = target_.stage(plan);
  aerie_draft_rows& rows = staged_rows_;
  rows = {};
  rows.struct_size = sizeof rows;
  rows.n = this->rows();
  rows.n_seqs = static_cast<int32_t>(shares_.size());
  rows.level = level_;
  // One place for a model's own passes and for the plugin: a device that draws the tree writes it.
  const int32_t* tokens = staged_attention_.rows.token;
  rows.token = tokens ? index(tokens, token_.size()) : index(plan, token_);
  rows.position = index(plan, position_);
  rows.node = index(plan, node_);
  if (level_ > 0) rows.parent = index(plan, parent_);
  rows.sequence = index(plan, sequence_);
  rows.attention = &staged_attention_;
}

kernels::TreeDraftRows ProposeCall::blank_rows(int32_t first) const {
  const auto from = [&](const aerie_tensor& t) { return static_cast<int32_t*>(t.data) + first; };
  kernels::TreeDraftRows r;
  r.token = from(staged_rows_.token);
  r.parent = from(staged_rows_.parent);
  if (has_kv_) r.tail_slots = const_cast<int32_t*>(staged_attention_.rows.attention.tail_slots) + attention_.tail_of(first);
  return r;
}

Status ProposeCall::record(Plan& plan) {
  if (!staged_) stage(plan);
  const aerie_draft_rows& rows = staged_rows_;
  const int32_t levels = drafter_->needs().levels;
  Candidates& c = shares_.size() == 1 ? *shares_[0].out : all_;
  prepare(&c, rows.n, levels, width_, want_logits_, stay_);
  out_ = {&c, noise_ ? plan.stage(std::span<const kernels::DrawKey>(keys_)) : nullptr};
  aerie_plan handle{&plan, &drafter_->resources()};
  AERIE_TRY(said(drafter_->call("propose", [&](const aerie_drafter& d) { return d.propose(d.self, &handle, &rows, &out_); }), plan));
  if (!c.filled) return error(Code::plugin, "propose gave no candidates");
  return {};
}

void ProposeCall::deliver() {
  if (shares_.size() < 2) return;
  for (const Share& s : shares_) {
    if (!s.out) continue;
    Candidates& c = *s.out;
    prepare(&c, s.n, all_.levels, all_.width, all_.want_logits);
    const auto slots = static_cast<size_t>(s.n) * static_cast<size_t>(all_.levels);
    const auto first = static_cast<size_t>(s.first) * static_cast<size_t>(all_.levels);
    const auto copy = [&](const auto& from, auto& to, size_t columns) {
      to.assign(from.begin() + static_cast<std::ptrdiff_t>(first * columns),
                from.begin() + static_cast<std::ptrdiff_t>((first + slots) * columns));
    };
    copy(all_.token, c.token, static_cast<size_t>(all_.width));
    copy(all_.logp, c.logp, static_cast<size_t>(all_.width));
    c.filled = true;
    if (!all_.want_logits) continue;
    c.vocab = all_.vocab;
    c.map = all_.map;
    copy(all_.logits, c.logits, static_cast<size_t>(all_.vocab));
  }
}

void ProposeCall::forget(const Candidates* out) {
  for (Share& s : shares_)
    if (s.out == out) s.out = nullptr;
}

}  // namespace aerie

#include "core/model/rows.h"

#include <algorithm>

namespace aerie {

void RowsBuilder::clear() {
  kv_ = nullptr;
  for (auto* v : {&token_, &position_, &slot_, &seq_, &ctx_len_, &tail_offset_, &tail_len_, &tail_slots_, &first_row_, &last_plain_, &parent_})
    v->clear();
  sequences_.clear();
  branches_.clear();
  paths_.clear();
  path_rows_.clear();
}

void RowsBuilder::sequence(const KvSequence& kv) {
  kv_ = &kv;
  sequences_.push_back(&kv);
  if (!kv.state()) return;
  first_row_.push_back(size());
  last_plain_.push_back(-1);
  branches_.push_back(0);
}

bool RowsBuilder::any_branches() const { return std::find(branches_.begin(), branches_.end(), 1) != branches_.end(); }

// Ancestors are told by where their keys and values go.
int32_t RowsBuilder::parent_of(std::span<const int32_t> tail) const {
  if (tail.size() == 1) return last_plain_.back();
  int32_t row = size() - 1;
  while (row > first_row_.back() && slot_[static_cast<size_t>(row)] != tail[tail.size() - 2]) --row;
  return row;
}

void RowsBuilder::plain(int32_t token, int64_t position) {
  if (kv_->state()) {
    parent_.push_back(last_plain_.back());
    last_plain_.back() = size();
  }
  token_.push_back(token);
  position_.push_back(static_cast<int32_t>(position));
  slot_.push_back(kv_->slot(position));
  seq_.push_back(static_cast<int32_t>(sequences_.size()) - 1);
  ctx_len_.push_back(static_cast<int32_t>(position) + 1);
  tail_offset_.push_back(static_cast<int32_t>(tail_slots_.size()));
  tail_len_.push_back(0);
}

void RowsBuilder::beside(int32_t token, int64_t position) {
  token_.push_back(token);
  position_.push_back(static_cast<int32_t>(position));
  slot_.push_back(-1);
  seq_.push_back(static_cast<int32_t>(sequences_.size()) - 1);
  ctx_len_.push_back(static_cast<int32_t>(position));
  tail_offset_.push_back(static_cast<int32_t>(tail_slots_.size()));
  tail_len_.push_back(0);
}

void RowsBuilder::tree(int32_t token, int64_t ctx_len, std::span<const int32_t> tail) {
  if (kv_->state()) {
    parent_.push_back(parent_of(tail));
    branches_.back() = 1;
  }
  token_.push_back(token);
  position_.push_back(static_cast<int32_t>(ctx_len + static_cast<int64_t>(tail.size()) - 1));
  slot_.push_back(tail.back());
  seq_.push_back(static_cast<int32_t>(sequences_.size()) - 1);
  ctx_len_.push_back(static_cast<int32_t>(ctx_len));
  tail_offset_.push_back(static_cast<int32_t>(tail_slots_.size()));
  tail_len_.push_back(static_cast<int32_t>(tail.size()));
  tail_slots_.insert(tail_slots_.end(), tail.begin(), tail.end());
}

void RowsBuilder::block(int32_t token, int32_t filler, int64_t ctx_len, std::span<const int32_t> slots) {
  const auto offset = static_cast<int32_t>(tail_slots_.size());
  tail_slots_.insert(tail_slots_.end(), slots.begin(), slots.end());
  for (size_t i = 0; i < slots.size(); ++i) {
    token_.push_back(i == 0 ? token : filler);
    position_.push_back(static_cast<int32_t>(ctx_len + static_cast<int64_t>(i)));
    slot_.push_back(slots[i]);
    seq_.push_back(static_cast<int32_t>(sequences_.size()) - 1);
    ctx_len_.push_back(static_cast<int32_t>(ctx_len));
    tail_offset_.push_back(offset);
    tail_len_.push_back(static_cast<int32_t>(slots.size()));
  }
}

Rows RowsBuilder::stage(Plan& plan) const {
  size_t stride = 1;
  for (const KvSequence* s : sequences_) stride = std::max(stride, s->pages().size());
  pages_.assign(stride * sequences_.size(), 0);
  for (size_t i = 0; i < sequences_.size(); ++i)
    std::copy(sequences_[i]->pages().begin(), sequences_[i]->pages().end(), pages_.begin() + i * stride);
  const auto put = [&](const std::vector<int32_t>& v) { return plan.stage(std::span<const int32_t>(v)); };
  Rows r;
  r.n = size();
  for (size_t i = 0; i < ctx_len_.size(); ++i) r.longest = std::max(r.longest, int64_t{ctx_len_[i]} + tail_len_[i]);
  r.token = put(token_);
  r.position = put(position_);
  r.slot = put(slot_);
  r.attention.pages = put(pages_);
  r.attention.page_stride = static_cast<int32_t>(stride);
  r.attention.seq = put(seq_);
  r.attention.ctx_len = put(ctx_len_);
  r.attention.tail_offset = put(tail_offset_);
  r.attention.tail_len = put(tail_len_);
  r.attention.tail_slots = put(tail_slots_);
  r.attention.sequences = static_cast<int32_t>(sequences_.size());
  if (!first_row_.empty()) r.delta = stage_delta(plan, r.attention.seq);
  return r;
}

kernels::AttentionRows RowsBuilder::stage_causal(Plan& plan, const Rows& staged) const {
  std::vector<int32_t> seen(tail_len_.size());
  for (size_t i = 0; i < seen.size(); ++i) seen[i] = i > 0 && tail_offset_[i] == tail_offset_[i - 1] ? seen[i - 1] + 1 : 1;
  kernels::AttentionRows rows = staged.attention;
  rows.tail_len = plan.stage(std::span<const int32_t>(seen));
  return rows;
}

// A pass that ends in a tree leaves no state: which rows are kept is not known yet.
kernels::DeltaRows RowsBuilder::stage_delta(Plan& plan, const int32_t* seq) const {
  kernels::DeltaRows d;
  seqs_.clear();
  steps_.clear();
  for (size_t i = 0; i < sequences_.size(); ++i) {
    const StateSequence& state = sequences_[i]->state();
    const int32_t first = first_row_[i], end = i + 1 < sequences_.size() ? first_row_[i + 1] : size();
    kernels::DeltaSeq& s = seqs_.emplace_back();
    s.from = state.now();
    if (branches_[i] == 0) s.to = state.next(), s.last = last_plain_[i];
    s.first_step = static_cast<int32_t>(steps_.size());
    d.buffers = std::max(d.buffers, order_delta_steps(first, std::span(parent_).subspan(static_cast<size_t>(first), static_cast<size_t>(end - first)), &steps_));
    s.steps = static_cast<int32_t>(steps_.size()) - s.first_step;
  }
  d.seqs = plan.stage(std::span<const kernels::DeltaSeq>(seqs_));
  d.steps = plan.stage(std::span<const kernels::DeltaStep>(steps_));
  d.seq = seq;
  d.parent = plan.stage(std::span<const int32_t>(parent_));
  d.n_seqs = static_cast<int32_t>(seqs_.size());
  d.n_steps = static_cast<int32_t>(steps_.size());
  return d;
}

void RowsBuilder::keep_path(const KvSequence& kv, std::span<const int32_t> rows) {
  paths_.reserve(paths_.size() + 1);  // both or neither
  const auto first = static_cast<int32_t>(path_rows_.size()), n = static_cast<int32_t>(rows.size());
  path_rows_.insert(path_rows_.end(), rows.begin(), rows.end());
  paths_.push_back({kv.state().now(), kv.state().next(), first + n - 1, first, n});
}

KeptRows RowsBuilder::stage_states(Plan& plan) const {
  std::vector<int32_t> parent, seq;
  steps_.clear();
  for (size_t s = 0; s < paths_.size(); ++s)
    for (int32_t i = 0; i < paths_[s].steps; ++i) {
      const int32_t row = paths_[s].first_step + i;
      parent.push_back(i == 0 ? -1 : row - 1);
      seq.push_back(static_cast<int32_t>(s));
      steps_.push_back({row, i == 0 ? -1 : 0, 0});
    }
  KeptRows kept;
  kept.index = plan.stage(std::span<const int32_t>(path_rows_));
  kept.n = static_cast<int64_t>(path_rows_.size());
  kept.rows.seqs = plan.stage(std::span<const kernels::DeltaSeq>(paths_));
  kept.rows.steps = plan.stage(std::span<const kernels::DeltaStep>(steps_));
  kept.rows.seq = plan.stage(std::span<const int32_t>(seq));
  kept.rows.parent = plan.stage(std::span<const int32_t>(parent));
  kept.rows.n_seqs = static_cast<int32_t>(paths_.size());
  kept.rows.n_steps = static_cast<int32_t>(steps_.size());
  kept.rows.buffers = 1;
  return kept;
}

}  // namespace aerie

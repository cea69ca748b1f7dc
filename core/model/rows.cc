#include "core/model/rows.h"

#include <algorithm>

namespace aerie {

void RowsBuilder::clear() {
  kv_ = nullptr;
  for (auto* v : {&token_, &position_, &slot_, &seq_, &ctx_len_, &tail_offset_, &tail_len_, &tail_slots_}) v->clear();
  sequences_.clear();
}

void RowsBuilder::sequence(const KvSequence& kv) {
  kv_ = &kv;
  sequences_.push_back(&kv);
}

void RowsBuilder::plain(int32_t token, int64_t position) {
  token_.push_back(token);
  position_.push_back(static_cast<int32_t>(position));
  slot_.push_back(kv_->slot(position));
  seq_.push_back(static_cast<int32_t>(sequences_.size()) - 1);
  ctx_len_.push_back(static_cast<int32_t>(position) + 1);
  tail_offset_.push_back(static_cast<int32_t>(tail_slots_.size()));
  tail_len_.push_back(0);
}

void RowsBuilder::tree(int32_t token, int64_t ctx_len, std::span<const int32_t> tail) {
  token_.push_back(token);
  position_.push_back(static_cast<int32_t>(ctx_len + static_cast<int64_t>(tail.size()) - 1));
  slot_.push_back(tail.back());
  seq_.push_back(static_cast<int32_t>(sequences_.size()) - 1);
  ctx_len_.push_back(static_cast<int32_t>(ctx_len));
  tail_offset_.push_back(static_cast<int32_t>(tail_slots_.size()));
  tail_len_.push_back(static_cast<int32_t>(tail.size()));
  tail_slots_.insert(tail_slots_.end(), tail.begin(), tail.end());
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
  return r;
}

}  // namespace aerie

// The rows of a target pass, shared out among a batch's sessions when there are more than it may have.
//
// Everyone keeps the root, and what is not a matter of choice: rows beside the tree, trees of the sampled rule (whose
// law forbids dropping nodes by score). Prompts get half of what is left, more where trees want less, and at least a row each. The rest goes
// to the nodes of highest value, whosever they are: a session with confident drafts gets more.
#include <algorithm>

#include "core/session/session.h"
#include "core/session/stepper.h"

namespace aerie {

void Stepper::share_rows() {
  if (max_rows_ <= 0) return;
  int32_t wanted = 0, fixed = 0, reading = 0;
  ranked_.clear();
  for (Session* s : flight_) {
    wanted += s->pass_rows();
    if (s->phase_ == Session::Phase::prefill) ++reading;
    else fixed += s->fixed_rows();
  }
  if (wanted <= max_rows_) return;
  int32_t left = std::max(0, max_rows_ - fixed);
  for (Session* s : flight_) {
    if (s->phase_ != Session::Phase::prefill) s->offer_nodes(&ranked_);
  }
  const auto nodes = static_cast<int32_t>(ranked_.size());
  if (reading > 0) {
    const int32_t prompts = std::max(left / 2, left - nodes), each = std::max(1, prompts / reading);
    for (Session* s : flight_) {
      if (s->phase_ != Session::Phase::prefill) continue;
      s->read_at_most(each);
      left = std::max(0, left - s->pass_rows());
    }
  }
  // Parents rank before their children in this order, so what is kept is closed under ancestors.
  std::sort(ranked_.begin(), ranked_.end(), [](const RankedNode& a, const RankedNode& b) {
    if (a.value != b.value) return a.value > b.value;
    if (a.depth != b.depth) return a.depth < b.depth;
    return a.order < b.order;
  });
  if (nodes > left) ranked_.resize(static_cast<size_t>(left));
  for (Session* s : flight_)
    if (s->phase_ == Session::Phase::verify) s->keep_nodes(ranked_);
}

// Rows that cannot be taken away.
int32_t Session::fixed_rows() const {
  return (options_.sampled_rule ? rows_.size() : 1) + static_cast<int32_t>(extra_token_.size());
}

void Session::offer_nodes(std::vector<RankedNode>* nodes) const {
  if (options_.sampled_rule) return;
  for (int32_t i = 1; i < rows_.size(); ++i) {
    nodes->push_back({value_of(i), rows_.depth[static_cast<size_t>(i)], static_cast<int32_t>(nodes->size()), i, this});
  }
}

void Session::keep_nodes(std::span<const RankedNode> nodes) {
  if (options_.sampled_rule) return;
  kept_.assign(static_cast<size_t>(rows_.size()), 0);
  for (const RankedNode& n : nodes)
    if (n.session == this) kept_[static_cast<size_t>(n.row)] = 1;
  rows_.keep(kept_);
  selected_.assign(rows_.node.begin() + 1, rows_.node.end());
  std::erase(selected_, -1);
}

void Session::read_at_most(int32_t rows) { prefill_end_ = std::min(prefill_end_, kv_len_ + rows); }

}  // namespace aerie

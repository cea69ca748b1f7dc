#include "core/policy/tree_layout.h"

#include <algorithm>

namespace aerie {

namespace {
constexpr int32_t kMostPlaces = kMostDraftNodes - 1;  // the host's tree takes them all
static_assert(kernels::kMaxTreeRows == kMaxTreeNodes);
}  // namespace

bool TreeLayout::lay(const TreeShape& shape, bool one_pass) {
  if (shape.levels < 1 || shape.keep < 1 || shape.keep >= kMaxTreeNodes || shape.width < 1) return false;
  // What it says of a depth it says of every node there: none that may be chosen costs a pass.
  const int32_t beam = !one_pass || shape.beam == 0 ? std::max(shape.beam, 1) : shape.among > 0 ? shape.among : shape.keep;
  rows.assign(1, 1);
  first.assign(1, 0);
  if (expanded.size() < static_cast<size_t>(shape.levels)) expanded.resize(static_cast<size_t>(shape.levels));
  for (auto& below : expanded) below.clear();
  chosen.clear();
  row_.assign(shape.nodes.size(), 0);
  for (int32_t level = 0;; ++level) {
    const int32_t more = rows.back() * shape.width;
    places = first.back() + more;
    if (places > kMostPlaces) return false;
    const int32_t next = shape.nodes.empty() ? std::min(beam, more) : lay_nodes(shape, level);
    if (level + 1 == shape.levels) break;
    rows.push_back(next);
    first.push_back(places);
  }
  verified = 1 + std::min(shape.nodes.empty() ? shape.keep : static_cast<int32_t>(chosen.size()), places);
  stride = *std::max_element(rows.begin(), rows.end());
  return stride <= kMaxTreeNodes;
}

// The nodes a level below; how many of them have children.
int32_t TreeLayout::lay_nodes(const TreeShape& shape, int32_t level) {
  const auto row_of_parent = [&](int32_t n) { return row_[static_cast<size_t>(shape.nodes[static_cast<size_t>(n)].parent)]; };
  const auto rank = [&](int32_t n) { return shape.nodes[static_cast<size_t>(n)].rank; };
  order_.clear();
  for (size_t n = 1; n < shape.nodes.size(); ++n)
    if (shape.nodes[n].depth == level + 1) order_.push_back(static_cast<int32_t>(n));
  std::sort(order_.begin(), order_.end(), [&](int32_t a, int32_t b) {
    return row_of_parent(a) != row_of_parent(b) ? row_of_parent(a) < row_of_parent(b) : rank(a) < rank(b);
  });
  std::vector<kernels::TreeSlot>& below = expanded[static_cast<size_t>(level)];
  for (const int32_t n : order_) {
    chosen.push_back({first.back() + row_of_parent(n) * shape.width, rank(n)});
    if (std::none_of(shape.nodes.begin() + 1, shape.nodes.end(), [&](const ShapeNode& child) { return child.parent == n; })) continue;
    row_[static_cast<size_t>(n)] = static_cast<int32_t>(below.size());
    below.push_back(chosen.back());
  }
  return static_cast<int32_t>(below.size());
}

}  // namespace aerie

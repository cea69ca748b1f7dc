#include "core/tree/level_product.h"

#include <algorithm>

namespace aerie {

void LevelProduct::grow(DraftTree* tree, std::span<const LevelList> levels, int32_t n) {
  const auto behind = [&](int32_t a, int32_t b) { return ranks_before(*tree, b, a); };
  heap_.clear();
  // The next child that `parent` lacks. Later siblings rank behind it, and so do its own descendants: one
  // candidate a parent is enough.
  const auto offer = [&](int32_t parent) {
    const auto depth = static_cast<size_t>((*tree)[parent].depth);
    if (depth >= levels.size()) return;
    const LevelList& list = levels[depth];
    const auto rank = static_cast<size_t>(tree->child_count(parent));
    if (rank >= list.token.size() || list.token[rank] < 0) return;
    if (tree->add_children(parent, list.token.subspan(rank, 1), list.confidence.subspan(rank, 1)) != 1) return;
    heap_.push_back(tree->size() - 1);
    std::push_heap(heap_.begin(), heap_.end(), behind);
  };
  offer(0);
  for (; n > 0 && !heap_.empty(); --n) {
    std::pop_heap(heap_.begin(), heap_.end(), behind);
    const int32_t best = heap_.back();
    heap_.pop_back();
    offer((*tree)[best].parent);
    offer(best);
  }
}

}  // namespace aerie

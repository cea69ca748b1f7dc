// A drafter that answers all levels at once says the same about every node of a depth. Its tree is the product of
// its lists, and the best nodes of that product are found without asking it again.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/tree/draft_tree.h"

namespace aerie {

// Children of every node at one depth, best first; a negative token ends the list.
struct LevelList {
  std::span<const int32_t> token;
  std::span<const float> confidence;
};

// Adds to a tree that holds only its root at least the n best nodes of the product of `levels` (fewer if the
// product has fewer), in the order of ranks_before. Allocates in its first calls only.
class LevelProduct {
 public:
  void grow(DraftTree* tree, std::span<const LevelList> levels, int32_t n);

 private:
  std::vector<int32_t> heap_;
};

}  // namespace aerie

// TreeLayout: where the nodes of a tree that a device draws have their places (kernels/tree_ops.h).
#pragma once

#include <vector>

#include "core/policy/tree_policy.h"
#include "kernels/tree_ops.h"

namespace aerie {

class TreeLayout {
 public:
  // one_pass: the drafter answers all levels at once. False: it is no tree for the device.
  bool lay(const TreeShape& shape, bool one_pass);

  int32_t places = 0;
  int32_t verified = 0;  // rows of the target's pass, the root included
  int32_t stride = 0;    // rows kept for each depth of those that are drafted from
  std::vector<int32_t> rows, first;  // of each level: nodes expanded, first place of their children
  // Of a shape that names its nodes, in the order of places: those expanded below each level, and those verified.
  std::vector<std::vector<kernels::TreeSlot>> expanded;
  std::vector<kernels::TreeSlot> chosen;

 private:
  int32_t lay_nodes(const TreeShape& shape, int32_t level);
  std::vector<int32_t> order_, row_;  // row_: of a shape's nodes, among those expanded at their depth
};

}  // namespace aerie

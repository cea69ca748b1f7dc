// DraftTree: the candidates of one cycle. Node 0 is the root (the newest committed token);
// every other node has a parent with a smaller index.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace aerie {

struct DraftNode {
  int32_t parent;  // index in the tree; -1 for the root
  int32_t token;
  int32_t depth;     // root 0
  int32_t rank;      // 0 = the parent's best child
  float confidence;  // in [0, 1], of this token given its path
  float value;       // product of confidences on the path, fp32; root 1
};

constexpr int32_t kMostDraftNodes = 4096;  // of a tree, the root among them

class DraftTree {
 public:
  explicit DraftTree(int32_t capacity = kMostDraftNodes);  // all memory is taken here
  void reset(int32_t root_token);
  // Children of `parent` in rank order. A token that `parent` already has as a child is skipped
  // (a walk could not tell the two apart), and so is a negative one. A confidence outside [0, 1] is
  // clamped, NaN to 0: no child ever ranks before its parent. Returns how many were added; stops at
  // capacity.
  int32_t add_children(int32_t parent, std::span<const int32_t> tokens, std::span<const float> confidences);
  int32_t size() const { return static_cast<int32_t>(nodes_.size()); }
  int32_t capacity() const { return capacity_; }
  const DraftNode& operator[](int32_t i) const { return nodes_[static_cast<size_t>(i)]; }

  // Children in rank order; -1 ends the list.
  int32_t first_child(int32_t i) const { return links_[static_cast<size_t>(i)].first; }
  int32_t next_sibling(int32_t i) const { return links_[static_cast<size_t>(i)].next; }
  int32_t child_count(int32_t i) const { return links_[static_cast<size_t>(i)].count; }

 private:
  struct Links {
    int32_t first, last, next, count;
  };
  std::vector<DraftNode> nodes_;
  std::vector<Links> links_;
  int32_t capacity_;
};

// The order every policy ranks nodes by: value down, depth up, index up. A strict total order in
// which every node comes after its parent, so that its first n nodes are closed under ancestors
// whatever the confidences (EAGLE-2, section 4.2, with the ties settled).
bool ranks_before(const DraftTree& tree, int32_t a, int32_t b);

// A verified tree as the walk and the attention mask need it. Row 0 is the root; row i > 0 is
// selected[i - 1]. Rows are in an order with parents before children.
struct TreeRows {
  std::vector<int32_t> node;  // index in the DraftTree; -1: of none, see add()
  // parent, first_child and next_sibling are rows, -1 for none. Siblings are linked in row order.
  std::vector<int32_t> token, parent, depth, first_child, next_sibling;
  // Reuses its memory: allocates in the first call with a tree of this capacity only. A node whose
  // parent has no row yet gets no row: it is never hung elsewhere.
  void build(const DraftTree& tree, std::span<const int32_t> selected);
  // A child of a row that is no node of the tree. The new row.
  int32_t add(int32_t parent_row, int32_t child);
  // The root and those rows that are kept, whose parents are.
  void keep(std::span<const char> kept);
  int32_t find_child(int32_t row, int32_t child) const;  // by its token; -1: there is none
  int32_t size() const { return static_cast<int32_t>(token.size()); }

 private:
  int32_t push(int32_t tree_node, int32_t parent_row, int32_t its_token);
  void clear();
  std::vector<int32_t> row_of_, last_child_, new_row_;  // scratch: row of a tree node, last child of a row, where a row went
  struct {
    std::vector<int32_t> node, token, parent;
  } before_;
};

}  // namespace aerie

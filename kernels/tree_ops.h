// Ops of a drafted tree that lives on the device: it grows level by level between the drafter's passes, its best nodes
// become rows of the target's pass, and the keys and values of those walked through are kept, all without the host. How
// many rows each pass has, and their positions and slots, the host says beforehand; these ops write which nodes they are.
#pragma once

#include <cstdint>

#include "kernels/beliefs.h"

namespace aerie::kernels {

// A node. Each has a fixed place: the children of the r-th node expanded at a level are the `width` places from
// first + r * width on, and levels follow each other. So a lower place is no deeper, places of one depth are in the order
// in which a host adds nodes, and nodes rank by worth, ties to the lower place. No child's value or worth is above its parent's.
struct TreePlace {
  int32_t token;   // -1: there is no node
  int32_t parent;  // place; -1: the root
  int32_t row;     // of those of the draft passes, see TreeDraftRows; 0: it was not drafted from; -1: nor was it, but kept
  int32_t depth;
  float confidence, value;  // value: the product of confidences along its path
  float product, worth;     // by Beliefs; without them the value
};

// The `rank`-th node, from 0, at places first, first + 1, ... first + width - 1: siblings that no list has twice.
struct TreeSlot {
  int32_t first, rank;
};

// What the host is told, and TreeNode[rows] behind it.
struct TreeOut {
  int32_t rows;      // of the nodes chosen and the root
  int32_t status;    // 0 good, 1 the candidates were nonsense: no node is chosen
  int32_t proposed;  // nodes there were to choose from
  int32_t levels;    // whose nodes were expanded
  int32_t declined;  // levels that did not pay
};
struct TreeNode {
  int32_t token;  // the root, row 0: -1
  int32_t parent;  // row
  float confidence;
  int32_t place;
};
constexpr int64_t tree_out_bytes(int64_t rows) {
  return static_cast<int64_t>(sizeof(TreeOut)) + rows * static_cast<int64_t>(sizeof(TreeNode));
}

// Rows of the draft pass over the nodes of one depth. Over all passes the root is row 0, and the r-th node of depth d is
// row 1 + (d - 1) * stride + r. Rows that no node is left for are fed something harmless, which nobody reads.
struct TreeDraftRows {
  int32_t* token = nullptr;          // i32[next_rows]
  int32_t* parent = nullptr;         // i32[next_rows]: node_base + row of the parent
  int32_t* tail_slots = nullptr;     // (next_rows, depth), null: the drafter has no cache
  const int32_t* slots = nullptr;    // i32: of all rows of the draft passes
  int32_t node_base = 0, stride = 0;
};

// A policy that weighs what a draft pass costs. The best next_rows new nodes are kept, and expanded next unless what they are worth
// in all, times both factors, is below threshold * cost (worth.h). The pass takes as long whatever of its rows is blank.
struct TreeWeigh {
  bool on = false;
  double cost = 0, threshold = 0;
  double gain = 1;
  const GainByBest* gain_by_best = nullptr;  // the other factor; null: 1
  bool explore = false;  // the first level that does not pay is gone on with all the same, from its best node
};

// Candidates become nodes of depth level + 1, and the nodes to expand next are chosen.
struct ExpandTree {
  TreePlace* places;
  TreeOut* out;             // status; level 0 begins it
  int32_t first;            // this level's first place
  int32_t rows, width, level;
  const int32_t* from;      // i32[rows]: places of the nodes expanded, ascending, -1 where there is none; null: the root
  const int32_t* token;     // (rows, width) as TopK gives them
  const float* logp;
  bool one_list;            // (1, width): all nodes of a depth have the same candidates
  int32_t vocab_used;
  const Beliefs* beliefs;   // null: a node is worth its value
  int32_t keep;             // expanded next: the best next_rows new nodes, such as are among the best `keep` of all
                            // nodes so far, by value; 0: the first new node alone
  const TreeSlot* slots;    // TreeSlot[next_rows]: these are expanded next, whatever their values; null: see keep
  TreeWeigh weigh;          // on: keep is not asked
  int32_t* next;            // as `from` of the level below; null: this was the last level, whose nodes are but kept
  int32_t next_rows;        // <= kMaxTreeRows; 0: this was the last level
  int32_t* wanted;          // set to 1 where there is a node to expand next, else left alone; or null
  TreeDraftRows draft;      // without token: no draft pass follows
};

// The best `keep` nodes, or those of `slots` that there are, become the rows behind the root, by place. Arrays are those of the target's pass, from the root's
// row on; the rows are chained as Walk wants them. Rows without a node see themselves and are never walked to.
struct SelectTree {
  const TreePlace* places;
  int32_t n_places, keep;    // keep < rows
  const TreeSlot* slots;     // TreeSlot[keep], in the order of places; null: the best
  bool kept_only;            // of what ExpandTree kept, weighing
  int32_t among;             // of these best by value, and each one's next sibling and first child (LevelProduct); 0: of all
  int32_t width;             // of the slots
  int32_t rows;              // <= kMaxTreeRows
  int32_t first_row;         // number of the root's row in the pass
  int32_t tail_room;         // tail slots a row
  const int32_t* slot;       // i32[rows]: where each row's keys and values go
  int32_t *token, *position, *tail_len;            // i32[rows]; the root's are given
  int32_t* tail_slots;                             // (rows - 1, tail_room), from row 1 on
  int32_t *walk_token, *first_child, *next_sibling;  // i32[rows]
  TreeOut* out;              // tree_out_bytes(rows)
};
constexpr int32_t kMaxTreeRows = 128;

// src[i] = slot of the row that step step[i] of walk walk[i] drew from, -1 where that walk has no such step; i < n.
struct PathSlots {
  const void* walks;  // Walk::out
  int32_t max_steps;  // Walk's
  const int32_t *walk, *step;
  const int32_t* slot;  // i32[R] of the pass's rows
  int32_t n;
  int32_t* src;
};

}  // namespace aerie::kernels

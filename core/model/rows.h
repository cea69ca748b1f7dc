// Rows: one pass's worth of tokens, and what each may look at. Built on the host, staged into a plan.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/kv/kv_pool.h"
#include "core/model/delta.h"
#include "core/model/plan.h"

namespace aerie {

// Device view, as the ops want it.
struct Rows {
  int32_t n = 0;
  const int32_t* token = nullptr;     // i32[n]
  const int32_t* position = nullptr;  // i32[n] absolute
  const int32_t* slot = nullptr;      // i32[n] where the row's key and value go
  kernels::AttentionRows attention;
  int64_t longest = 0;                // positions that the row with the most looks at
  bool fast = false;                  // rows of prompts alone, and many: kernels::Linear may be fast
  kernels::DeltaRows delta;           // where layers are recurrent
};

class RowsBuilder {
 public:
  void clear();
  // Later rows belong to this sequence (sequences of one pool may share a pass).
  void sequence(const KvSequence& kv);
  // A committed row: sees positions [0, position].
  void plain(int32_t token, int64_t position);
  // A row that leaves no key or value: sees the positions before `position`.
  void beside(int32_t token, int64_t position);
  // A tree row in `slot`: sees [0, ctx_len), then `tail` (its ancestors' slots by depth, itself last).
  void tree(int32_t token, int64_t ctx_len, std::span<const int32_t> tail);
  // Rows in `slots`, behind [0, ctx_len), which they see, and all of each other: `token`, then fillers. stage_causal(): for layers where
  // a block's rows look back alone, once it is staged.
  void block(int32_t token, int32_t filler, int64_t ctx_len, std::span<const int32_t> slots);
  // Of the sequence whose rows are added now, rows of a tree: its next state is not made in the pass, but by stage_states().
  bool branches() const { return !branches_.empty() && branches_.back() != 0; }
  bool any_branches() const;
  // Once the pass has run, in the order of paths: `kv`s next state is that behind the last of these rows, each the next one's parent.
  void keep_path(const KvSequence& kv, std::span<const int32_t> rows);
  bool keeps_paths() const { return !paths_.empty(); }
  KeptRows stage_states(Plan& plan) const;
  int32_t size() const { return static_cast<int32_t>(token_.size()); }
  int32_t tail_of(int32_t row) const { return tail_offset_[static_cast<size_t>(row)]; }  // in tail_slots
  Rows stage(Plan& plan) const;
  kernels::AttentionRows stage_causal(Plan& plan, const Rows& staged) const;

 private:
  int32_t parent_of(std::span<const int32_t> tail) const;
  kernels::DeltaRows stage_delta(Plan& plan, const int32_t* seq) const;

  const KvSequence* kv_ = nullptr;
  std::vector<const KvSequence*> sequences_;
  std::vector<int32_t> first_row_, last_plain_, parent_;  // where layers are recurrent: of sequences, of sequences, of rows
  std::vector<char> branches_;                            // of sequences
  std::vector<kernels::DeltaSeq> paths_;
  std::vector<int32_t> path_rows_;
  mutable std::vector<kernels::DeltaSeq> seqs_;
  mutable std::vector<kernels::DeltaStep> steps_;
  std::vector<int32_t> token_, position_, slot_, seq_, ctx_len_, tail_offset_, tail_len_, tail_slots_;
  mutable std::vector<int32_t> pages_;
};

}  // namespace aerie

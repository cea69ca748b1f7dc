// The ranked merges of BPE: which pairs of tokens join, into what, and which goes first.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/text/blob.h"
#include "core/text/merge.h"
#include "kernels/status.h"

namespace aerie::text {

using MergeList = std::vector<std::pair<int32_t, int32_t>>;  // left and right, by rank

class PairTable {
 public:
  // `spelling` gives what a token of the vocabulary spells (null: it is none), `find` the token that spells a text (-1: none).
  Status build(const MergeList& merges, int32_t vocab_size, const std::function<const std::string*(int32_t)>& spelling,
               const std::function<int32_t(const std::string&)>& find);
  bool empty() const { return pairs_.empty(); }
  Merge find(int32_t left, int32_t right) const;

 private:
  struct Pair {
    int32_t right, merged;
    uint32_t rank;
  };
  std::vector<Pair> pairs_;         // sorted by (left, right)
  std::vector<uint32_t> pairs_of_;  // [vocab + 1] where each left token's pairs begin
};

// In a blob: u32 their number, each i32 + i32.
void write_merges(const MergeList& merges, BlobWriter* out);
bool read_merges(BlobReader* blob, MergeList* merges);

}  // namespace aerie::text

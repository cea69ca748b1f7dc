#include "core/text/pair_table.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace aerie::text {

Status PairTable::build(const MergeList& merges, int32_t vocab_size, const std::function<const std::string*(int32_t)>& spelling,
                        const std::function<int32_t(const std::string&)>& find) {
  const auto wrong = [](size_t rank, const char* what) {
    return error(Code::bad_format, "tokenizer: merge " + std::to_string(rank) + what);
  };
  if (merges.size() > kMaxMerges) return error(Code::bad_format, "tokenizer: too many merges");
  struct Ranked {
    int32_t left;
    Pair pair;
  };
  std::vector<Ranked> ranked;
  ranked.reserve(merges.size());
  std::string joined, before;
  int32_t merged = -1;
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    joined.clear();
    for (const int32_t id : {merges[rank].first, merges[rank].second}) {
      const std::string* half = id >= 0 && id < vocab_size ? spelling(id) : nullptr;
      if (half == nullptr) return wrong(rank, " joins what is not a token");
      joined += *half;
    }
    if (joined != before) merged = find(joined);  // all that give one token often stand together
    before = joined;
    if (merged < 0) return wrong(rank, " gives what is not a token");
    ranked.push_back({merges[rank].first, {merges[rank].second, merged, static_cast<uint32_t>(rank)}});
  }
  // Of a pair listed twice Hugging Face keeps the last rank.
  std::sort(ranked.begin(), ranked.end(), [](const Ranked& a, const Ranked& b) {
    return std::tie(a.left, a.pair.right, b.pair.rank) < std::tie(b.left, b.pair.right, a.pair.rank);
  });
  ranked.erase(
      std::unique(ranked.begin(), ranked.end(),
                  [](const Ranked& a, const Ranked& b) { return a.left == b.left && a.pair.right == b.pair.right; }),
      ranked.end());
  pairs_of_.assign(static_cast<size_t>(vocab_size) + 1, 0);
  pairs_.reserve(ranked.size());
  for (const Ranked& r : ranked) {
    ++pairs_of_[static_cast<size_t>(r.left) + 1];
    pairs_.push_back(r.pair);
  }
  std::partial_sum(pairs_of_.begin(), pairs_of_.end(), pairs_of_.begin());
  return {};
}

Merge PairTable::find(int32_t left, int32_t right) const {
  const auto begin = pairs_.begin() + pairs_of_[static_cast<size_t>(left)], end = pairs_.begin() + pairs_of_[static_cast<size_t>(left) + 1];
  const auto at = std::lower_bound(begin, end, right, [](const Pair& p, int32_t value) { return p.right < value; });
  if (at == end || at->right != right) return {};
  return {at->merged, static_cast<double>(at->rank)};
}

void write_merges(const MergeList& merges, BlobWriter* out) {
  out->u32(static_cast<uint32_t>(merges.size()));
  for (const auto& [left, right] : merges) {
    out->i32(left);
    out->i32(right);
  }
}

bool read_merges(BlobReader* blob, MergeList* merges) {
  const uint32_t count = blob->u32();
  if (!blob->ok() || count > kMaxMerges || count > blob->left() / 8) return false;
  merges->resize(count);
  for (auto& [left, right] : *merges) {
    left = blob->i32();
    right = blob->i32();
  }
  return blob->ok();
}

}  // namespace aerie::text

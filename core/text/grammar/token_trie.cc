#include "core/text/grammar/token_trie.h"

#include <algorithm>
#include <utility>

namespace aerie::text::grammar {

std::string_view TokenTrie::bytes(int32_t token) const {
  if (token < 0 || token >= vocab_size() || tokenizer_->is_special(token)) return {};
  return tokenizer_->token_bytes(token, previous_);
}

TokenTrie::TokenTrie(std::shared_ptr<const Tokenizer> tokenizer) : tokenizer_(std::move(tokenizer)) {
  for (int32_t t = vocab_size(); t-- > 0 && previous_ < 0;)
    if (!tokenizer_->is_special(t)) previous_ = t;
  std::vector<std::pair<std::string_view, int32_t>> sorted;
  for (int32_t t = 0; t < vocab_size(); ++t)
    if (const std::string_view b = bytes(t); !b.empty()) sorted.emplace_back(b, t);
  std::sort(sorted.begin(), sorted.end());
  plain_.resize((static_cast<size_t>(vocab_size()) + 31) / 32);
  std::vector<int32_t> all, others;
  for (const auto& [b, t] : sorted) {
    all.push_back(t);
    max_depth_ = std::max(max_depth_, b.size());
    if (b.size() <= kMaxPlainToken && std::all_of(b.begin(), b.end(), [](char c) { return is_plain(static_cast<uint8_t>(c)); })) {
      plain_[static_cast<uint32_t>(t) / 32] |= uint32_t{1} << (t % 32);
    } else {
      others.push_back(t);
    }
  }
  all_ = tree_of(std::move(all));
  others_ = tree_of(std::move(others));
}

TokenTrie::Tree TokenTrie::tree_of(std::vector<int32_t> sorted) const {
  Tree tree;
  std::vector<uint32_t> path;  // the nodes of the token before
  std::string_view before;
  const auto close = [&](size_t depth) {
    for (; path.size() > depth; path.pop_back()) tree.nodes[path.back()].end = static_cast<uint32_t>(tree.nodes.size());
  };
  for (size_t i = 0; i < sorted.size(); ++i) {
    const std::string_view now = bytes(sorted[i]);
    size_t common = 0;
    while (common < std::min(now.size(), before.size()) && now[common] == before[common]) ++common;
    close(common);
    for (size_t d = common; d < now.size(); ++d) {
      path.push_back(static_cast<uint32_t>(tree.nodes.size()));
      tree.nodes.push_back({0, static_cast<uint32_t>(i), static_cast<uint16_t>(d + 1), static_cast<uint8_t>(now[d])});
    }
    before = now;
  }
  close(0);
  tree.nodes.push_back({static_cast<uint32_t>(tree.nodes.size()), static_cast<uint32_t>(sorted.size()), 0, 0});
  tree.tokens = std::move(sorted);
  return tree;
}

}  // namespace aerie::text::grammar

#include "core/text/grammar/token_trie.h"

#include <algorithm>

namespace aerie::text::grammar {

std::string_view TokenTrie::bytes(int32_t token) const {
  if (token < 0 || token >= vocab_size() || tokenizer_->is_special(token)) return {};
  return tokenizer_->token_bytes(token, previous_);
}

TokenTrie::TokenTrie(std::shared_ptr<const Tokenizer> tokenizer) : tokenizer_(std::move(tokenizer)) {
  for (int32_t t = vocab_size(); t-- > 0 && previous_ < 0;)
    if (!tokenizer_->is_special(t)) previous_ = t;
  for (int32_t t = 0; t < vocab_size(); ++t)
    if (!bytes(t).empty()) tokens_.push_back(t);
  std::stable_sort(tokens_.begin(), tokens_.end(), [&](int32_t a, int32_t b) { return bytes(a) < bytes(b); });

  std::vector<uint32_t> path;  // the nodes of the token before
  std::string_view before;
  const auto close = [&](size_t depth) {
    for (; path.size() > depth; path.pop_back()) nodes_[path.back()].end = static_cast<uint32_t>(nodes_.size());
  };
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const std::string_view now = bytes(tokens_[i]);
    size_t common = 0;
    while (common < std::min(now.size(), before.size()) && now[common] == before[common]) ++common;
    close(common);
    for (size_t d = common; d < now.size(); ++d) {
      path.push_back(static_cast<uint32_t>(nodes_.size()));
      nodes_.push_back({0, static_cast<uint32_t>(i), static_cast<uint16_t>(d + 1), static_cast<uint8_t>(now[d])});
    }
    // The nodes above a new token have none of their own from here on.
    max_depth_ = std::max(max_depth_, now.size());
    before = now;
  }
  close(0);
  nodes_.push_back({static_cast<uint32_t>(nodes_.size()), static_cast<uint32_t>(tokens_.size()), 0, 0});
}

}  // namespace aerie::text::grammar

// The tokens of a vocabulary by their bytes, so that tokens with a common beginning are looked at together.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "core/text/tokenizer.h"

namespace aerie::text::grammar {

class TokenTrie {
 public:
  // A byte after those of its parent. Nodes lie in the order of a walk: children follow their parent.
  struct Node {
    uint32_t end;     // the first node that is not below it
    uint32_t tokens;  // its tokens are tokens()[tokens] up to where the next node's begin
    uint16_t depth;   // bytes up to this one
    uint8_t byte;
  };

  explicit TokenTrie(std::shared_ptr<const Tokenizer> tokenizer);

  size_t size() const { return nodes_.size() - 1; }
  const Node& node(size_t i) const { return nodes_[i]; }  // i <= size(): the last is only an end
  const std::vector<int32_t>& tokens() const { return tokens_; }
  size_t max_depth() const { return max_depth_; }
  int32_t vocab_size() const { return tokenizer_->vocab_size(); }
  // In running text. Empty: it gives none, as special tokens do, or there is no such token.
  std::string_view bytes(int32_t token) const;

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  int32_t previous_ = -1;  // a token of text, for a tokenizer that asks what came before
  std::vector<Node> nodes_;
  std::vector<int32_t> tokens_;
  size_t max_depth_ = 0;
};

}  // namespace aerie::text::grammar

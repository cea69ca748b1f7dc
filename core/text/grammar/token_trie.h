// The tokens of a vocabulary by their bytes, so that tokens with a common beginning are looked at together.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "core/text/tokenizer.h"

namespace aerie::text::grammar {

// A byte of plain text: most of a vocabulary is made of these alone. Inside of strings of JSON, and wherever else any text may
// stand, one leads where the other does, so that all tokens of them are allowed, or none.
inline bool is_plain(uint8_t byte) { return byte >= 0x20 && byte < 0x7F && byte != '"' && byte != '\\'; }
inline constexpr size_t kMaxPlainToken = 16;  // bytes

class TokenTrie {
 public:
  // A byte after those of its parent. Nodes lie in the order of a walk: children follow their parent.
  struct Node {
    uint32_t end;     // the first node that is not below it
    uint32_t tokens;  // its tokens are Tree::tokens[tokens] up to where the next node's begin
    uint16_t depth;   // bytes up to this one
    uint8_t byte;
  };
  struct Tree {
    std::vector<Node> nodes;  // and one more, which is only an end
    std::vector<int32_t> tokens;
    size_t size() const { return nodes.size() - 1; }
  };

  explicit TokenTrie(std::shared_ptr<const Tokenizer> tokenizer);

  const Tree& all() const { return all_; }
  // Tokens of plain bytes alone, up to kMaxPlainToken of them, as a mask; and all others.
  const std::vector<uint32_t>& plain() const { return plain_; }
  const Tree& others() const { return others_; }
  size_t max_depth() const { return max_depth_; }
  int32_t vocab_size() const { return tokenizer_->vocab_size(); }
  // In running text. Empty: it gives none, as special tokens do, or there is no such token.
  std::string_view bytes(int32_t token) const;
  const Tokenizer& tokenizer() const { return *tokenizer_; }

 private:
  Tree tree_of(std::vector<int32_t> sorted) const;

  std::shared_ptr<const Tokenizer> tokenizer_;
  int32_t previous_ = -1;  // a token of text, for a tokenizer that asks what came before
  Tree all_, others_;
  std::vector<uint32_t> plain_;
  size_t max_depth_ = 0;
};

}  // namespace aerie::text::grammar

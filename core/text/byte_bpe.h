// Byte-level BPE, as GPT-2, Llama 3 and Qwen use it.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/text/added_tokens.h"
#include "core/text/blob.h"
#include "core/text/merge.h"
#include "core/text/pair_table.h"
#include "core/text/splitter.h"
#include "core/text/token_index.h"
#include "core/text/tokenizer.h"

namespace aerie::text {

// What a tokenizer.json or a blob says. Both are untrusted: ByteBpe::make checks all of it.
struct ByteBpeSpec {
  enum TokenFlag : uint8_t {
    kSpelled = 1,  // part of the BPE vocabulary: `bytes` is what it spells
    kAdded = 2,    // looked for in the text before BPE: `bytes` is its text
    kSpecial = 4,  // gives no text
    kLstrip = 8,
    kRstrip = 16,
    kNormalized = 32,  // looked for after normalization
  };
  struct Token {
    std::string bytes;
    uint8_t flags = 0;  // 0: a hole in the ids
  };
  std::vector<std::string> patterns;  // applied one after the other, each to the pieces of the one before
  bool nfc = false;
  bool prefix_space = false;
  bool ignore_merges = false;  // a piece that is a token is that token, whatever the merges give
  int32_t bos = -1;
  std::vector<Token> tokens;
  MergeList merges;
};

class ByteBpe final : public Tokenizer {
 public:
  static Result<std::shared_ptr<const Tokenizer>> make(ByteBpeSpec spec);
  static Result<std::shared_ptr<const Tokenizer>> read(BlobReader* blob);

  std::vector<uint8_t> serialize() const override;
  int32_t vocab_size() const override { return static_cast<int32_t>(spec_.tokens.size()); }
  int32_t bos_id() const override { return spec_.bos; }
  Result<std::vector<int32_t>> encode(std::string_view utf8, const EncodeOptions& options) const override;
  std::string_view token_bytes(int32_t id, int32_t previous) const override;
  bool is_special(int32_t id) const override;
  std::string_view token_text(int32_t id) const override;

 private:
  struct Scratch {
    MergeScratch merge;
    std::vector<std::string_view> pieces, next_pieces;
    bool prefix_space = false;  // before the next stretch of text
  };
  Status index_tokens();  // by spelling, and added ones by text
  Status encode_raw(std::string_view text, bool parse_special, Scratch* scratch, std::vector<int32_t>* ids) const;
  Status encode_normalized(std::string_view text, bool parse_special, Scratch* scratch,
                           std::vector<int32_t>* ids) const;
  Status encode_text(std::string_view text, Scratch* scratch, std::vector<int32_t>* ids) const;
  void encode_piece(std::string_view piece, Scratch* scratch, std::vector<int32_t>* ids) const;

  ByteBpeSpec spec_;
  std::vector<RegexSplitter> splitters_;
  AddedTokenMatcher raw_added_, normalized_added_;
  TokenIndex spelled_;
  std::array<int32_t, 256> byte_ids_;  // the token of each single byte
  bool lacks_bytes_ = false;           // some have none, -1
  PairTable pairs_;
};

}  // namespace aerie::text

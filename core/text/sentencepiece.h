// SentencePiece BPE with byte fallback, as Llama 2 and Gemma have it, llama2.c's run.c runs it and Hugging Face writes it down.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/text/added_tokens.h"
#include "core/text/blob.h"
#include "core/text/pair_table.h"
#include "core/text/token_index.h"
#include "core/text/tokenizer.h"

namespace aerie::text {

class SentencePiece final : public Tokenizer {
 public:
  enum class Type : uint8_t {
    normal,
    byte,     // "<0x00>".."<0xFF>", for what no piece spells
    control,  // gives no text; found in a text only when the caller asks for it
    user,     // looked for in the text before anything else
  };
  struct Piece {
    std::string bytes;  // spaces are spaces
    float score = 0;    // of two joins the one to the higher goes first
    Type type = Type::normal;
    // Of control and user tokens:
    bool lstrip = false, rstrip = false;  // swallow white space beside them
    bool normalized = false;              // looked for between those that are not
    bool merged = false;                  // of a user token: merges spell it, too; in a text it is found with U+2581 for each space
  };
  // What is done to a text before it is cut into pieces, and to the pieces of one that is read.
  struct Rules {
    enum class Prefix : uint8_t { none, first, every };
    Prefix prefix = Prefix::first;  // which stretches between added tokens get a space in front: the one that opens the text, or all
    bool before = true;             // added tokens are looked for; else after it, and not where there is a space already
    bool strips = true;             // the first piece after BOS is read without its space
    bool meta = false;              // U+2581, SentencePiece's own sign for a space, is one in a text, too
    bool bos = true;                // put in front of a text
    int32_t bos_id = 1;             // which it is
    bool operator==(const Rules&) const = default;
  };
  // A BOS must be a control token. All 256 bytes must be there. Where there are ranked merges, as Hugging Face has them, only these
  // pairs join, and the scores say nothing (pieces of equal score make the two differ).
  static Result<std::shared_ptr<const Tokenizer>> make(std::vector<Piece> pieces, const Rules& rules, MergeList merges = {});
  static Result<std::shared_ptr<const Tokenizer>> make(std::vector<Piece> pieces) { return make(std::move(pieces), Rules()); }
  // The types that run.c takes for granted: 3..258 are the bytes, the rest is normal.
  static Status assume_types(std::vector<Piece>* pieces);
  static Result<std::shared_ptr<const Tokenizer>> read(BlobReader* blob, BlobKind kind);

  std::vector<uint8_t> serialize() const override;
  int32_t vocab_size() const override { return static_cast<int32_t>(pieces_.size()); }
  int32_t bos_id() const override { return rules_.bos ? rules_.bos_id : -1; }
  Result<std::vector<int32_t>> encode(std::string_view utf8, const EncodeOptions& options) const override;
  std::string_view token_bytes(int32_t id, int32_t previous) const override;
  bool is_special(int32_t id) const override { return id >= 0 && id < vocab_size() && of(id).type == Type::control; }
  std::string_view token_text(int32_t id) const override {
    return id >= 0 && id < vocab_size() ? std::string_view(of(id).bytes) : std::string_view();
  }

 private:
  const Piece& of(int32_t id) const { return pieces_[static_cast<size_t>(id)]; }
  void encode_stretch(std::string_view text, bool opens, bool goes_on, bool parse_special, std::vector<int32_t>* ids) const;
  void encode_text(std::string_view text, std::vector<int32_t>* ids) const;

  Rules rules_;
  std::vector<Piece> pieces_;
  MergeList merges_;
  PairTable pairs_;
  TokenIndex spelled_;  // what merges spell
  std::array<int32_t, 256> byte_ids_;
  std::array<char, 256> bytes_;  // what the byte tokens stand for
  AddedTokenMatcher raw_added_, normalized_added_;
};

inline constexpr const char* kMeta = "\xe2\x96\x81";  // U+2581
// A piece as files spell it: U+2581 is a space.
std::string with_spaces(std::string_view piece);

}  // namespace aerie::text

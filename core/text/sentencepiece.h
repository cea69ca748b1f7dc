// SentencePiece BPE with byte fallback, as Llama 2 has it and llama2.c's run.c runs it.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "core/text/added_tokens.h"
#include "core/text/blob.h"
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
    float score = 0;
    Type type = Type::normal;
  };
  // Ids 0, 1, 2 must be control tokens: <unk>, BOS and EOS. All 256 bytes must be there.
  static Result<std::shared_ptr<const Tokenizer>> make(std::vector<Piece> pieces);
  // The types that run.c takes for granted: 3..258 are the bytes, the rest is normal.
  static Status assume_types(std::vector<Piece>* pieces);
  static Result<std::shared_ptr<const Tokenizer>> read(BlobReader* blob, bool typed);

  std::vector<uint8_t> serialize() const override;
  int32_t vocab_size() const override { return static_cast<int32_t>(pieces_.size()); }
  int32_t bos_id() const override { return 1; }
  Result<std::vector<int32_t>> encode(std::string_view utf8, const EncodeOptions& options) const override;
  std::string_view token_bytes(int32_t id, int32_t previous) const override;
  bool is_special(int32_t id) const override { return id >= 0 && id < vocab_size() && of(id).type == Type::control; }

 private:
  const Piece& of(int32_t id) const { return pieces_[static_cast<size_t>(id)]; }
  int32_t find(std::string_view bytes) const;
  void encode_text(std::string_view text, std::vector<int32_t>* ids) const;

  std::vector<Piece> pieces_;
  std::vector<int32_t> by_bytes_;  // the normal pieces, sorted by bytes
  std::array<int32_t, 256> byte_ids_;
  std::array<char, 256> bytes_;  // what the byte tokens stand for
  AddedTokenMatcher added_;
};

}  // namespace aerie::text

// SentencePiece BPE as llama2.c's run.c reads and runs it.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "core/text/blob.h"
#include "core/text/tokenizer.h"

namespace aerie::text {

class SentencePiece final : public Tokenizer {
 public:
  struct Piece {
    std::string bytes;  // spaces are spaces
    float score = 0;
  };
  // Ids 0, 1, 2 are <unk>, BOS, EOS and 3..258 the bytes "<0x00>".."<0xFF>": run.c takes it for granted,
  // here it is checked.
  static Result<std::shared_ptr<const Tokenizer>> make(std::vector<Piece> pieces);
  static Result<std::shared_ptr<const Tokenizer>> read(BlobReader* blob);

  std::vector<uint8_t> serialize() const override;
  int32_t vocab_size() const override { return static_cast<int32_t>(pieces_.size()); }
  int32_t bos_id() const override { return 1; }
  Result<std::vector<int32_t>> encode(std::string_view utf8, const EncodeOptions& options) const override;
  std::string_view token_bytes(int32_t id, int32_t previous) const override;
  bool is_special(int32_t id) const override { return id >= 0 && id <= 2; }

 private:
  int32_t find(std::string_view bytes) const;
  void encode_text(std::string_view text, std::vector<int32_t>* ids) const;

  std::vector<Piece> pieces_;
  std::vector<int32_t> by_bytes_;  // the ordinary pieces (from id 259), sorted by bytes
  std::array<char, 256> bytes_;    // what the byte tokens stand for
};

}  // namespace aerie::text

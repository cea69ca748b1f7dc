#include "core/text/tokenizer.h"

#include <utility>

#include "core/text/blob.h"
#include "core/text/byte_bpe.h"
#include "core/text/sentencepiece.h"

namespace aerie::text {

Result<std::shared_ptr<const Tokenizer>> Tokenizer::deserialize(std::span<const uint8_t> blob) {
  BlobReader reader(blob);
  if (reader.u32() != kBlobMagic || !reader.ok()) return error(Code::bad_format, "tokenizer blob: wrong magic");
  const uint32_t version = reader.u32();
  if (reader.ok() && version != kBlobVersion) {
    return error(Code::unsupported, "tokenizer blob: version " + std::to_string(version));
  }
  const uint32_t kind = reader.u32();
  if (!reader.ok()) return error(Code::bad_format, "tokenizer blob: truncated");
  switch (static_cast<BlobKind>(kind)) {
    case BlobKind::byte_bpe:
      return ByteBpe::read(&reader);
    case BlobKind::sentencepiece:
    case BlobKind::sentencepiece_typed:
    case BlobKind::sentencepiece_ruled:
    case BlobKind::sentencepiece_named:
      return SentencePiece::read(&reader, static_cast<BlobKind>(kind));
  }
  return error(Code::unsupported, "tokenizer blob: kind " + std::to_string(kind));
}

// llama2.c's tokenizer.bin: int32 max_token_length, then for each token float score, int32 length, bytes.
Result<std::shared_ptr<const Tokenizer>> Tokenizer::from_llama2c(std::span<const uint8_t> bytes, int32_t vocab_size) {
  BlobReader reader(bytes);
  (void)reader.i32();  // the longest token; we do not need it
  if (vocab_size < 0 || vocab_size > kMaxVocab || static_cast<size_t>(vocab_size) > reader.left() / 8) {
    return error(Code::bad_format, "llama2.c tokenizer: too small for a vocabulary of " + std::to_string(vocab_size));
  }
  std::vector<SentencePiece::Piece> pieces(static_cast<size_t>(vocab_size));
  for (SentencePiece::Piece& piece : pieces) {
    piece.score = reader.f32();
    const int32_t length = reader.i32();
    if (!reader.ok() || length < 0 || static_cast<size_t>(length) > kMaxTokenBytes) {
      return error(Code::bad_format, "llama2.c tokenizer: damaged token");
    }
    piece.bytes = reader.string(static_cast<size_t>(length));
  }
  if (!reader.ok() || reader.left() != 0) {
    return error(Code::bad_format, "llama2.c tokenizer: not a vocabulary of " + std::to_string(vocab_size));
  }
  AERIE_TRY(SentencePiece::assume_types(&pieces));
  return SentencePiece::make(std::move(pieces));
}

}  // namespace aerie::text

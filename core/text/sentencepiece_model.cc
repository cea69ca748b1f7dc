// SentencePiece's own file, tokenizer.model: a protobuf ModelProto (sentencepiece_model.proto), of which we read the pieces and the
// few settings that say what is done to a text. A reader of the wire format is shorter than what a schema compiler makes.
#include <bit>
#include <string>

#include "core/text/blob.h"
#include "core/text/sentencepiece.h"
#include "core/platform/utf8.h"

namespace aerie::text {
namespace {

using Piece = SentencePiece::Piece;
using Type = SentencePiece::Type;

Status bad_model(const std::string& what) { return error(Code::bad_format, "tokenizer.model: " + what); }
Status unsupported(const std::string& what) { return error(Code::unsupported, "tokenizer.model: " + what + " is not supported"); }

// One field of a message after the other.
class Fields {
 public:
  explicit Fields(std::string_view message) : left_(message) {}
  uint32_t number = 0;
  uint64_t value = 0;      // of a varint or four bytes
  std::string_view bytes;  // of a text or message
  // False at the end, and where the message is damaged (then !ok()).
  bool next() {
    uint64_t key = 0;
    if (left_.empty() || !varint(&key)) return false;
    number = static_cast<uint32_t>(key >> 3);
    value = 0;
    bytes = {};
    switch (key & 7) {
      case 0:
        return varint(&value);
      case 1:
        return take(8);
      case 2: {
        uint64_t size = 0;
        return varint(&size) && take(size);
      }
      case 5:
        if (!take(4)) return false;
        for (size_t i = 4; i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[i]);
        return true;
      default:
        return ok_ = false;
    }
  }
  bool ok() const { return ok_; }

 private:
  bool take(uint64_t size) {
    if (size > left_.size()) return ok_ = false;
    bytes = left_.substr(0, static_cast<size_t>(size));
    left_.remove_prefix(static_cast<size_t>(size));
    return true;
  }
  bool varint(uint64_t* out) {
    *out = 0;
    for (int shift = 0; shift < 64 && !left_.empty(); shift += 7) {
      const auto byte = static_cast<uint8_t>(left_[0]);
      left_.remove_prefix(1);
      *out |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return true;
    }
    return ok_ = false;
  }
  std::string_view left_;
  bool ok_ = true;
};

Status read_piece(std::string_view message, std::vector<Piece>* pieces) {
  enum : uint64_t { normal = 1, unknown, control, user_defined, unused, byte };
  Piece piece;
  uint64_t type = normal;
  std::string_view text;
  Fields f(message);
  while (f.next()) {
    if (f.number == 1) text = f.bytes;
    if (f.number == 2) piece.score = std::bit_cast<float>(static_cast<uint32_t>(f.value));
    if (f.number == 3) type = f.value;
  }
  const std::string name = "piece " + std::to_string(pieces->size());
  if (!f.ok()) return bad_model(name);
  if (text.size() > kMaxTokenBytes) return bad_model(name + ": " + std::to_string(text.size()) + " bytes");
  if (utf8_valid_prefix(text) != text.size()) return bad_model(name + " is not UTF-8");
  if (type < normal || type > byte) return bad_model(name + ": type " + std::to_string(type));
  if (type == unused) return unsupported(name + " of type UNUSED");
  piece.type = type == normal ? Type::normal : type == user_defined ? Type::user : type == byte ? Type::byte : Type::control;
  piece.bytes = type == normal || type == user_defined ? with_spaces(text) : std::string(text);
  piece.normalized = type == user_defined;  // SentencePiece looks for them in the text that it has normalized
  if (pieces->size() >= kMaxVocab) return bad_model("more than " + std::to_string(kMaxVocab) + " pieces");
  pieces->push_back(std::move(piece));
  return {};
}

struct Bos {
  std::string piece = "<s>";  // what SentencePiece itself goes by
  int64_t id = 1;
};

Status read_trainer(std::string_view message, Bos* bos) {
  enum { kModelType = 3, kWhiteSpaceAsSuffix = 24, kBosId = 41, kBosPiece = 46 };
  uint64_t model = 1;  // unigram
  Fields f(message);
  while (f.next()) {
    if (f.number == kModelType) model = f.value;
    if (f.number == kWhiteSpaceAsSuffix && f.value != 0) return unsupported("treat_whitespace_as_suffix");
    if (f.number == kBosId) bos->id = static_cast<int64_t>(f.value);
    if (f.number == kBosPiece) bos->piece = f.bytes;
  }
  if (!f.ok()) return bad_model("trainer_spec");
  if (model != 2) return unsupported(model == 1 ? "a unigram model" : "model_type " + std::to_string(model));
  return {};
}

Status read_normalizer(std::string_view message, SentencePiece::Rules* rules) {
  bool squeezes = true, escapes = true;
  Fields f(message);
  while (f.next()) {
    if (f.number == 2 && !f.bytes.empty()) return unsupported("a normalizer with rules of its own (precompiled_charsmap)");
    if (f.number == 3 && f.value == 0) rules->prefix = SentencePiece::Rules::Prefix::none;
    if (f.number == 4) squeezes = f.value != 0;
    if (f.number == 5) escapes = f.value != 0;
  }
  if (!f.ok()) return bad_model("normalizer_spec");
  if (squeezes) return unsupported("remove_extra_whitespaces");
  if (!escapes) return unsupported("escape_whitespaces: false");
  return {};
}

}  // namespace

Result<std::shared_ptr<const Tokenizer>> Tokenizer::from_sentencepiece(std::span<const uint8_t> bytes) {
  std::vector<Piece> pieces;
  SentencePiece::Rules rules;
  Bos bos;
  rules.meta = true;
  bool trainer = false, normalizer = false;
  Fields f({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  while (f.next()) {
    if (f.number == 1) AERIE_TRY(read_piece(f.bytes, &pieces));
    if (f.number == 2) AERIE_TRY(read_trainer(f.bytes, &bos));
    if (f.number == 3) AERIE_TRY(read_normalizer(f.bytes, &rules));
    trainer |= f.number == 2;
    normalizer |= f.number == 3;
  }
  if (!f.ok() || pieces.empty() || !trainer || !normalizer) return bad_model("truncated, or not a SentencePiece model");
  rules.strips = rules.prefix != SentencePiece::Rules::Prefix::none;
  const auto id = static_cast<size_t>(bos.id);
  if (bos.id != -1 && (id >= pieces.size() || pieces[id].bytes != bos.piece))
    return unsupported("bos_id " + std::to_string(bos.id) + ", which is not \"" + bos.piece + "\",");
  rules.bos = bos.id != -1;
  if (rules.bos) rules.bos_id = static_cast<int32_t>(bos.id);
  auto made = SentencePiece::make(std::move(pieces), rules);
  if (!made.ok()) return made.status().at("tokenizer.model");
  return made;
}

}  // namespace aerie::text

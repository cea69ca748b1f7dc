#include "core/text/sentencepiece.h"

#include <utility>

#include "core/text/merge.h"

namespace aerie::text {
namespace {

constexpr int32_t kFirstByte = 3, kFirstPiece = kFirstByte + 256;
constexpr double kLowestScore = -1e10;  // run.c starts its search here
using Type = SentencePiece::Type;
using Rules = SentencePiece::Rules;

// In files that do not say it.
Type assumed(size_t id) { return id < kFirstByte ? Type::control : id < kFirstPiece ? Type::byte : Type::normal; }

std::string byte_token(int byte) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  return std::string("<0x") + kHex[byte >> 4] + kHex[byte & 15] + ">";
}

// Of a token that byte_token wrote; -1: it did not.
int byte_of(const std::string& token) {
  const auto digit = [&](size_t at) { return token[at] <= '9' ? token[at] - '0' : token[at] - 'A' + 10; };
  if (token.size() != 6) return -1;
  const int byte = digit(3) << 4 | digit(4);
  return byte >= 0 && byte < 256 && token == byte_token(byte) ? byte : -1;
}

// Rules and types as bytes of the packaged form.
enum : uint8_t { kBefore = 4, kStrips = 8, kMetaIsSpace = 16, kPutsBos = 32, kAllRules = 63, kPrefix = 3 };
enum : uint8_t { kTypeBits = 7, kLstrip = 8, kRstrip = 16, kNormalized = 32, kAllOfType = 63, kMerged = 64 };

uint8_t byte_of(const Rules& r) {
  return static_cast<uint8_t>(static_cast<int>(r.prefix) | (r.before ? kBefore : 0) | (r.strips ? kStrips : 0) |
                              (r.meta ? kMetaIsSpace : 0) | (r.bos ? kPutsBos : 0));
}

bool read_rules(uint8_t byte, Rules* r) {
  if (byte > kAllRules || (byte & kPrefix) > static_cast<int>(Rules::Prefix::every)) return false;
  *r = {static_cast<Rules::Prefix>(byte & kPrefix), (byte & kBefore) != 0, (byte & kStrips) != 0, (byte & kMetaIsSpace) != 0,
        (byte & kPutsBos) != 0};
  return true;
}

uint8_t byte_of(const SentencePiece::Piece& p) {
  return static_cast<uint8_t>(static_cast<int>(p.type) | (p.lstrip ? kLstrip : 0) | (p.rstrip ? kRstrip : 0) |
                              (p.normalized ? kNormalized : 0) | (p.merged ? kMerged : 0));
}

bool read_type(uint8_t byte, BlobKind kind, SentencePiece::Piece* p) {
  const int ruled = kind == BlobKind::sentencepiece_ruled ? kAllOfType : kAllOfType | kMerged;
  const int all = kind == BlobKind::sentencepiece_typed ? kTypeBits : ruled;
  if (byte > all || (byte & kTypeBits) > static_cast<int>(Type::user)) return false;
  p->type = static_cast<Type>(byte & kTypeBits);
  p->lstrip = (byte & kLstrip) != 0;
  p->rstrip = (byte & kRstrip) != 0;
  p->normalized = (byte & kNormalized) != 0;
  p->merged = (byte & kMerged) != 0;
  return !p->merged || (p->type == Type::user && !p->normalized);
}

// with_spaces, backwards.
std::string with_meta(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == ' ') out += kMeta;
    else out += c;
  }
  return out;
}

bool is_spelled(const SentencePiece::Piece& p) { return p.type == Type::normal || p.merged; }

}  // namespace

std::string with_spaces(std::string_view piece) {
  std::string out;
  for (size_t at = 0; at < piece.size();) {
    const bool space = piece.substr(at).starts_with(kMeta);
    out += space ? ' ' : piece[at];
    at += space ? std::string_view(kMeta).size() : 1;
  }
  return out;
}

Status SentencePiece::assume_types(std::vector<Piece>* pieces) {
  if (pieces->size() < kFirstPiece)
    return error(Code::bad_format, "tokenizer: vocabulary of " + std::to_string(pieces->size()) + " tokens");
  for (size_t id = 0; id < pieces->size(); ++id) {
    Piece& piece = (*pieces)[id];
    piece.type = assumed(id);
    const int byte = static_cast<int>(id) - kFirstByte;
    if (piece.type == Type::byte && piece.bytes != byte_token(byte))
      return error(Code::unsupported, "tokenizer: token " + std::to_string(id) + " is not " + byte_token(byte) + " (no byte fallback)");
  }
  return {};
}

Result<std::shared_ptr<const Tokenizer>> SentencePiece::make(std::vector<Piece> pieces, const Rules& rules, MergeList merges) {
  if (pieces.size() <= kFirstByte || pieces.size() > kMaxVocab)
    return error(Code::bad_format, "tokenizer: vocabulary of " + std::to_string(pieces.size()) + " tokens");
  if (rules.bos && (rules.bos_id < 0 || static_cast<size_t>(rules.bos_id) >= pieces.size() ||
                    pieces[static_cast<size_t>(rules.bos_id)].type != Type::control))
    return error(Code::unsupported, "tokenizer: token " + std::to_string(rules.bos_id) + ", BOS, is not a control token");
  auto tokenizer = std::make_shared<SentencePiece>();
  tokenizer->rules_ = rules;
  tokenizer->byte_ids_.fill(-1);
  // run.c's files write some with line breaks around them.
  const auto text_of = [](const Piece& piece) {
    const size_t begin = piece.bytes.find_first_not_of('\n'), end = piece.bytes.find_last_not_of('\n');
    return begin == std::string::npos ? std::string() : piece.bytes.substr(begin, end + 1 - begin);
  };
  tokenizer->pieces_ = std::move(pieces);
  tokenizer->merges_ = std::move(merges);
  const SentencePiece& made = *tokenizer;
  for (size_t id = 0; id < made.pieces_.size(); ++id) {
    const Piece& piece = made.pieces_[id];
    const auto wrong = [&](Code code, const std::string& what) { return error(code, "tokenizer: token " + std::to_string(id) + what); };
    if (piece.bytes.size() > kMaxTokenBytes) return error(Code::bad_format, "tokenizer: oversized token");
    // Text never spells a control or byte token, as in SentencePiece itself. (run.c has no such rule
    // but no vocabulary that would show it.) An empty piece can match nothing.
    if (piece.type == Type::byte) {
      const int byte = byte_of(piece.bytes);
      if (byte < 0) return wrong(Code::bad_format, " is no byte: \"" + piece.bytes + "\"");
      tokenizer->byte_ids_[static_cast<size_t>(byte)] = static_cast<int32_t>(id);
      continue;
    }
    if (is_spelled(piece) && !piece.bytes.empty()) tokenizer->spelled_.add(&piece.bytes, static_cast<int32_t>(id));
    if (piece.type == Type::normal) continue;
    if (const std::string text = piece.merged ? with_meta(piece.bytes) : id < kFirstByte ? text_of(piece) : piece.bytes; !text.empty()) {
      if (text.size() > kMaxAddedBytes) return wrong(Code::bad_format, ": " + std::to_string(text.size()) + " bytes");
      (piece.normalized ? tokenizer->normalized_added_ : tokenizer->raw_added_)
          .add({text, static_cast<int32_t>(id), piece.type == Type::control, piece.lstrip, piece.rstrip});
    }
  }
  tokenizer->raw_added_.build();
  tokenizer->normalized_added_.build();
  for (size_t byte = 0; byte < 256; ++byte) {
    if (tokenizer->byte_ids_[byte] < 0)
      return error(Code::unsupported, "tokenizer: no token " + byte_token(static_cast<int>(byte)) + " (no byte fallback)");
    tokenizer->bytes_[byte] = static_cast<char>(byte);
  }
  tokenizer->spelled_.build();
  AERIE_TRY(tokenizer->pairs_.build(
      made.merges_, made.vocab_size(), [&](int32_t id) { return is_spelled(made.of(id)) ? &made.of(id).bytes : nullptr; },
      [&](const std::string& bytes) { return made.spelled_.find(bytes); }));
  return std::shared_ptr<const Tokenizer>(std::move(tokenizer));
}

std::string_view SentencePiece::token_bytes(int32_t id, int32_t previous) const {
  if (id < 0 || id >= vocab_size() || of(id).type == Type::control) return {};
  std::string_view piece = of(id).bytes;
  if (of(id).type == Type::byte) return std::string_view(&bytes_[static_cast<size_t>(byte_of(of(id).bytes))], 1);
  const bool of_text = of(id).type == Type::normal || of(id).normalized;
  if (rules_.strips && previous == rules_.bos_id && of_text && piece.starts_with(' ')) piece.remove_prefix(1);
  return piece;
}

Result<std::vector<int32_t>> SentencePiece::encode(std::string_view utf8, const EncodeOptions& options) const {
  if (utf8.size() > kMaxTextBytes) return error(Code::limit, "text to encode is larger than 1 GiB");
  std::vector<int32_t> ids;
  if (options.add_bos && rules_.bos) ids.push_back(rules_.bos_id);
  std::vector<Segment> segments;
  raw_added_.split(utf8, options.parse_special, &segments);
  for (size_t i = 0; i < segments.size(); ++i) {
    if (segments[i].id >= 0) ids.push_back(segments[i].id);
    else encode_stretch(segments[i].text, i == 0, i == 0 && options.goes_on, options.parse_special, &ids);
  }
  return ids;
}

// SentencePiece's add_dummy_prefix and Hugging Face's "Prepend" are done to the whole stretch, "Metaspace" to what is left between
// the tokens that are found in it.
void SentencePiece::encode_stretch(std::string_view text, bool opens, bool goes_on, bool parse_special,
                                   std::vector<int32_t>* ids) const {
  const auto has_prefix = [&](bool first) {
    if (goes_on && first) return false;
    return rules_.prefix == Rules::Prefix::every || (rules_.prefix == Rules::Prefix::first && first);
  };
  const auto spaced = [&](std::string_view part) { return rules_.meta ? with_spaces(part) : std::string(part); };
  std::string stretch = rules_.before ? (has_prefix(opens) ? " " : "") + spaced(text) : std::string(text);
  std::vector<Segment> segments;
  normalized_added_.split(stretch, parse_special, &segments);
  for (size_t i = 0; i < segments.size(); ++i) {
    if (segments[i].id >= 0) {
      ids->push_back(segments[i].id);
    } else if (rules_.before) {
      encode_text(segments[i].text, ids);
    } else {
      std::string part = spaced(segments[i].text);
      if (has_prefix(opens && i == 0) && part[0] != ' ') part.insert(0, 1, ' ');
      encode_text(part, ids);
    }
  }
}

void SentencePiece::encode_text(std::string_view text, std::vector<int32_t>* ids) const {
  MergeScratch scratch;
  for (size_t begin = 0; begin < text.size();) {
    // run.c's notion of a character: a byte and up to three continuation bytes.
    size_t end = begin + 1;
    while (end < text.size() && end - begin < 4 && (static_cast<uint8_t>(text[end]) & 0xC0) == 0x80) ++end;
    const auto at = static_cast<uint32_t>(begin);
    if (const int32_t id = spelled_.find(text.substr(begin, end - begin)); id >= 0) {
      scratch.add(id, at, static_cast<uint32_t>(end));
    } else {
      for (size_t i = begin; i < end; ++i) {
        scratch.add(byte_ids_[static_cast<uint8_t>(text[i])], static_cast<uint32_t>(i), static_cast<uint32_t>(i + 1));
      }
    }
    begin = end;
  }
  scratch.run(
      [&](const MergeScratch::Symbol& left, const MergeScratch::Symbol& right) -> Merge {
        if (!pairs_.empty()) return pairs_.find(left.id, right.id);
        if (of(left.id).type == Type::byte || of(right.id).type == Type::byte) return {};  // they do not join
        const int32_t id = spelled_.find(text.substr(left.begin, right.end - left.begin));
        if (id < 0 || !(of(id).score > kLowestScore)) return {};  // refuses NaN as well
        return {id, -static_cast<double>(of(id).score)};
      },
      ids);
}

// Packaged form: pieces u32, each score f32 + u16 length + bytes; of the second kind a type u8 each before, too; of the third
// the rules u8 before all of it, flags in the types, and merges behind it; of the fourth the BOS's id i32 behind the rules.
std::vector<uint8_t> SentencePiece::serialize() const {
  bool ruled = rules_ != Rules() || !merges_.empty(), typed = pieces_.size() < kFirstPiece, named = rules_.bos_id != Rules().bos_id;
  for (size_t id = 0; id < pieces_.size(); ++id) {
    const Piece& p = pieces_[id];
    ruled |= p.lstrip || p.rstrip || p.normalized;
    named |= p.merged;
    typed |= p.type != assumed(id) || (p.type == Type::byte && byte_of(p.bytes) != static_cast<int>(id) - kFirstByte);
  }
  ruled |= named;
  typed |= ruled;
  BlobWriter out;
  out.u32(kBlobMagic);
  out.u32(kBlobVersion);
  out.u32(static_cast<uint32_t>(named   ? BlobKind::sentencepiece_named
                                : ruled ? BlobKind::sentencepiece_ruled
                                : typed ? BlobKind::sentencepiece_typed
                                        : BlobKind::sentencepiece));
  if (ruled) out.u8(byte_of(rules_));
  if (named) out.i32(rules_.bos_id);
  out.u32(static_cast<uint32_t>(pieces_.size()));
  for (const Piece& piece : pieces_) {
    if (typed) out.u8(byte_of(piece));
    out.f32(piece.score);
    out.string16(piece.bytes);
  }
  if (ruled) write_merges(merges_, &out);
  return out.take();
}

Result<std::shared_ptr<const Tokenizer>> SentencePiece::read(BlobReader* blob, BlobKind kind) {
  const bool named = kind == BlobKind::sentencepiece_named, ruled = named || kind == BlobKind::sentencepiece_ruled;
  const bool typed = ruled || kind == BlobKind::sentencepiece_typed;
  Rules rules;
  if (ruled && !read_rules(blob->u8(), &rules)) return error(Code::bad_format, "tokenizer blob: damaged: rules");
  if (named) rules.bos_id = blob->i32();
  const uint32_t count = blob->u32();
  if (!blob->ok() || count > static_cast<uint32_t>(kMaxVocab) || count > blob->left() / 6) {
    return error(Code::bad_format, "tokenizer blob: damaged: piece count");
  }
  std::vector<Piece> pieces(count);
  for (Piece& piece : pieces) {
    if (typed && !read_type(blob->u8(), kind, &piece)) return error(Code::bad_format, "tokenizer blob: damaged: type of a piece");
    piece.score = blob->f32();
    piece.bytes = blob->string16();
  }
  MergeList merges;
  if (ruled && !read_merges(blob, &merges)) return error(Code::bad_format, "tokenizer blob: damaged: merge count");
  if (!blob->ok() || blob->left() != 0) return error(Code::bad_format, "tokenizer blob: damaged: size");
  if (!typed) AERIE_TRY(assume_types(&pieces));
  return make(std::move(pieces), rules, std::move(merges));
}

}  // namespace aerie::text

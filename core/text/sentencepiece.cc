#include "core/text/sentencepiece.h"

#include <algorithm>
#include <utility>

#include "core/text/merge.h"

namespace aerie::text {
namespace {

constexpr int32_t kBos = 1, kEos = 2, kFirstByte = 3, kFirstPiece = kFirstByte + 256;
constexpr double kLowestScore = -1e10;  // run.c starts its search here

std::string byte_token(int byte) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  return std::string("<0x") + kHex[byte >> 4] + kHex[byte & 15] + ">";
}

}  // namespace

Result<std::shared_ptr<const Tokenizer>> SentencePiece::make(std::vector<Piece> pieces) {
  const auto n = static_cast<int32_t>(std::min<size_t>(pieces.size(), kMaxVocab + 1));
  if (n < kFirstPiece || n > kMaxVocab) {
    return error(Code::bad_format, "tokenizer: vocabulary of " + std::to_string(pieces.size()) + " tokens");
  }
  auto tokenizer = std::make_shared<SentencePiece>();
  for (int byte = 0; byte < 256; ++byte) {
    if (pieces[kFirstByte + byte].bytes != byte_token(byte)) {
      return error(Code::unsupported, "tokenizer: token " + std::to_string(kFirstByte + byte) + " is not " +
                                          byte_token(byte) + " (no byte fallback)");
    }
    tokenizer->bytes_[byte] = static_cast<char>(byte);
  }
  for (int32_t id = 0; id < n; ++id) {
    if (pieces[id].bytes.size() > kMaxTokenBytes) return error(Code::bad_format, "tokenizer: oversized token");
    // Text never spells a control or byte token, as in SentencePiece itself. (run.c has no such rule
    // but no vocabulary that would show it.) An empty piece can match nothing.
    if (id >= kFirstPiece && !pieces[id].bytes.empty()) tokenizer->by_bytes_.push_back(id);
  }
  std::sort(tokenizer->by_bytes_.begin(), tokenizer->by_bytes_.end(), [&](int32_t a, int32_t b) {
    const int order = pieces[a].bytes.compare(pieces[b].bytes);
    return order != 0 ? order < 0 : a < b;
  });
  tokenizer->pieces_ = std::move(pieces);
  return std::shared_ptr<const Tokenizer>(std::move(tokenizer));
}

int32_t SentencePiece::find(std::string_view bytes) const {
  const auto at = std::lower_bound(by_bytes_.begin(), by_bytes_.end(), bytes,
                                   [&](int32_t id, std::string_view b) { return pieces_[id].bytes < b; });
  return at != by_bytes_.end() && pieces_[*at].bytes == bytes ? *at : -1;
}

std::string_view SentencePiece::token_bytes(int32_t id, int32_t previous) const {
  if (id < kFirstByte || id >= vocab_size()) return {};
  if (id < kFirstPiece) return std::string_view(&bytes_[id - kFirstByte], 1);
  std::string_view piece = pieces_[id].bytes;
  if (previous == kBos && !piece.empty() && piece[0] == ' ') piece.remove_prefix(1);
  return piece;
}

Result<std::vector<int32_t>> SentencePiece::encode(std::string_view utf8, const EncodeOptions& options) const {
  if (utf8.size() > kMaxTextBytes) return error(Code::limit, "text to encode is larger than 1 GiB");
  std::vector<int32_t> ids;
  if (options.add_bos) ids.push_back(kBos);
  std::string text;
  text.reserve(utf8.size() + 1);
  if (!utf8.empty()) text += ' ';  // SentencePiece's add_dummy_prefix
  text += utf8;
  std::string_view rest = text;
  for (size_t at = 0; options.parse_special && (at = rest.find('<', at)) != std::string_view::npos;) {
    const bool bos = rest.substr(at, 3) == "<s>", eos = rest.substr(at, 4) == "</s>";
    if (!bos && !eos) {
      ++at;
      continue;
    }
    // The dummy space belongs to a text; one that opens with a control token has none.
    if (!(rest.data() == text.data() && at == 1)) encode_text(rest.substr(0, at), &ids);
    ids.push_back(bos ? kBos : kEos);
    rest.remove_prefix(at + (bos ? 3 : 4));
    at = 0;
  }
  encode_text(rest, &ids);
  return ids;
}

void SentencePiece::encode_text(std::string_view text, std::vector<int32_t>* ids) const {
  MergeScratch scratch;
  for (size_t begin = 0; begin < text.size();) {
    // run.c's notion of a character: a byte and up to three continuation bytes.
    size_t end = begin + 1;
    while (end < text.size() && end - begin < 4 && (static_cast<uint8_t>(text[end]) & 0xC0) == 0x80) ++end;
    const auto at = static_cast<uint32_t>(begin);
    if (const int32_t id = find(text.substr(begin, end - begin)); id >= 0) {
      scratch.add(id, at, static_cast<uint32_t>(end));
    } else {
      for (size_t i = begin; i < end; ++i) {
        scratch.add(kFirstByte + static_cast<uint8_t>(text[i]), static_cast<uint32_t>(i), static_cast<uint32_t>(i + 1));
      }
    }
    begin = end;
  }
  scratch.run(
      [&](const MergeScratch::Symbol& left, const MergeScratch::Symbol& right) -> Merge {
        if (left.id < kFirstPiece || right.id < kFirstPiece) return {};  // byte tokens do not join
        const int32_t id = find(text.substr(left.begin, right.end - left.begin));
        if (id < 0 || !(pieces_[id].score > kLowestScore)) return {};  // refuses NaN as well
        return {id, -static_cast<double>(pieces_[id].score)};
      },
      ids);
}

// Packaged form: pieces u32, each score f32 + u16 length + bytes.
std::vector<uint8_t> SentencePiece::serialize() const {
  BlobWriter out;
  out.u32(kBlobMagic);
  out.u32(kBlobVersion);
  out.u32(static_cast<uint32_t>(BlobKind::sentencepiece));
  out.u32(static_cast<uint32_t>(pieces_.size()));
  for (const Piece& piece : pieces_) {
    out.f32(piece.score);
    out.string16(piece.bytes);
  }
  return out.take();
}

Result<std::shared_ptr<const Tokenizer>> SentencePiece::read(BlobReader* blob) {
  const uint32_t count = blob->u32();
  if (!blob->ok() || count > static_cast<uint32_t>(kMaxVocab) || count > blob->left() / 6) {
    return error(Code::bad_format, "tokenizer blob: piece count");
  }
  std::vector<Piece> pieces(count);
  for (Piece& piece : pieces) {
    piece.score = blob->f32();
    piece.bytes = blob->string16();
  }
  if (!blob->ok() || blob->left() != 0) return error(Code::bad_format, "tokenizer blob: size");
  return make(std::move(pieces));
}

}  // namespace aerie::text

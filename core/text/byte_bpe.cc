#include "core/text/byte_bpe.h"

#include <utility>

#include "core/text/nfc.h"
#include "core/platform/utf8.h"

namespace aerie::text {
namespace {

using Spec = ByteBpeSpec;

std::string byte_name(int byte) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  return std::string("0x") + kHex[byte >> 4] + kHex[byte & 15];
}

}  // namespace

Result<std::shared_ptr<const Tokenizer>> ByteBpe::make(ByteBpeSpec spec) {
  if (spec.tokens.empty() || spec.tokens.size() > static_cast<size_t>(kMaxVocab)) {
    return error(Code::bad_format, "tokenizer: vocabulary of " + std::to_string(spec.tokens.size()) + " tokens");
  }
  if (spec.patterns.size() > 16) return error(Code::bad_format, "tokenizer: too many pre-tokenizer steps");
  if (spec.bos < -1 || spec.bos >= static_cast<int32_t>(spec.tokens.size())) {
    return error(Code::bad_format, "tokenizer: BOS id " + std::to_string(spec.bos) + " is outside the vocabulary");
  }
  auto tokenizer = std::make_shared<ByteBpe>();
  for (const std::string& pattern : spec.patterns) {
    if (pattern.size() > kMaxTokenBytes)
      return error(Code::unsupported, "tokenizer: a pre-tokenizer pattern of " + std::to_string(pattern.size()) + " bytes");
    AERIE_ASSIGN(RegexSplitter splitter, RegexSplitter::make(pattern));
    tokenizer->splitters_.push_back(std::move(splitter));
  }
  tokenizer->spec_ = std::move(spec);
  AERIE_TRY(tokenizer->index_tokens());
  const ByteBpe& made = *tokenizer;
  AERIE_TRY(tokenizer->pairs_.build(
      made.spec_.merges, made.vocab_size(),
      [&](int32_t id) {
        const Spec::Token& token = made.spec_.tokens[static_cast<size_t>(id)];
        return token.flags & Spec::kSpelled ? &token.bytes : nullptr;
      },
      [&](const std::string& bytes) { return made.spelled_.find(bytes); }));
  return std::shared_ptr<const Tokenizer>(std::move(tokenizer));
}

Status ByteBpe::index_tokens() {
  const auto& tokens = spec_.tokens;
  byte_ids_.fill(-1);
  for (int32_t id = 0; id < vocab_size(); ++id) {
    const Spec::Token& token = tokens[id];
    if (token.bytes.size() > kMaxTokenBytes || (token.flags != 0 && token.bytes.empty())) {
      return error(Code::bad_format,
                   "tokenizer: token " + std::to_string(id) + " has " + std::to_string(token.bytes.size()) + " bytes");
    }
    if (token.flags & Spec::kSpelled) {
      spelled_.add(&token.bytes, id);
      if (token.bytes.size() == 1) byte_ids_[static_cast<uint8_t>(token.bytes[0])] = id;
    }
    if (token.flags & Spec::kAdded) {
      const bool normalized = (token.flags & Spec::kNormalized) != 0;
      AddedToken added{token.bytes, id, (token.flags & Spec::kSpecial) != 0, (token.flags & Spec::kLstrip) != 0,
                       (token.flags & Spec::kRstrip) != 0};
      if (utf8_valid_prefix(added.content) != added.content.size()) {
        return error(Code::bad_format, "tokenizer: added token " + std::to_string(id) + " is not UTF-8");
      }
      if (added.content.size() > kMaxAddedBytes)
        return error(Code::bad_format, "tokenizer: added token " + std::to_string(id) + ": " + std::to_string(added.content.size()) + " bytes");
      if (normalized && spec_.nfc) added.content = nfc(added.content);
      (normalized ? normalized_added_ : raw_added_).add(std::move(added));
    }
  }
  raw_added_.build();
  normalized_added_.build();
  spelled_.build();
  if (int32_t a = 0, b = 0; spelled_.twins(&a, &b))
    return error(Code::bad_format, "tokenizer: tokens " + std::to_string(a) + " and " + std::to_string(b) + " spell the same");
  for (int byte = 0; byte < 256; ++byte) {
    // Bytes that text hardly has, or never: some vocabularies go without (SmolLM's without 04 06 13 14 16 1D C0 C1 F1 F4 and more).
    const bool control = byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r';
    const bool rare = control || byte == 0xC0 || byte == 0xC1 || byte > 0xF0;
    lacks_bytes_ |= byte_ids_[byte] < 0;
    if (byte_ids_[byte] < 0 && !rare) {
      return error(Code::unsupported,
                   "tokenizer: no token for byte " + byte_name(byte) + " (not a byte-level vocabulary)");
    }
  }
  return {};
}

std::string_view ByteBpe::token_bytes(int32_t id, int32_t /*previous*/) const {
  if (id < 0 || id >= vocab_size() || is_special(id)) return {};
  return spec_.tokens[id].bytes;
}

std::string_view ByteBpe::token_text(int32_t id) const {
  return id >= 0 && id < vocab_size() ? std::string_view(spec_.tokens[id].bytes) : std::string_view();
}

bool ByteBpe::is_special(int32_t id) const {
  return id >= 0 && id < vocab_size() && (spec_.tokens[id].flags & Spec::kSpecial) != 0;
}

Result<std::vector<int32_t>> ByteBpe::encode(std::string_view utf8, const EncodeOptions& options) const {
  if (utf8.size() > kMaxTextBytes) return error(Code::limit, "text to encode is larger than 1 GiB");
  for (size_t i = 0; lacks_bytes_ && i < utf8.size(); ++i)
    if (const auto byte = static_cast<uint8_t>(utf8[i]); byte_ids_[byte] < 0)
      return error(Code::invalid_argument, "text to encode: byte " + byte_name(byte) + " has no token in this vocabulary");
  std::vector<int32_t> ids;
  Scratch scratch;
  if (options.add_bos && spec_.bos >= 0) ids.push_back(spec_.bos);
  scratch.prefix_space = spec_.prefix_space && !options.goes_on;
  AERIE_TRY(encode_raw(utf8, options.parse_special, &scratch, &ids));
  return ids;
}

// Hugging Face's order: added tokens of the text as given, normalization, added tokens of the
// normalized text, pre-tokenizer, merges.
Status ByteBpe::encode_raw(std::string_view text, bool parse_special, Scratch* scratch,
                           std::vector<int32_t>* ids) const {
  std::vector<Segment> segments;
  raw_added_.split(text, parse_special, &segments);
  for (const Segment& segment : segments) {
    if (segment.id >= 0) {
      ids->push_back(segment.id);
    } else if (spec_.nfc) {
      std::string normalized;
      for (std::string_view rest = segment.text; !rest.empty();) {
        const size_t valid = utf8_valid_prefix(rest);
        normalized += nfc(rest.substr(0, valid));
        rest.remove_prefix(valid);
        if (rest.empty()) break;
        normalized += rest[0];
        rest.remove_prefix(1);
      }
      AERIE_TRY(encode_normalized(normalized, parse_special, scratch, ids));
    } else {
      AERIE_TRY(encode_normalized(segment.text, parse_special, scratch, ids));
    }
  }
  return {};
}

Status ByteBpe::encode_normalized(std::string_view text, bool parse_special, Scratch* scratch,
                                  std::vector<int32_t>* ids) const {
  if (normalized_added_.empty()) return encode_text(text, scratch, ids);
  std::vector<Segment> segments;
  normalized_added_.split(text, parse_special, &segments);
  for (const Segment& segment : segments) {
    if (segment.id >= 0) {
      ids->push_back(segment.id);
    } else {
      AERIE_TRY(encode_text(segment.text, scratch, ids));
    }
  }
  return {};
}

Status ByteBpe::encode_text(std::string_view text, Scratch* scratch, std::vector<int32_t>* ids) const {
  std::string prefixed;
  if (std::exchange(scratch->prefix_space, spec_.prefix_space) && !text.empty() && text[0] != ' ') {
    prefixed.reserve(text.size() + 1);
    prefixed += ' ';
    prefixed += text;
    text = prefixed;
  }
  while (!text.empty()) {
    // A regex sees valid UTF-8 only; each byte that is not is a piece of its own, and no byte is lost.
    const size_t valid = utf8_valid_prefix(text);
    auto& pieces = scratch->pieces;
    pieces.clear();
    if (valid > 0) pieces.push_back(text.substr(0, valid));
    for (const RegexSplitter& splitter : splitters_) {
      scratch->next_pieces.clear();
      for (const std::string_view piece : pieces) AERIE_TRY(splitter.split(piece, &scratch->next_pieces));
      std::swap(pieces, scratch->next_pieces);
    }
    for (const std::string_view piece : pieces) encode_piece(piece, scratch, ids);
    text.remove_prefix(valid);
    if (!text.empty()) {
      ids->push_back(byte_ids_[static_cast<uint8_t>(text[0])]);
      text.remove_prefix(1);
    }
  }
  return {};
}

void ByteBpe::encode_piece(std::string_view piece, Scratch* scratch, std::vector<int32_t>* ids) const {
  if (spec_.ignore_merges) {
    // Never a special token: the text of "<|end|>" must not become it unless the caller asked.
    if (const int32_t id = spelled_.find(piece); id >= 0 && !is_special(id)) {
      ids->push_back(id);
      return;
    }
  }
  for (size_t i = 0; i < piece.size(); ++i) {
    scratch->merge.add(byte_ids_[static_cast<uint8_t>(piece[i])], static_cast<uint32_t>(i),
                       static_cast<uint32_t>(i + 1));
  }
  scratch->merge.run([this](const MergeScratch::Symbol& left, const MergeScratch::Symbol& right) { return pairs_.find(left.id, right.id); },
                     ids);
}

}  // namespace aerie::text

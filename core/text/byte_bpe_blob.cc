// The packaged form of a byte-level BPE tokenizer:
//   flags u32 | bos i32 | patterns u32, each u16 length + bytes
//   tokens u32, each u8 flags + u16 length + bytes | merges u32, each left u32 + right u32, by rank
#include <utility>

#include "core/text/byte_bpe.h"

namespace aerie::text {
namespace {

constexpr uint32_t kNfc = 1, kPrefixSpace = 2, kIgnoreMerges = 4, kAllFlags = 7;

}  // namespace

std::vector<uint8_t> ByteBpe::serialize() const {
  BlobWriter out;
  out.u32(kBlobMagic);
  out.u32(kBlobVersion);
  out.u32(static_cast<uint32_t>(BlobKind::byte_bpe));
  out.u32((spec_.nfc ? kNfc : 0) | (spec_.prefix_space ? kPrefixSpace : 0) | (spec_.ignore_merges ? kIgnoreMerges : 0));
  out.i32(spec_.bos);
  out.u32(static_cast<uint32_t>(spec_.patterns.size()));
  for (const std::string& pattern : spec_.patterns) out.string16(pattern);
  out.u32(static_cast<uint32_t>(spec_.tokens.size()));
  for (const ByteBpeSpec::Token& token : spec_.tokens) {
    out.u8(token.flags);
    out.string16(token.bytes);
  }
  write_merges(spec_.merges, &out);
  return out.take();
}

Result<std::shared_ptr<const Tokenizer>> ByteBpe::read(BlobReader* blob) {
  const auto damaged = [](const std::string& what) { return error(Code::bad_format, "tokenizer blob: damaged: " + what); };
  ByteBpeSpec spec;
  const uint32_t flags = blob->u32();
  if (flags & ~kAllFlags) return damaged("unknown flags");
  spec.nfc = (flags & kNfc) != 0;
  spec.prefix_space = (flags & kPrefixSpace) != 0;
  spec.ignore_merges = (flags & kIgnoreMerges) != 0;
  spec.bos = blob->i32();
  const uint32_t patterns = blob->u32();
  if (!blob->ok() || patterns > 16) return damaged("pattern count");
  for (uint32_t i = 0; i < patterns; ++i) spec.patterns.push_back(blob->string16());
  const uint32_t tokens = blob->u32();
  // Every item takes at least that many bytes, so a count that passes is paid for by the file's size.
  if (!blob->ok() || tokens > static_cast<uint32_t>(kMaxVocab) || tokens > blob->left() / 3)
    return damaged("token count");
  spec.tokens.resize(tokens);
  for (ByteBpeSpec::Token& token : spec.tokens) {
    token.flags = blob->u8();
    token.bytes = blob->string16();
    if (!blob->ok() || token.flags > 63) return damaged("token " + std::to_string(&token - spec.tokens.data()));
  }
  if (!read_merges(blob, &spec.merges)) return damaged("merge count");
  if (!blob->ok() || blob->left() != 0) return damaged("size");
  return make(std::move(spec));
}

}  // namespace aerie::text

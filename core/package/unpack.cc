#include "core/package/unpack.h"

#include <xxhash.h>
#include <zstd.h>

#include <new>

#include "core/package/format.h"

namespace aerie::package {

void AlignedDelete::operator()(uint8_t* p) const { ::operator delete[](p, std::align_val_t{kBlobAlignment}); }

AlignedBytes allocate_aligned(uint64_t bytes) {
  return AlignedBytes(new (std::align_val_t{kBlobAlignment}, std::nothrow) uint8_t[bytes]);
}

Result<AlignedBytes> unpack(const StoredRow& row, std::span<const uint8_t> stored,
                            const std::function<bool(uint64_t)>& advance) {
  const auto bad = [](size_t chunk, const char* what) {
    return error(Code::bad_format, "chunk " + std::to_string(chunk) + ": " + what);
  };
  // All frames must say what the manifest says before a byte is allocated for them.
  uint64_t at = 0;
  for (size_t i = 0; i < row.chunks.size(); ++i) {
    const ChunkRow& c = row.chunks[i];
    if (ZSTD_getFrameContentSize(stored.data() + at, c.stored_bytes) != c.raw_bytes)
      return bad(i, "the frame's length is not the manifest's");
    at += c.stored_bytes;
  }
  AlignedBytes out = allocate_aligned(row.raw_bytes);
  const std::unique_ptr<ZSTD_DCtx, size_t (*)(ZSTD_DCtx*)> context(ZSTD_createDCtx(), ZSTD_freeDCtx);
  if (!out || !context)
    return error(Code::out_of_memory, "no memory to unpack " + std::to_string(row.raw_bytes) + " bytes");
  uint64_t from = 0, to = 0;
  for (size_t i = 0; i < row.chunks.size(); ++i) {
    const ChunkRow& c = row.chunks[i];
    const uint8_t* frame = stored.data() + from;
    if (XXH64(frame, c.stored_bytes, 0) != c.xxh64) return bad(i, "checksum is wrong, the file is damaged");
    if (ZSTD_findFrameCompressedSize(frame, c.stored_bytes) != c.stored_bytes ||
        ZSTD_decompressDCtx(context.get(), out.get() + to, c.raw_bytes, frame, c.stored_bytes) != c.raw_bytes)
      return bad(i, "does not unpack");
    from += c.stored_bytes;
    to += c.raw_bytes;
    if (!advance(c.raw_bytes)) return error(Code::cancelled, "cancelled");
  }
  if (XXH64(out.get(), row.raw_bytes, 0) != row.xxh64)
    return error(Code::bad_format, "checksum is wrong after unpacking, the file is damaged");
  return out;
}

}  // namespace aerie::package

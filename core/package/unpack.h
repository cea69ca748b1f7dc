// zstd chunks to 64-byte aligned memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "core/package/manifest.h"

namespace aerie::package {

struct AlignedDelete {
  void operator()(uint8_t* p) const;
};
using AlignedBytes = std::unique_ptr<uint8_t[], AlignedDelete>;
AlignedBytes allocate_aligned(uint64_t bytes);  // null when there is no memory

// `stored` is the row's bytes in the file. advance(n) after every n unpacked bytes; false cancels.
Result<AlignedBytes> unpack(const StoredRow& row, std::span<const uint8_t> stored,
                            const std::function<bool(uint64_t)>& advance);

}  // namespace aerie::package

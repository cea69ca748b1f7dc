// A repository cloned without Git LFS has small texts in its large files' places.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "kernels/status.h"

namespace aerie {

inline Status refuse_lfs_pointer(std::span<const uint8_t> bytes) {
  constexpr std::string_view kBegins = "version https://git-lfs.";
  if (bytes.size() < kBegins.size() || std::memcmp(bytes.data(), kBegins.data(), kBegins.size()) != 0) return {};
  return error(Code::bad_format, "a Git LFS pointer in place of the file (git lfs pull fetches it)");
}

}  // namespace aerie

// Pre-tokenizer patterns are written for Oniguruma (Ruby syntax), we match with PCRE2.
#pragma once

#include <string>
#include <string_view>

#include "kernels/status.h"

namespace aerie::text {

// GPT-2's pattern, what the "ByteLevel" pre-tokenizer means by use_regex.
inline constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// The same pattern for PCRE2 in UTF mode. Only constructs known to mean the same in both engines are
// let through, everything else is refused by name: a pattern that matches almost the same gives
// almost the same ids, and nobody notices.
Result<std::string> to_pcre2(std::string_view oniguruma);

// True when every text is wholly matched, piece after piece, for certain: the pattern has, among its
// alternatives, the usual ones for letters, numbers, white space and all else.
bool covers_all_text(std::string_view oniguruma);

}  // namespace aerie::text

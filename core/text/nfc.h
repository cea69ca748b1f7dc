// Unicode canonical composition (NFC), the one normalizer that byte-level models use (Qwen).
#pragma once

#include <string>
#include <string_view>

namespace aerie::text {

// `utf8` must be valid.
std::string nfc(std::string_view utf8);

}  // namespace aerie::text

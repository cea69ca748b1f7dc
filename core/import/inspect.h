// What is in a package, for people and for scripts. Header and manifest are read and judged as an open
// judges them; the data is not touched, so this is quick whatever the size.
#pragma once

#include <string>

#include "kernels/status.h"

namespace aerie {

// JSON: file, format, file_bytes, kind, name, fingerprint, config {...} or plugin, target_fingerprint and
// params {...}, parameters, stored_bytes, raw_bytes, blobs {name: bytes}, tensors [{name, dtype, layout,
// shape, codec, stored_bytes, raw_bytes}]. Text: the same for reading. [any]
Result<std::string> inspect(const std::string& path, bool json);

}  // namespace aerie

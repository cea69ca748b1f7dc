// What is in a package, for people and for scripts.
#pragma once

#include <string>

#include "kernels/status.h"

namespace aerie {

Result<std::string> inspect(const std::string& path, bool as_json);

}  // namespace aerie

// Which machine this is.
#pragma once

#include <string>

namespace aerie::platform {

// "AMD EPYC 9654 96-Core Processor"; at least the architecture, never empty.
std::string processor_name();

}  // namespace aerie::platform

// The date and time of day here.
#pragma once

#include <ctime>

namespace aerie::platform {

std::tm local_time();

}  // namespace aerie::platform

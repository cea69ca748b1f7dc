#include "core/platform/clock.h"

namespace aerie::platform {

std::tm local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm out{};
  localtime_r(&now, &out);
  return out;
}

}  // namespace aerie::platform

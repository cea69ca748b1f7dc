#include "core/platform/clock.h"

namespace aerie::platform {

std::tm local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm out{};
  localtime_s(&out, &now);
  return out;
}

}  // namespace aerie::platform

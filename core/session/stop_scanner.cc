#include "core/session/stop_scanner.h"

#include <algorithm>

namespace aerie {

void StopScanner::set(std::vector<std::string> strings, TokenBytes bytes) {
  strings_ = std::move(strings);
  bytes_ = std::move(bytes);
  longest_ = 0;
  for (const std::string& s : strings_) longest_ = std::max(longest_, s.size());
  reset();
}

int32_t StopScanner::push(int32_t token, int32_t previous) {
  std::string_view bytes;
  if (!bytes_(token, previous, &bytes)) return -1;
  const size_t old = tail_.size();
  tail_.append(bytes);
  size_t first = std::string::npos;
  for (const std::string& s : strings_)  // one that ended before has had its say
    first = std::min(first, tail_.find(s, old >= s.size() ? old - s.size() + 1 : 0));
  const int32_t found = first == std::string::npos ? -1 : static_cast<int32_t>(tail_.size() - first);
  if (tail_.size() >= longest_) tail_.erase(0, tail_.size() - longest_ + 1);
  return found;
}

}  // namespace aerie

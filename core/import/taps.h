// Which layers a drafter may read when the checkpoint does not say.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace aerie {

// EAGLE-3's low, middle and high: inputs of layers 2, n/2, n-3, moved inside a model too shallow for
// them; taps that then coincide are one.
inline std::vector<int32_t> default_taps(int32_t layers) {
  std::vector<int32_t> taps;
  for (const int32_t t : {2, layers / 2, layers - 3}) taps.push_back(std::clamp(t, 0, layers - 1));
  std::sort(taps.begin(), taps.end());
  taps.erase(std::unique(taps.begin(), taps.end()), taps.end());
  return taps;
}

}  // namespace aerie

// IEEE half precision as it is stored in checkpoints.
#pragma once

#include <cmath>
#include <cstdint>

namespace aerie {

inline float half_to_float(uint16_t h) {
  const int sign = h >> 15, exponent = h >> 10 & 31, fraction = h & 1023;
  float v;
  if (exponent == 31)
    v = fraction ? NAN : INFINITY;
  else if (exponent == 0)
    v = std::ldexp(static_cast<float>(fraction), -24);
  else
    v = std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
  return sign ? -v : v;
}

}  // namespace aerie

// Judging a number that the host has set.
#pragma once

#include <cmath>
#include <cstdio>
#include <string>

#include "kernels/status.h"

namespace aerie {

// "cast: depth 70 is not in 1..64"; not a number is in no range.
inline Status in_range(const std::string& what, double value, double low, double high) {
  if (value >= low && value <= high) return {};
  const auto text = [](double v) {
    char digits[64];
    std::snprintf(digits, sizeof digits, std::floor(v) == v && std::abs(v) < 1e15 ? "%.0f" : "%g", v);
    return std::string(digits);
  };
  return error(Code::invalid_argument, what + " " + text(value) + " is not in " + text(low) + ".." + text(high));
}

}  // namespace aerie

// Messages of what a manifest may not say: "FIELD: what".
#pragma once

#include <cmath>
#include <cstdio>
#include <string>

#include "kernels/status.h"

namespace aerie::package {

inline Status bad_field(const std::string& field, const std::string& what) { return error(Code::bad_format, field + ": " + what); }

inline std::string shape(int64_t rows, int64_t cols) {
  return std::string("(") + std::to_string(rows) + ", " + std::to_string(cols) + ")";
}

inline Status range(const char* field, int64_t v, int64_t low, int64_t high) {
  if (v >= low && v <= high) return {};
  return bad_field(field, std::to_string(v) + " is not in [" + std::to_string(low) + ", " + std::to_string(high) + "]");
}

inline Status real(const char* field, double v, double above, double max) {
  if (std::isfinite(v) && v > above && v <= max) return {};
  char text[96];
  std::snprintf(text, sizeof text, "%g is not in (%g, %g]", v, above, max);
  return bad_field(field, text);
}

}  // namespace aerie::package

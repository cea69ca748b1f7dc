// Every E4M3 number as a weight.
#pragma once

#include <cmath>
#include <cstring>

#include "unit/kernels/ops_support.h"

namespace aerie::kernels::test {

// By the definition, not as the kernels do it.
inline float e4m3_value(uint8_t code) {
  const int exponent = code >> 3 & 15, fraction = code & 7;
  const float v = (code & 127) == 127 ? std::nanf("")
                  : exponent == 0     ? std::ldexp(static_cast<float>(fraction), -9)
                                      : std::ldexp(static_cast<float>(8 + fraction), exponent - 10);
  return code & 128 ? -v : v;
}

// fp8 weights (16, 32) with scales of 1. Row 15 has both NaNs, the others each of the other numbers.
inline uint8_t e4m3_code(int64_t row, int64_t col) {
  const auto code = static_cast<uint8_t>(row * 32 + col);
  return row == 15 ? (col % 2 ? 0xff : 0x7f) : (code & 127) == 127 ? uint8_t{0} : code;
}
inline void fill_e4m3(void* data, void* scales) {
  for (int64_t r = 0; r < 16; ++r)
    for (int64_t c = 0; c < 32; ++c) static_cast<uint8_t*>(data)[(c / 4 * 16 + r) * 4 + c % 4] = e4m3_code(r, c);
  for (int i = 0; i < 16; ++i) static_cast<float*>(scales)[i] = 1;
}
// `linear`: a Linear by those weights, of 32 rows.
template <class F>
void expect_every_e4m3(F&& linear) {
  Floats identity(32 * 32), out(32 * 16);
  for (size_t i = 0; i < 32; ++i) identity[i * 33] = 1;
  linear(identity, out);
  for (int64_t c = 0; c < 32; ++c)
    for (int64_t r = 0; r < 16; ++r) {
      const float is = out[static_cast<size_t>(c * 16 + r)];
      if (r == 15) ASSERT_TRUE(std::isnan(is));
      else ASSERT_EQ(is, e4m3_value(e4m3_code(r, c))) << "code " << static_cast<int>(e4m3_code(r, c));
    }
}

}  // namespace aerie::kernels::test

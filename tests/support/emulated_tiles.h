// The matrix unit's registers (kernels/cpu/amx_tiles.h) in plain C++, with the bits of the real ones.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/amx_tiles.h"

namespace aerie::test {

class EmulatedTiles {
 public:
  using Shapes = kernels::cpu::AmxTiles::Shapes;

  explicit EmulatedTiles(const Shapes& s) : shapes_(s) {}
  void fetch(const void*) {}
  void fetch_near(const void*) {}
  void fetch_to_write(const void*) {}
  template <int T>
  void zero() { std::memset(tiles_[T], 0, sizeof tiles_[T]); }
  template <int T>
  void load(const void* p, int64_t stride) {
    zero<T>();
    for (int r = 0; r < shapes_.rows[T]; ++r) std::memcpy(tiles_[T][r], static_cast<const char*>(p) + r * stride, shapes_.row_bytes[T]);
  }
  template <int T>
  void store(void* p, int64_t stride) {
    for (int r = 0; r < shapes_.rows[T]; ++r) std::memcpy(static_cast<char*>(p) + r * stride, tiles_[T][r], shapes_.row_bytes[T]);
  }
  template <int C, int A, int B>
  void add_int8() {
    each<C, A, B, int32_t>([this](int32_t c, int m, int n, int depth) {
      for (int k = 0; k < 4 * depth; ++k) c += element<int8_t>(A, m, k) * element<int8_t>(B, k / 4, 4 * n + k % 4);
      return c;
    });
  }
  template <int C, int A, int B>
  void add_bf16() {
    each<C, A, B, float>([this](float c, int m, int n, int depth) {
      float even = 0, odd = 0;
      for (int k = 0; k < depth; ++k) {
        even = flushed(std::fma(bf16(A, m, 2 * k), bf16(B, k, 2 * n), even));
        odd = flushed(std::fma(bf16(A, m, 2 * k + 1), bf16(B, k, 2 * n + 1), odd));
      }
      return flushed(flushed(c) + flushed(even + odd));
    });
  }

 private:
  template <class T>
  T element(int tile, int row, int i) const {
    T v;
    std::memcpy(&v, tiles_[tile][row] + i * static_cast<int>(sizeof v), sizeof v);
    return v;
  }
  static float flushed(float v) { return std::fpclassify(v) == FP_SUBNORMAL ? std::copysign(0.0f, v) : v; }
  float bf16(int tile, int row, int i) const {
    const uint32_t bits = static_cast<uint32_t>(element<uint16_t>(tile, row, i)) << 16;
    float v;
    std::memcpy(&v, &bits, sizeof v);
    return flushed(v);
  }
  // c = sum(c, row, column, k in fours or pairs) for all of C.
  template <int C, int A, int B, class T, class Sum>
  void each(const Sum& sum) {
    for (int m = 0; m < shapes_.rows[C]; ++m)
      for (int n = 0; n < shapes_.row_bytes[C] / 4; ++n) {
        const T c = sum(element<T>(C, m, n), m, n, shapes_.row_bytes[A] / 4);
        std::memcpy(tiles_[C][m] + 4 * n, &c, sizeof c);
      }
  }

  const Shapes shapes_;
  char tiles_[8][16][64] = {};
};

}  // namespace aerie::test

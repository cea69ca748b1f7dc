// Weights of 4 bits on the matrix unit: it has no nibbles, and every block of 32 has a scale of its own.
#include "hwy/highway.h"
#include "kernels/cpu/linear_float-inl.h"
#include "kernels/cpu/linear_int-inl.h"
#include "kernels/cpu/linear_matrix.h"
#include "kernels/cpu/nibbles-inl.h"

#if defined(AERIE_MATRIX_NIBBLES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef AERIE_MATRIX_NIBBLES_INL_H_
#undef AERIE_MATRIX_NIBBLES_INL_H_
#else
#define AERIE_MATRIX_NIBBLES_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace aerie::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A block of weights as two lots of 16 k, a byte for each: what the nibble stands for, of int4 less 8.
template <DType T>
HWY_INLINE void unpack_block(const uint8_t* w, uint8_t* out) {
  const hn::Repartition<uint8_t, D> d8;
  const Nibbles<T> nibbles;
  const auto put = [&](auto codes, uint8_t* to) HWY_ATTR {
    hn::Store(T == DType::int4 ? hn::Sub(codes, hn::Set(d8, 8)) : codes, d8, to);
  };
  AERIE_UNROLL for (size_t i = 0; i < 4 * kLine; i += 4 * kN) {
    const auto bytes = hn::Load(d8, w + i);
    put(nibbles.low(bytes), out + i);
    put(nibbles.high(bytes), out + 4 * kLine + i);
  }
}

// Rows (x: 32 codes each, lines apart) with a block of unpacked weights.
template <class Tiles>
HWY_INLINE void multiply_block(Tiles& tiles, const char* x, const uint8_t* codes, int32_t* products) {
  tiles.template zero<0>();
  tiles.template load<4>(x, kLine);
  tiles.template load<6>(codes, kLine);
  tiles.template add_int8<0, 4, 6>();
  tiles.template store<0>(products, kPanel * 4);
}

// row_scales, block_sums: of the block.
template <DType T>
HWY_INLINE void add_block(const int32_t* products, const BlockScale<T>* scales, const float* row_scales, const float* block_sums,
                          V (&total)[kSide][kV]) {
  const D d;
  const hn::RebindToSigned<D> di;
  AERIE_UNROLL for (size_t v = 0; v < kV; ++v) {
    const V scale = load_scales(scales + v * kN);
    AERIE_UNROLL for (int64_t m = 0; m < kSide; ++m)
      total[m][v] = hn::MulAdd(hn::ConvertTo(d, hn::Load(di, products + m * kPanel + v * kN)), hn::Mul(scale, hn::Set(d, row_scales[m])),
                               total[m][v]);
    if constexpr (T == DType::q4_1) {
      const V min = load_scales(scales + kPanel + v * kN);
      AERIE_UNROLL for (int64_t m = 0; m < kSide; ++m) total[m][v] = hn::MulAdd(hn::Set(d, block_sums[m]), min, total[m][v]);
    }
  }
}

// What goes through memory takes long to be seen by the unit, and by the processor coming back: so many blocks are multiplied
// before the first is added up.
constexpr int64_t kInFlight = 4;
// Blocks whose scales are fetched meanwhile: a line has those of one, two or four.
constexpr int64_t kScalesAhead = 64;

// Blocks of weights that are unpacked, and fetched further on, in two steps (fetching.h).
struct Unpacking {
  const uint8_t* w;
  uint8_t* codes;
  int64_t blocks;

  template <DType T, class Tiles>
  HWY_INLINE void one(Tiles& tiles, int64_t b) const {
    constexpr int64_t kAhead = 4096;
    if (b >= blocks) return;
    const uint8_t* block = w + b * kBlockBytes<T>;
    AERIE_UNROLL for (int64_t j = 0; j < kBlockBytes<T>; j += kLine) {
      tiles.fetch(block + kAhead + j);
      tiles.fetch_near(block + kNear + j);
    }
    unpack_block<T>(block, codes + b * kBlockBytes<DType::int8>);
  }
};

// A tile of rows with n blocks of a panel, unpacked: for every block an exact sum, then as tile_blocks. x: the rows' codes of the
// first block, which is an even one; row_scales, block_sums: theirs, (block, row). totals (row, lane) are added to. Meanwhile the next are
// unpacked.
template <DType T, class Tiles>
HWY_NOINLINE void matrix_tile_nibbles(Tiles& tiles, const char* x, int64_t step, const float* row_scales, const float* block_sums, int64_t height,
                                      const uint8_t* codes, const BlockScale<T>* scales, int64_t n, bool begin, float* totals,
                                      const Unpacking& next) {
  alignas(64) int32_t products[2 * kInFlight][kSide * kPanel];
  const Unpacking unpacking = next;
  const auto multiply = [&](int64_t b) HWY_ATTR {
    multiply_block(tiles, x + b / 2 * step + b % 2 * kBlock, codes + b * kBlockBytes<DType::int8>, products[b % (2 * kInFlight)]);
  };
  V total[kSide][kV];
  AERIE_UNROLL for (int64_t m = 0; m < kSide; ++m)
    AERIE_UNROLL for (size_t v = 0; v < kV; ++v) total[m][v] = begin ? hn::Zero(D()) : hn::Load(D(), totals + m * kPanel + v * kN);
  for (int64_t b = 0; b < kInFlight && b < n; ++b) multiply(b);
  for (int64_t b = 0; b < n; ++b) {
    if (b % (kLine / kBlockScaleBytes<T>) == 0) tiles.fetch_near(scales + (b + kScalesAhead) * kBlockScales<T>);
    add_block<T>(products[b % (2 * kInFlight)], scales + b * kBlockScales<T>, row_scales + b * height, block_sums + b * height, total);
    if (b + kInFlight < n) multiply(b + kInFlight);
    unpacking.one<T>(tiles, b);
  }
  AERIE_UNROLL for (int64_t m = 0; m < kSide; ++m)
    AERIE_UNROLL for (size_t v = 0; v < kV; ++v) hn::Store(total[m][v], D(), totals + m * kPanel + v * kN);
  for (int64_t b = n; b < unpacking.blocks; ++b) unpacking.one<T>(tiles, b);
}

}  // namespace HWY_NAMESPACE
}  // namespace aerie::kernels::cpu
HWY_AFTER_NAMESPACE();
#endif

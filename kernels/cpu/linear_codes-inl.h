// Rows of activations rounded to integers, as the tiles for weights of 8 and of 4 bits read them (kernels/ops.h, ActivationCodes).
#include <type_traits>

#include "hwy/highway.h"
#include "kernels/cpu/linear_float-inl.h"
#include "kernels/cpu/linear_tile.h"
#include "kernels/cpu/math-inl.h"

#if defined(AERIE_LINEAR_CODES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef AERIE_LINEAR_CODES_INL_H_
#undef AERIE_LINEAR_CODES_INL_H_
#else
#define AERIE_LINEAR_CODES_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace aerie::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using VI = hn::Vec<hn::RebindToSigned<D>>;

// Of weights, in a panel; of 4 bits, what holds a scale or a minimum, how many of these a block has, and their bytes.
template <DType T>
constexpr int64_t kBlockBytes = is_nibbles(T) ? kPanel * kBlock / 2 : kPanel * kBlock;
template <DType T>
using BlockScale = std::conditional_t<T == DType::mxfp4, uint8_t, hwy::float16_t>;
template <DType T>
constexpr int64_t kBlockScales = T == DType::q4_1 ? 2 * kPanel : kPanel;
template <DType T>
constexpr int64_t kBlockScaleBytes = kBlockScales<T> * static_cast<int64_t>(sizeof(BlockScale<T>));

HWY_INLINE V load_scales(const hwy::float16_t* at) { return hn::PromoteTo(D(), hn::Load(hn::Rebind<hwy::float16_t, D>(), at)); }
HWY_INLINE V load_scales(const uint8_t* at) {  // mxfp4_scale
  return hn::BitCast(D(), hn::ShiftLeft<23>(hn::PromoteTo(hn::RebindToUnsigned<D>(), hn::Load(hn::Rebind<uint8_t, D>(), at))));
}

// How the codes of a block of 32 activations lie: what holds one, how many of these a block takes, and how those from the j-th on
// are put there, a vector of them or one.
struct Bytes {
  using Code = int8_t;
  static constexpr ActivationCodes kCodes = kernels::kBlockCodes;
  static constexpr int64_t kPerBlock = kBlock;
  HWY_INLINE void put(VI codes, Code* block, int64_t j) const {
    const hn::Rebind<Code, D> d;
    hn::StoreU(hn::DemoteTo(d, codes), d, block + j);
  }
  void put(int32_t code, Code* block, int64_t j) const { block[j] = static_cast<Code>(code); }
};

// Of every four the second and third change places, as the weights that they meet do (linear_pairs-inl.h).
struct PairedWords {
  using Code = int16_t;
  static constexpr ActivationCodes kCodes = kWordCodes;
  static constexpr int64_t kPerBlock = kBlock;
  HWY_INLINE void put(VI codes, Code* block, int64_t j) const {
    const hn::Rebind<Code, D> d;
    hn::StoreU(hn::DemoteTo(d, hn::InterleaveLower(codes, hn::Shuffle1032(codes))), d, block + j);
  }
  void put(int32_t code, Code* block, int64_t j) const { block[(j & ~3) | (j & 1) << 1 | (j >> 1 & 1)] = static_cast<Code>(code); }
};

// A code is 256 * high + low, bytes with signs. The low ones lie so far behind the high ones.
struct HighAndLow {
  using Code = int8_t;
  static constexpr ActivationCodes kCodes = kWordCodes;
  static constexpr int64_t kPerBlock = 2 * kBlock;
  int64_t low;

  HWY_INLINE void put(VI codes, Code* block, int64_t j) const {
    const hn::RebindToSigned<D> di;
    const hn::Rebind<Code, D> d;
    const VI high = hn::ShiftRight<8>(hn::Add(codes, hn::Set(di, 128)));
    hn::StoreU(hn::DemoteTo(d, high), d, block + j);
    hn::StoreU(hn::DemoteTo(d, hn::Sub(codes, hn::ShiftLeft<8>(high))), d, block + low + j);
  }
  void put(int32_t code, Code* block, int64_t j) const {
    const int32_t high = (code + 128) >> 8;
    block[j] = static_cast<Code>(high);
    block[low + j] = static_cast<Code>(code - high * 256);
  }
};

// Of what shares a scale: the largest magnitude, as bits (those of floats without their sign rise with them, up to infinity and then
// NaNs), and, if wanted, the sum of all, in 16 lanes that are added up in one order, so that every instruction set rounds alike.
struct Magnitudes {
  int32_t top_bits;
  float sum;
};
template <bool kSum>
HWY_INLINE Magnitudes magnitudes(const float* x, int64_t k) {
  const D d;
  const hn::RebindToSigned<D> di;
  constexpr auto lanes = static_cast<int64_t>(kN);
  constexpr int32_t kMagnitude = 0x7fffffff;
  VI top[kV];
  V sum[kV];
  AERIE_UNROLL for (size_t v = 0; v < kV; ++v) top[v] = hn::Zero(di), sum[v] = hn::Zero(d);
  const auto add = [&](size_t v, V values) HWY_ATTR {
    const VI bits = hn::And(hn::BitCast(di, values), hn::Set(di, kMagnitude));
    top[v] = hn::Max(top[v], bits);
    if constexpr (kSum) sum[v] = hn::Add(sum[v], hn::BitCast(d, bits));
  };
  int64_t i = 0;
  for (; i + kPanel <= k; i += kPanel)
    AERIE_UNROLL for (size_t v = 0; v < kV; ++v) add(v, hn::LoadU(d, x + i + static_cast<int64_t>(v) * lanes));
  if (i < k) {
    HWY_ALIGN float last[kPanel] = {};
    for (int64_t j = i; j < k; ++j) last[j - i] = x[j];
    AERIE_UNROLL for (size_t v = 0; v < kV; ++v) add(v, hn::Load(d, last + v * kN));
  }
  VI most = top[0];
  AERIE_UNROLL for (size_t v = 1; v < kV; ++v) most = hn::Max(most, top[v]);
  return {hn::GetLane(hn::MaxOfLanes(di, most)), kSum ? SumLanes(sum) : 0.0f};
}

// What is kept of a block's codes and their sum: nothing; or, if the weights' codes are so much too large, what takes that away from
// their sums of products (Pairs has another); or, for weights that have a minimum, the sum of the activations themselves.
struct NoSums {
  HWY_INLINE void keep(int64_t, const void*, int32_t, float) const {}
};
struct Offsets {
  int32_t zero_point;
  int32_t* at;
  int64_t apart;  // from block to block
  HWY_INLINE void keep(int64_t b, const void*, int32_t sum, float) const { at[b * apart] = -zero_point * sum; }
};
struct ScaledSums {
  float* at;
  int64_t apart;
  HWY_INLINE void keep(int64_t b, const void*, int32_t sum, float scale) const { at[b * apart] = static_cast<float>(sum) * scale; }
};

// k activations that share a scale, nearest even, and zeros behind them in what are `blocks`, of which the first is block `at` of the
// row. The codes of block b are put at place(b). Returns the scale. What is not finite becomes zeros with a scale of NaN, so that its
// outputs are not finite either.
template <class Order, class Place, class Sums>
HWY_INLINE float quantise_part(const float* x, int64_t k, int64_t at, int64_t blocks, const Order& order, const Place& place, const Sums& of_codes) {
  const D d;
  const hn::RebindToSigned<D> di;
  constexpr auto lanes = static_cast<int64_t>(kN);
  const Magnitudes size = magnitudes<Order::kCodes.wide()>(x, k);
  const bool finite = size.top_bits < 0x7f800000;
  float top;
  __builtin_memcpy(&top, &size.top_bits, sizeof top);
  const float most = Order::kCodes.most_of(k, top, size.sum);
  // Below 1e-34 the inverse would overflow, for codes of 16 bits; nothing to speak of is lost.
  const float inverse = finite && top > 1e-34f ? most / top : 0.0f;
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: what is added to it is rounded to an integer, ties to even
  const float step = finite ? top / most : NAN;
  const V scale = hn::Set(d, inverse), round = hn::Set(d, kRound);
  for (int64_t first = 0, b = at; b < at + blocks; first += kBlock, ++b) {
    auto* block = place(b);
    VI sums = hn::Zero(di);
    int32_t total = 0;
    const int64_t here = !finite || k <= first ? 0 : k - first < kBlock ? k - first : kBlock;
    const auto add = [&](int64_t j) HWY_ATTR {
      const V sum = hn::Add(hn::Mul(hn::LoadU(d, x + first + j), scale), round);
      const VI codes = hn::Sub(hn::BitCast(di, sum), hn::BitCast(di, round));
      sums = hn::Add(sums, codes);
      order.put(codes, block, j);
    };
    int64_t j = 0;
    if (here == kBlock) {
      AERIE_UNROLL for (; j < kBlock; j += lanes) add(j);
    } else {
      for (; j + lanes <= here; j += lanes) add(j);
      for (; j < kBlock; ++j) {
        const int32_t code = j < here ? static_cast<int32_t>((x[first + j] * inverse + kRound) - kRound) : 0;
        order.put(code, block, j);
        total += code;
      }
    }
    of_codes.keep(b, block, total + hn::GetLane(hn::SumOfLanes(di, sums)), step);
  }
  return step;
}

// A row, whose scale or scales are put at scales[0], scales[n], ...
template <class Order, class Place, class Sums>
void quantise_row(const float* x, int64_t k, int64_t blocks, const Order& order, const Place& place, const Sums& of_codes, int64_t n, float* scales) {
  if constexpr (!Order::kCodes.by_block) {
    *scales = quantise_part(x, k, 0, blocks, order, place, of_codes);
  } else {
    for (int64_t b = 0; b < blocks; ++b) {
      const int64_t left = k - b * kBlock;
      scales[b * n] = quantise_part(x + b * kBlock, left < kBlock ? left : kBlock, b, 1, order, place, of_codes);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace aerie::kernels::cpu
HWY_AFTER_NAMESPACE();
#endif

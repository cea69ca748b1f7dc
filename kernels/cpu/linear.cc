// Linear: a few rows of activations against packed weights, one pass over the weights.
//
// Order of every output element, whatever M, tile, task or thread: one FMA chain over k ascending
// (f32, bf16); for int8/int4 an exact integer sum for each block of 32, then one FMA chain over
// blocks, times the row's scale. Then + bias, then + residual.
#include "kernels/cpu/hwy_targets.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/cpu/op_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/linear.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#ifndef AERIE_LINEAR_SHARED
#define AERIE_LINEAR_SHARED
namespace aerie::kernels::cpu {
// Activations of one row as integers, zero-padded to whole blocks.
struct QuantisedRows {
  const int8_t* q;        // (M, kp)
  const int32_t* sums;    // (M, kp / 32): sum of the block's q
  const float* scale;     // (M)
};
}  // namespace aerie::kernels::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace aerie::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<float, kPanel>;
using V = hn::Vec<D>;
constexpr size_t kN = hn::MaxLanes(D());
constexpr size_t kV = kPanel / kN;  // vectors in a panel
constexpr int kMaxTile = kV == 1 ? 8 : kV == 2 ? 6 : 3;  // rows
// Panels at once: enough independent chains to hide the FMA latency, few enough registers.
constexpr int panels_for(int m) {
  return kV == 1 ? (m <= 2 ? 8 : m <= 4 ? 4 : 2) : kV == 2 ? (m == 1 ? 4 : m <= 3 ? 2 : 1) : 1;
}
constexpr int64_t kChunkBytes = 192 << 10;
constexpr int panels_for_int(int m) { return kV == 1 ? (m <= 4 ? 4 : 2) : 1; }

struct Tile {
  const Linear* op;
  int64_t row, panel;
  const QuantisedRows* quantised;
};

HWY_INLINE void finish(const Linear& op, int64_t row, int64_t panel, size_t v, V sum) {
  const D d;
  const int64_t n = panel * kPanel + static_cast<int64_t>(v * kN), left = op.w.rows - n;
  if (left <= 0) return;
  float* out = static_cast<float*>(op.out.data) + row * op.out.stride + n;
  const float* bias = op.bias ? static_cast<const float*>(op.bias.data) + n : nullptr;
  const float* residual = op.residual ? static_cast<const float*>(op.residual.data) + row * op.residual.stride + n : nullptr;
  if (left >= static_cast<int64_t>(kN)) {
    if (bias) sum = hn::Add(hn::LoadU(d, bias), sum);
    if (residual) sum = hn::Add(hn::LoadU(d, residual), sum);
    hn::StoreU(sum, d, out);
    return;
  }
  HWY_ALIGN float lanes[kPanel];
  hn::Store(sum, d, lanes);
  for (int64_t i = 0; i < left; ++i) {
    float s = lanes[i];
    if (bias) s = bias[i] + s;
    if (residual) s = residual[i] + s;
    out[i] = s;
  }
}

template <int M, int P>
HWY_NOINLINE void tile_f32(const Tile& t) {
  const D d;
  const Linear& op = *t.op;
  const int64_t k = op.w.cols;
  const float* w = static_cast<const float*>(op.w.data) + t.panel * kPanel * k;
  const float* x = static_cast<const float*>(op.x.data) + t.row * op.x.stride;
  V acc[M][P * kV];
  for (auto& row : acc)
    for (auto& a : row) a = hn::Zero(d);
  for (int64_t i = 0; i < k; ++i) {
    V b[P * kV];
    for (size_t p = 0; p < P; ++p)
      for (size_t v = 0; v < kV; ++v) b[p * kV + v] = hn::Load(d, w + static_cast<int64_t>(p) * kPanel * k + i * kPanel + v * kN);
    for (int m = 0; m < M; ++m) {
      const V a = hn::Set(d, x[m * op.x.stride + i]);
      for (size_t j = 0; j < P * kV; ++j) acc[m][j] = hn::MulAdd(b[j], a, acc[m][j]);
    }
  }
  for (int m = 0; m < M; ++m)
    for (size_t j = 0; j < P * kV; ++j) finish(op, t.row + m, t.panel + static_cast<int64_t>(j / kV), j % kV, acc[m][j]);
}

template <int M, int P>
HWY_NOINLINE void tile_bf16(const Tile& t) {
  const D d;
  const hn::Repartition<uint16_t, D> d16;
  const hn::RebindToUnsigned<D> d32;
  const Linear& op = *t.op;
  const int64_t k = op.w.cols, kp = k_padded(DType::bf16, k);
  const uint16_t* w = static_cast<const uint16_t*>(op.w.data) + t.panel * kPanel * kp;
  const float* x = static_cast<const float*>(op.x.data) + t.row * op.x.stride;
  V acc[M][P * kV];
  for (auto& row : acc)
    for (auto& a : row) a = hn::Zero(d);
  const auto high = hn::Set(d32, 0xffff0000u);
  for (int64_t i = 0; i < kp; i += 2) {
    V b0[P * kV], b1[P * kV];
    for (size_t p = 0; p < P; ++p)
      for (size_t v = 0; v < kV; ++v) {
        const auto pair = hn::BitCast(d32, hn::Load(d16, w + static_cast<int64_t>(p) * kPanel * kp + i * kPanel + v * kN * 2));
        b0[p * kV + v] = hn::BitCast(d, hn::ShiftLeft<16>(pair));
        b1[p * kV + v] = hn::BitCast(d, hn::And(pair, high));
      }
    for (int m = 0; m < M; ++m) {
      const float* row = x + m * op.x.stride + i;
      const V a0 = hn::Set(d, row[0]);
      for (size_t j = 0; j < P * kV; ++j) acc[m][j] = hn::MulAdd(b0[j], a0, acc[m][j]);
      if (i + 1 < k) {
        const V a1 = hn::Set(d, row[1]);
        for (size_t j = 0; j < P * kV; ++j) acc[m][j] = hn::MulAdd(b1[j], a1, acc[m][j]);
      }
    }
  }
  for (int m = 0; m < M; ++m)
    for (size_t j = 0; j < P * kV; ++j) finish(op, t.row + m, t.panel + static_cast<int64_t>(j / kV), j % kV, acc[m][j]);
}

// ---- int8 and int4: exact block sums -------------------------------------------------------------

#if HWY_TARGET == HWY_AVX3_DL
using Sums = __m512i;
HWY_INLINE Sums start_sums(int32_t offset) { return _mm512_set1_epi32(offset); }
// w: 64 unsigned bytes (16 lanes of 4 k), x: the 4 activations, broadcast by the load itself. (Highway
// 1.0.3 detects VNNI for this target but does not pass -mavx512vnni on, hence no intrinsic.)
HWY_INLINE Sums add_group(Sums s, __m512i w, const int8_t* x) {
  asm("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(s) : "v"(w), "m"(*reinterpret_cast<const int8_t(*)[4]>(x)));
  return s;
}
template <bool kInt4>
struct Block {
  __m512i w[8];  // unsigned: int8 + 128, or the nibble
  HWY_INLINE explicit Block(const uint8_t* p) {
    if constexpr (kInt4) {
      const __m512i low = _mm512_set1_epi8(15);
      for (int j = 0; j < 4; ++j) {
        const __m512i b = _mm512_loadu_si512(p + 64 * j);
        w[j] = _mm512_and_si512(b, low);
        w[j + 4] = _mm512_and_si512(_mm512_srli_epi16(b, 4), low);
      }
    } else {
      const __m512i flip = _mm512_set1_epi8(static_cast<char>(0x80));
      for (int j = 0; j < 8; ++j) w[j] = _mm512_xor_si512(_mm512_loadu_si512(p + 64 * j), flip);
    }
  }
  HWY_INLINE void dot(const int8_t* x, int32_t sum, V* out) const {
    // Integer sums are exact in any order: two chains hide the latency of the dots.
    Sums a = start_sums(-(kInt4 ? 8 : 128) * sum), b = _mm512_setzero_si512();
    for (int j = 0; j < 8; j += 2) {
      a = add_group(a, w[j], x + 4 * j);
      b = add_group(b, w[j + 1], x + 4 * j + 4);
    }
    out[0] = V{_mm512_cvtepi32_ps(_mm512_add_epi32(a, b))};
  }
};
#elif HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
// maddubs wants one unsigned side: |w| with the sign moved to x. 128 * 127 * 2 fits int16: exact.
template <bool kInt4>
struct Block {
  __m256i w[16];  // [group][half of the lanes], signed
  HWY_INLINE explicit Block(const uint8_t* p) {
    if constexpr (kInt4) {
      const __m256i low = _mm256_set1_epi8(15), eight = _mm256_set1_epi8(8);
      for (int j = 0; j < 8; ++j) {
        const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32 * j));
        w[j] = _mm256_sub_epi8(_mm256_and_si256(b, low), eight);
        w[j + 8] = _mm256_sub_epi8(_mm256_and_si256(_mm256_srli_epi16(b, 4), low), eight);
      }
    } else {
      for (int j = 0; j < 16; ++j) w[j] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32 * j));
    }
  }
  HWY_INLINE void dot(const int8_t* x, int32_t, V* out) const {
    const __m256i ones = _mm256_set1_epi16(1);
    __m256i s[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    for (int j = 0; j < 8; ++j) {
      int32_t four;
      __builtin_memcpy(&four, x + 4 * j, 4);
      const __m256i a = _mm256_set1_epi32(four);
      for (int half = 0; half < 2; ++half) {
        const __m256i b = w[2 * j + half];
        const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(b), _mm256_sign_epi8(a, b));
        s[half] = _mm256_add_epi32(s[half], _mm256_madd_epi16(pairs, ones));
      }
    }
    HWY_ALIGN int32_t lanes[kPanel];
    _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), s[0]);
    _mm256_store_si256(reinterpret_cast<__m256i*>(lanes + 8), s[1]);
    const D d;
    const hn::RebindToSigned<D> di;
    for (size_t v = 0; v < kV; ++v) out[v] = hn::ConvertTo(d, hn::Load(di, lanes + v * kN));
  }
};
#elif HWY_TARGET == HWY_NEON && HWY_ARCH_ARM_A64
// Sums of 4 lanes over groups of 4 k. Highway 1.0.3 has no target with the dot product: where the compiler was
// told of it (-mcpu=native, every Apple processor) it is used, else products are widened.
struct Sums {
#if defined(__ARM_FEATURE_DOTPROD)
  int32x4_t s = vdupq_n_s32(0);
  HWY_INLINE void add(int8x16_t w0, int8x16_t x0, int8x16_t w1, int8x16_t x1) { s = vdotq_s32(vdotq_s32(s, w0, x0), w1, x1); }
  HWY_INLINE int32x4_t total() const { return s; }
#else
  int32x4_t low = vdupq_n_s32(0), high = vdupq_n_s32(0);  // two sums a lane
  HWY_INLINE void add(int8x16_t w0, int8x16_t x0, int8x16_t w1, int8x16_t x1) {  // 128 * 127 * 2 fits int16
    low = vpadalq_s16(low, vmlal_s8(vmull_s8(vget_low_s8(w0), vget_low_s8(x0)), vget_low_s8(w1), vget_low_s8(x1)));
    high = vpadalq_s16(high, vmlal_high_s8(vmull_high_s8(w0, x0), w1, x1));
  }
  HWY_INLINE int32x4_t total() const { return vpaddq_s32(low, high); }
#endif
};
template <bool kInt4>
struct Block {
  const uint8_t* p;
  HWY_INLINE explicit Block(const uint8_t* bytes) : p(bytes) {}
  HWY_INLINE void dot(const int8_t* x, int32_t sum, V* out) const {
    int8x16_t a[8];  // 4 activations, in every lane
    for (int j = 0; j < 8; ++j) {
      int32_t four;
      __builtin_memcpy(&four, x + 4 * j, 4);
      a[j] = vreinterpretq_s8_s32(vdupq_n_s32(four));
    }
    for (size_t v = 0; v < kV; ++v) {
      Sums s;
      for (int j = 0; j < 4; ++j) {
        const uint8x16_t b = vld1q_u8(p + 64 * j + 16 * v);
        if constexpr (kInt4) {
          const uint8x16_t low = vandq_u8(b, vdupq_n_u8(15)), high = vshrq_n_u8(b, 4);  // 8 too much each
          s.add(vreinterpretq_s8_u8(low), a[j], vreinterpretq_s8_u8(high), a[j + 4]);
        } else {
          s.add(vreinterpretq_s8_u8(b), a[j], vreinterpretq_s8_u8(vld1q_u8(p + 64 * (j + 4) + 16 * v)), a[j + 4]);
        }
      }
      out[v] = V{vcvtq_f32_s32(vaddq_s32(s.total(), vdupq_n_s32(kInt4 ? -8 * sum : 0)))};
    }
  }
};
#else
template <bool kInt4>
struct Block {
  const uint8_t* p;
  HWY_INLINE explicit Block(const uint8_t* bytes) : p(bytes) {}
  HWY_INLINE void dot(const int8_t* x, int32_t, V* out) const {
    HWY_ALIGN int32_t lanes[kPanel] = {};
    for (int j = 0; j < (kInt4 ? 4 : 8); ++j)
      for (int l = 0; l < kPanel; ++l)
        for (int i = 0; i < 4; ++i) {
          const uint8_t b = p[64 * j + 4 * l + i];
          if constexpr (kInt4)
            lanes[l] += x[4 * j + i] * (static_cast<int32_t>(b & 15) - 8) + x[16 + 4 * j + i] * (static_cast<int32_t>(b >> 4) - 8);
          else lanes[l] += x[4 * j + i] * static_cast<int32_t>(static_cast<int8_t>(b));
        }
    const D d;
    const hn::RebindToSigned<D> di;
    for (size_t v = 0; v < kV; ++v) out[v] = hn::ConvertTo(d, hn::Load(di, lanes + v * kN));
  }
};
#endif

template <bool kInt4, int M, int P>
HWY_NOINLINE void tile_int(const Tile& t) {
  const D d;
  const hn::Rebind<hwy::float16_t, D> d16;
  const Linear& op = *t.op;
  const QuantisedRows& q = *t.quantised;
  const int64_t kp = k_padded(op.w.dtype, op.w.cols), blocks = kp / kBlock;
  constexpr int64_t kBytes = kInt4 ? kPanel * kBlock / 2 : kPanel * kBlock;
  const uint8_t* w = static_cast<const uint8_t*>(op.w.data) + t.panel * blocks * kBytes;
  const auto* scales = static_cast<const hwy::float16_t*>(op.w.scales) + t.panel * blocks * kPanel;
  V acc[M][P * kV];
  for (auto& row : acc)
    for (auto& a : row) a = hn::Zero(d);
  for (int64_t b = 0; b < blocks; ++b)
    for (size_t p = 0; p < P; ++p) {
      const int64_t at = static_cast<int64_t>(p) * blocks + b;
      const Block<kInt4> block(w + at * kBytes);
      V scale[kV];
      for (size_t v = 0; v < kV; ++v) scale[v] = hn::PromoteTo(d, hn::Load(d16, scales + at * kPanel + v * kN));
      for (int m = 0; m < M; ++m) {
        V sum[kV];
        block.dot(q.q + (t.row + m) * kp + b * kBlock, q.sums[(t.row + m) * blocks + b], sum);
        for (size_t v = 0; v < kV; ++v) acc[m][p * kV + v] = hn::MulAdd(sum[v], scale[v], acc[m][p * kV + v]);
      }
    }
  for (int m = 0; m < M; ++m) {
    const V row_scale = hn::Set(d, q.scale[t.row + m]);
    for (size_t j = 0; j < P * kV; ++j)
      finish(op, t.row + m, t.panel + static_cast<int64_t>(j / kV), j % kV, hn::Mul(acc[m][j], row_scale));
  }
}

template <int M, int P>
HWY_INLINE void tile(const Tile& t) {
  switch (t.op->w.dtype) {
    case DType::f32: tile_f32<M, P>(t); break;
    case DType::bf16: tile_bf16<M, P>(t); break;
    case DType::int8: tile_int<false, M, P>(t); break;
    case DType::int4: tile_int<true, M, P>(t); break;
    case DType::i32: break;
  }
}

// All rows against panels [t.panel, last), P at a time, then the rest in narrower tiles.
template <int M, int P>
void sweep(Tile t, int64_t last) {
  for (; t.panel + P <= last; t.panel += P) tile<M, P>(t);
  if constexpr (P > 1) {
    if (t.panel < last) sweep<M, P / 2>(t, last);
  }
}

template <int M>
void panels(const Tile& t, int64_t last, bool integer) {
  if (integer) sweep<M, panels_for_int(M)>(t, last);
  else sweep<M, panels_for(M)>(t, last);
}

void rows_of(int m, const Tile& t, int64_t last, bool integer) {
  switch (m) {
    case 1: return panels<1>(t, last, integer);
    case 2: return panels<2>(t, last, integer);
    case 3: return panels<3>(t, last, integer);
    case 4: if constexpr (kMaxTile >= 4) return panels<4>(t, last, integer); break;
    case 5: if constexpr (kMaxTile >= 5) return panels<5>(t, last, integer); break;
    case 6: if constexpr (kMaxTile >= 6) return panels<6>(t, last, integer); break;
    case 7: if constexpr (kMaxTile >= 7) return panels<7>(t, last, integer); break;
    case 8: if constexpr (kMaxTile >= 8) return panels<8>(t, last, integer); break;
    default: break;
  }
}

void linear_panels(const Linear& op, int64_t first, int64_t last, const QuantisedRows* quantised) {
  const auto m = op.x.rows;
  const int64_t tiles = (m + kMaxTile - 1) / kMaxTile;
  // With several row tiles, a chunk of weights that stays in the second-level cache meets all of them
  // before the next one is read.
  const int64_t bytes = data_bytes(op.w.dtype, Layout::panel16, kPanel, std::max<int64_t>(op.w.cols, 1));
  const int64_t fit = kChunkBytes / bytes;
  const int64_t chunk = tiles <= 1 ? last - first : fit >= 8 ? fit / 8 * 8 : fit >= 4 ? 4 : 2;
  for (int64_t at = first; at < last; at += chunk) {
    const int64_t end = std::min(last, at + chunk);
    int64_t row = 0;
    for (int64_t i = 0; i < tiles; ++i) {  // balanced: 9 rows are 5 + 4, not 8 + 1
      const int64_t n = (m - row + (tiles - i) - 1) / (tiles - i);
      rows_of(static_cast<int>(n), Tile{&op, row, at, quantised}, end, quantised != nullptr);
      row += n;
    }
  }
}

// q (kp, zero-padded) and the sums of its blocks; returns the row's scale. A row that is not finite
// becomes zeros with a scale of NaN, so that its outputs are not finite either.
float quantise_row(const float* x, int64_t k, int64_t kp, int8_t* q, int32_t* sums) {
  const D d;
  const hn::RebindToSigned<D> di;
  const hn::Rebind<int8_t, D> d8;
  const auto n = static_cast<int64_t>(kN);
  V top = hn::Zero(d), bad = hn::Zero(d);  // x * 0 is 0, or NaN when x is not finite
  int64_t i = 0;
  for (; i + n <= k; i += n) {
    const V v = hn::LoadU(d, x + i);
    top = hn::Max(top, hn::Abs(v));
    bad = hn::Add(bad, hn::Mul(v, hn::Zero(d)));
  }
  HWY_ALIGN float t[kPanel], z[kPanel];
  hn::Store(top, d, t);
  hn::Store(bad, d, z);
  float most = 0, check = 0;
  for (size_t l = 0; l < kN; ++l) {
    most = std::max(most, t[l]);
    check += z[l];
  }
  for (; i < k; ++i) {
    most = std::max(most, std::fabs(x[i]));
    check += x[i] * 0.0f;
  }
  const bool finite = check == 0.0f;
  // Below 1e-36 the inverse would overflow; nothing to speak of is lost.
  const float inverse = finite && most > 1e-36f ? 127.0f / most : 0.0f;
  const V scale = hn::Set(d, inverse);
  i = 0;
  for (; finite && i + n <= k; i += n)  // NearestInt rounds ties to even
    hn::StoreU(hn::DemoteTo(d8, hn::NearestInt(hn::Mul(hn::LoadU(d, x + i), scale))), d8, q + i);
  for (; i < kp; ++i) q[i] = finite && i < k ? static_cast<int8_t>((x[i] * inverse + 12582912.0f) - 12582912.0f) : 0;
  const hn::Rebind<int8_t, decltype(di)> db;
  for (int64_t b = 0; b < kp / kBlock; ++b) {
    auto sum = hn::Zero(di);
    for (int64_t j = 0; j < kBlock; j += n) sum = hn::Add(sum, hn::PromoteTo(di, hn::LoadU(db, q + b * kBlock + j)));
    HWY_ALIGN int32_t lanes[kPanel];
    hn::Store(sum, di, lanes);
    int32_t total = 0;
    for (size_t l = 0; l < kN; ++l) total += lanes[l];
    sums[b] = total;
  }
  return finite ? most / 127.0f : NAN;
}

}  // namespace HWY_NAMESPACE
}  // namespace aerie::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace aerie::kernels::cpu {

HWY_EXPORT(linear_panels);
HWY_EXPORT(quantise_row);

namespace {

// One scale a row, nearest even; the row's own values decide, never its neighbours'.
QuantisedRows quantise(const Linear& op, Scratch& scratch) {
  const int64_t m = op.x.rows, k = op.w.cols, kp = k_padded(op.w.dtype, k), blocks = kp / kBlock;
  const auto round64 = [](int64_t n) { return static_cast<size_t>(round_up(n, 64)); };
  const size_t q_bytes = round64(m * kp), sum_bytes = round64(m * blocks * 4);
  auto* memory = static_cast<char*>(scratch.kept());  // by an earlier task of this op on this thread
  const bool kept = memory != nullptr;
  if (!kept) memory = static_cast<char*>(scratch.get(q_bytes + sum_bytes + round64(m * 4)));
  auto* q = reinterpret_cast<int8_t*>(memory);
  auto* sums = reinterpret_cast<int32_t*>(memory + q_bytes);
  auto* scale = reinterpret_cast<float*>(memory + q_bytes + sum_bytes);
  for (int64_t r = 0; r < m && !kept; ++r) {
    const float* x = static_cast<const float*>(op.x.data) + r * op.x.stride;
    scale[r] = HWY_DYNAMIC_DISPATCH(quantise_row)(x, k, kp, q + r * kp, sums + r * blocks);
  }
  scratch.keep();
  return {q, sums, scale};
}

int64_t panels_per_task(const Linear& op, int threads) {
  const int64_t panels = round_up(op.w.rows, kPanel) / kPanel;
  const int64_t work = kPanel * op.w.cols * std::max<int64_t>(op.x.rows, 1);  // multiply-adds a panel
  // Long enough to be worth a hand-over between cores (some microseconds), short enough for a frame budget.
  const int64_t least = std::max<int64_t>(1, 400000 / std::max<int64_t>(work, 1));
  const int64_t most = std::max<int64_t>(1, 2000000 / std::max<int64_t>(work, 1));
  const int64_t share = threads > 1 ? (panels + threads * 4 - 1) / (threads * 4) : panels;
  // Whole groups of panels, so that the wide tiles are used.
  const int64_t group = op.x.rows <= 2 ? 8 : op.x.rows <= 4 ? 4 : 2;
  return std::min(round_up(std::clamp(share, least, std::max(least, most)), group), panels);
}

}  // namespace

int32_t tasks(const Linear& op, int threads) {
  const int64_t panels = round_up(op.w.rows, kPanel) / kPanel, per = panels_per_task(op, threads);
  return static_cast<int32_t>((panels + per - 1) / per);
}

void run(const Linear& op, int32_t task, int threads, Scratch& scratch) {
  const int64_t panels = round_up(op.w.rows, kPanel) / kPanel, per = panels_per_task(op, threads);
  const int64_t first = task * per, last = std::min(panels, first + per);
  if (op.w.dtype == DType::int8 || op.w.dtype == DType::int4) {
    const QuantisedRows q = quantise(op, scratch);
    HWY_DYNAMIC_DISPATCH(linear_panels)(op, first, last, &q);
  } else {
    HWY_DYNAMIC_DISPATCH(linear_panels)(op, first, last, nullptr);
  }
}

}  // namespace aerie::kernels::cpu
#endif

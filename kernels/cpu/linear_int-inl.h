// Tiles of Linear for int8 and int4 weights: an exact integer sum for each block of 32, then one FMA chain
// over the blocks ascending, times the row's scale.
#include "hwy/highway.h"
#include "kernels/cpu/linear_float-inl.h"
#include "kernels/cpu/linear_tile.h"

#if defined(AERIE_LINEAR_INT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef AERIE_LINEAR_INT_INL_H_
#undef AERIE_LINEAR_INT_INL_H_
#else
#define AERIE_LINEAR_INT_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace aerie::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <bool kInt4>
constexpr int64_t kBlockBytes = kInt4 ? kPanel * kBlock / 2 : kPanel * kBlock;

// block_sums: sums over one block, of M rows (x: [row][32], offsets: [row]) with P panels whose blocks are at
// w + p * size; as floats, exactly (|sum| < 2^24).
#if HWY_TARGET == HWY_AVX3_DL
// (Highway 1.0.3 detects VNNI for this target but does not pass -mavx512vnni on, hence no intrinsic.)
HWY_INLINE void add_dots(__m512i& sum, __m512i w, __m512i x) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(w), "v"(x));
}
HWY_INLINE void add_dots(__m512i& sum, __m512i w, const int8_t* x) {  // the load broadcasts
  asm("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(w), "m"(*reinterpret_cast<const int8_t(*)[4]>(x)));
}
template <int M, int P>
HWY_INLINE void add_group(const __m512i (&codes)[P], const int8_t* x, __m512i (&sum)[M][P]) {
  AERIE_UNROLL for (int m = 0; m < M; ++m) {
    if constexpr (P == 1) {
      add_dots(sum[m][0], codes[0], x + m * kBlock);
    } else {
      int32_t four;
      __builtin_memcpy(&four, x + m * kBlock, 4);
      const __m512i b = _mm512_set1_epi32(four);
      AERIE_UNROLL for (int p = 0; p < P; ++p) add_dots(sum[m][p], codes[p], b);
    }
  }
}

// The dots want unsigned weights: int8 + 128, or the nibble. The offsets take away what that adds.
template <bool kInt4, int M, int P>
HWY_INLINE void block_sums(const uint8_t* w, int64_t size, const int8_t* x, const int32_t* offsets, int64_t ahead,
                           int64_t rate, V (&out)[M][P]) {
  __m512i sum[M][P];
  AERIE_UNROLL for (int m = 0; m < M; ++m)
    AERIE_UNROLL for (int p = 0; p < P; ++p) sum[m][p] = _mm512_set1_epi32(offsets[m]);
  const __m512i mask = _mm512_set1_epi8(static_cast<char>(kInt4 ? 15 : 0x80));
  AERIE_UNROLL for (int j = 0; j < (kInt4 ? 4 : 8); ++j) {
    __m512i bytes[P], codes[P];
    AERIE_UNROLL for (int p = 0; p < P; ++p) {
      AERIE_PREFETCH(w + p * size + ahead + j * rate);
      bytes[p] = _mm512_loadu_si512(w + p * size + kLine * j);
      codes[p] = kInt4 ? _mm512_and_si512(bytes[p], mask) : _mm512_xor_si512(bytes[p], mask);
    }
    add_group<M, P>(codes, x + 4 * j, sum);
    if constexpr (kInt4) {
      AERIE_UNROLL for (int p = 0; p < P; ++p) codes[p] = _mm512_and_si512(_mm512_srli_epi16(bytes[p], 4), mask);
      add_group<M, P>(codes, x + 16 + 4 * j, sum);
    }
  }
  AERIE_UNROLL for (int m = 0; m < M; ++m)
    AERIE_UNROLL for (int p = 0; p < P; ++p) out[m][p] = V{_mm512_cvtepi32_ps(sum[m][p])};
}
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
  HWY_INLINE void dot(const int8_t* x, int32_t offset, V* out) const {
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
      out[v] = V{vcvtq_f32_s32(vaddq_s32(s.total(), vdupq_n_s32(kInt4 ? offset : 0)))};
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

#if HWY_TARGET != HWY_AVX3_DL
template <bool kInt4, int M, int P>
HWY_INLINE void block_sums(const uint8_t* w, int64_t size, const int8_t* x, const int32_t* offsets, int64_t ahead,
                           int64_t rate, V (&out)[M][P * kV]) {
  AERIE_UNROLL for (int p = 0; p < P; ++p) {
    for (int64_t j = 0; j < kBlockBytes<kInt4> / kLine; ++j) AERIE_PREFETCH(w + p * size + ahead + j * rate);
    const Block<kInt4> block(w + p * size);
    AERIE_UNROLL for (int m = 0; m < M; ++m) block.dot(x + m * kBlock, offsets[m], &out[m][static_cast<size_t>(p) * kV]);
  }
}
#endif

template <bool kInt4, int M, int P>
HWY_NOINLINE void tile_int(const LinearTile& t) {
  const D d;
  const hn::Rebind<hwy::float16_t, D> d16;
  const int64_t blocks = k_padded(t.op->w.dtype, t.op->w.cols) / kBlock, size = blocks * kBlockBytes<kInt4>;
  const uint8_t* w = static_cast<const uint8_t*>(t.op->w.data) + t.panel * size;
  const auto* scales = static_cast<const hwy::float16_t*>(t.op->w.scales) + t.panel * blocks * kPanel;
  const int8_t* x = t.x->q + t.packed * blocks * kBlock;
  const int32_t* offsets = t.x->offsets + t.packed * blocks;
  V acc[M][P * kV];
  AERIE_UNROLL for (auto& row : acc)
    AERIE_UNROLL for (auto& a : row) a = hn::Zero(d);
  int64_t ahead = t.ahead.offset;
  const int64_t turn = t.ahead.turn(size) / (kBlockBytes<kInt4> / kLine);
  for (int64_t b = 0; b < blocks; ++b) {
    if (t.ahead.follow && b == turn) ahead += t.ahead.jump(size, P);
    V sum[M][P * kV];
    block_sums<kInt4, M, P>(w, size, x, offsets, ahead, t.ahead.rate, sum);
    AERIE_UNROLL for (size_t p = 0; p < P; ++p) {
      const hwy::float16_t* of_panel = scales + static_cast<int64_t>(p) * blocks * kPanel;
      AERIE_PREFETCH(of_panel + 8 * kPanel);
      AERIE_UNROLL for (size_t v = 0; v < kV; ++v) {
        const V scale = hn::PromoteTo(d, hn::Load(d16, of_panel + v * kN));
        AERIE_UNROLL for (int m = 0; m < M; ++m)
          acc[m][p * kV + v] = hn::MulAdd(sum[m][p * kV + v], scale, acc[m][p * kV + v]);
      }
    }
    // The prefetches of a block are relative to it; at the full rate they move with it.
    ahead += kBlockBytes<kInt4> / kLine * (t.ahead.rate - kLine);
    w += kBlockBytes<kInt4>;
    scales += kPanel;
    x += M * kBlock;
    offsets += M;
  }
  AERIE_UNROLL for (int m = 0; m < M; ++m) {
    const V row_scale = hn::Set(d, m < t.rows ? t.x->scale[t.row + m] : 0.0f);
    AERIE_UNROLL for (size_t j = 0; j < P * kV; ++j) acc[m][j] = hn::Mul(acc[m][j], row_scale);
  }
  finish_tile<M, P>(t, acc);
}

// Row m of a tile of n rows: one scale, nearest even, zeros behind k. q and offsets are the tile's. Returns the
// scale. A row that is not finite becomes zeros with a scale of NaN, so that its outputs are not finite either.
float quantise_row(const float* x, int64_t k, int32_t zero_point, int64_t m, int64_t n, int8_t* q, int32_t* offsets) {
  const D d;
  const hn::RebindToSigned<D> di;
  const hn::Rebind<int8_t, D> d8;
  const auto lanes = static_cast<int64_t>(kN);
  V top = hn::Zero(d), bad = hn::Zero(d);  // x * 0 is 0, or NaN when x is not finite
  int64_t i = 0;
  for (; i + lanes <= k; i += lanes) {
    const V v = hn::LoadU(d, x + i);
    top = hn::Max(top, hn::Abs(v));
    bad = hn::Add(bad, hn::Mul(v, hn::Zero(d)));
  }
  HWY_ALIGN float t[kPanel], z[kPanel];
  hn::Store(top, d, t);
  hn::Store(bad, d, z);
  float most = 0, check = 0;
  for (size_t l = 0; l < kN; ++l) {
    most = t[l] > most ? t[l] : most;
    check += z[l];
  }
  for (; i < k; ++i) {
    most = std::fabs(x[i]) > most ? std::fabs(x[i]) : most;
    check += x[i] * 0.0f;
  }
  const bool finite = check == 0.0f;
  // Below 1e-36 the inverse would overflow; nothing to speak of is lost.
  const float inverse = finite && most > 1e-36f ? 127.0f / most : 0.0f;
  const V scale = hn::Set(d, inverse);
  for (int64_t first = 0, b = 0; first < k; first += kBlock, ++b) {
    int8_t* block = q + (b * n + m) * kBlock;
    const int64_t here = finite ? (k - first < kBlock ? k - first : kBlock) : 0;
    int64_t j = 0;
    auto sums = hn::Zero(di);
    for (; j + lanes <= here; j += lanes) {  // NearestInt rounds ties to even
      const auto codes = hn::NearestInt(hn::Mul(hn::LoadU(d, x + first + j), scale));
      sums = hn::Add(sums, codes);
      hn::StoreU(hn::DemoteTo(d8, codes), d8, block + j);
    }
    int32_t total = hn::GetLane(hn::SumOfLanes(di, sums));
    for (; j < kBlock; ++j) {
      block[j] = j < here ? static_cast<int8_t>((x[first + j] * inverse + 12582912.0f) - 12582912.0f) : 0;
      total += block[j];
    }
    offsets[b * n + m] = -zero_point * total;
  }
  return finite ? most / 127.0f : NAN;
}

// What a tile wider than its rows reads behind them.
inline void zero_row(int64_t blocks, int64_t m, int64_t n, int8_t* q, int32_t* offsets) {
  for (int64_t b = 0; b < blocks; ++b) {
    for (int64_t j = 0; j < kBlock; ++j) q[(b * n + m) * kBlock + j] = 0;
    offsets[b * n + m] = 0;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace aerie::kernels::cpu
HWY_AFTER_NAMESPACE();
#endif

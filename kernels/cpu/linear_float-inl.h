// Tiles of Linear for f32, bf16 and fp8 weights: one FMA chain over k ascending for each output.
#include "hwy/highway.h"
#include "kernels/cpu/linear_tile.h"
#include "kernels/e4m3.h"

#if defined(AERIE_LINEAR_FLOAT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef AERIE_LINEAR_FLOAT_INL_H_
#undef AERIE_LINEAR_FLOAT_INL_H_
#else
#define AERIE_LINEAR_FLOAT_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace aerie::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<float, kPanel>;
using V = hn::Vec<D>;
constexpr size_t kN = hn::MaxLanes(D());
constexpr size_t kV = kPanel / kN;  // vectors in a panel

// GCC loads far ahead until the sums no longer fit in the registers. Where there are sixteen of these, sums stay where they are
// said to, in that order, and loops are not unrolled more than is said.
#undef AERIE_KEEP
#undef AERIE_ROLLED
#undef AERIE_PAIRWISE
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_SSE4
#define AERIE_KEEP(v) asm volatile("" : "+x"((v).raw))
#define AERIE_ROLLED _Pragma("GCC unroll 1")
#define AERIE_PAIRWISE _Pragma("GCC unroll 2")
#else
#define AERIE_KEEP(v)
#define AERIE_ROLLED
#define AERIE_PAIRWISE
#endif

// sums: (row of the tile, panel, lane). + bias, + residual, to the output; what lies behind the matrix's last row
// or the tile's own rows is not written. One function for all tiles: their code is large enough.
inline HWY_NOINLINE void finish(const LinearTile& t, int64_t panels, const float* sums) {
  const D d;
  const Linear& op = *t.op;
  const int64_t first = t.panel * kPanel, width = panels * kPanel;
  const int64_t n = op.w.rows - first < width ? op.w.rows - first : width;
  const float* bias = op.bias ? static_cast<const float*>(op.bias.data) + first : nullptr;
  for (int64_t m = 0; m < t.rows; ++m, sums += width) {
    const int64_t row = t.x->out_row(t.row + m);
    float* out = static_cast<float*>(op.out.data) + row * op.out.stride + first;
    const float* residual = op.residual ? static_cast<const float*>(op.residual.data) + row * op.residual.stride + first : nullptr;
    int64_t i = 0;
    for (; i + static_cast<int64_t>(kN) <= n; i += kN) {
      V sum = hn::Load(d, sums + i);
      if (bias) sum = hn::Add(hn::LoadU(d, bias + i), sum);
      if (residual) sum = hn::Add(hn::LoadU(d, residual + i), sum);
      hn::StoreU(sum, d, out + i);
    }
    for (; i < n; ++i) {
      float sum = sums[i];
      if (bias) sum = bias[i] + sum;
      if (residual) sum = residual[i] + sum;
      out[i] = sum;
    }
  }
}

template <int M, int P>
HWY_INLINE void finish_tile(const LinearTile& t, const V (&acc)[M][P * kV]) {
  HWY_ALIGN float sums[M * P * kPanel];
  AERIE_UNROLL for (int m = 0; m < M; ++m)
    AERIE_UNROLL for (size_t j = 0; j < P * kV; ++j) hn::Store(acc[m][j], D(), sums + (m * P * kV + j) * kN);
  finish(t, P, sums);
}

template <int M, size_t N>
HWY_INLINE void clear(V (&acc)[M][N]) {
  AERIE_UNROLL for (auto& row : acc)
    AERIE_UNROLL for (auto& a : row) a = hn::Zero(D());
}

template <int M, int P>
HWY_INLINE void add_products(const V (&w)[P * kV], const float* x, V (&acc)[M][P * kV]) {
  AERIE_UNROLL for (int m = 0; m < M; ++m) {
    const V a = hn::Set(D(), x[m]);
    AERIE_UNROLL for (size_t j = 0; j < P * kV; ++j) {
      acc[m][j] = hn::MulAdd(w[j], a, acc[m][j]);
      AERIE_KEEP(acc[m][j]);
    }
  }
}

template <int M, int P>
HWY_NOINLINE void tile_f32(const LinearTile& t) {
  const D d;
  const int64_t k = t.op->w.cols, size = k * kPanel;
  const float* w = static_cast<const float*>(t.op->w.data) + t.panel * size;
  const float* x = t.x->x + t.packed * k;
  V acc[M][P * kV];
  clear(acc);
  int64_t ahead = t.ahead.offset;
  const int64_t bytes = size * 4, turn = t.ahead.turn(bytes);
  for (int64_t i = 0; i < k; ++i, ahead += t.ahead.rate) {  // a line each
    if (i == turn) ahead += t.ahead.jump(bytes, P);
    V b[P * kV];
    AERIE_UNROLL for (size_t p = 0; p < P; ++p) {
      const float* panel = w + static_cast<int64_t>(p) * size;
      AERIE_PREFETCH(reinterpret_cast<const char*>(panel) + ahead);
      AERIE_UNROLL for (size_t v = 0; v < kV; ++v) b[p * kV + v] = hn::Load(d, panel + i * kPanel + v * kN);
    }
    add_products<M, P>(b, x + i * M, acc);
  }
  finish_tile<M, P>(t, acc);
}

template <int M, int P, bool kTwoSteps>
HWY_NOINLINE void tile_bf16(const LinearTile& t) {
  const D d;
  const hn::Repartition<uint16_t, D> d16;
  const hn::RebindToUnsigned<D> d32;
  const int64_t k = t.op->w.cols, size = k_padded(DType::bf16, k) * kPanel;
  const uint16_t* w = static_cast<const uint16_t*>(t.op->w.data) + t.panel * size;
  const float* x = t.x->x + t.packed * k;
  V acc[M][P * kV];
  clear(acc);
  const auto high = hn::Set(d32, 0xffff0000u);
  int64_t ahead = t.ahead.offset;
  const int64_t bytes = size * 2, turn = 2 * t.ahead.turn(bytes);
  const int64_t last = k & 1 ? k - 1 : -1;  // whose partner in the word is padding
  AERIE_PAIRWISE for (int64_t i = 0; i < k; i += 2, ahead += t.ahead.rate) {  // two k lie in one word; a line each
    if (i == turn) ahead += t.ahead.jump(bytes, P);
    V half[P * kV];
    const uint16_t* at = w + i * kPanel;
    AERIE_UNROLL for (size_t p = 0; p < P; ++p) {
      const int64_t panel = static_cast<int64_t>(p) * size;
      AERIE_FETCH(kTwoSteps, reinterpret_cast<const char*>(at + panel), reinterpret_cast<const char*>(w + panel) + ahead);
      AERIE_UNROLL for (size_t v = 0; v < kV; ++v)
        half[p * kV + v] = hn::BitCast(d, hn::ShiftLeft<16>(hn::BitCast(d32, hn::Load(d16, at + static_cast<int64_t>(p) * size + v * kN * 2))));
    }
    add_products<M, P>(half, x + i * M, acc);
    if (i == last) break;
    if (kV > 1) asm("" : "+r"(at));  // few registers: load again rather than keep
    AERIE_UNROLL for (size_t p = 0; p < P; ++p)
      AERIE_UNROLL for (size_t v = 0; v < kV; ++v)
        half[p * kV + v] = hn::BitCast(d, hn::And(hn::BitCast(d32, hn::Load(d16, at + static_cast<int64_t>(p) * size + v * kN * 2)), high));
    add_products<M, P>(half, x + (i + 1) * M, acc);
  }
  finish_tile<M, P>(t, acc);
}

// The numbers in the words' lowest bytes (e4m3.h).
HWY_INLINE V from_e4m3(hn::VFromD<hn::RebindToUnsigned<D>> words) {
  const D d;
  const hn::RebindToUnsigned<D> du;
  const auto magnitude = hn::ShiftLeft<20>(hn::And(words, hn::Set(du, 127u)));
  const V normal = hn::BitCast(d, hn::Add(magnitude, hn::Set(du, 120u << 23)));
  const V other = hn::Sub(hn::BitCast(d, hn::Add(magnitude, hn::Set(du, 121u << 23))), hn::Set(d, 0x1p-6f));
  const auto bad = hn::RebindMask(d, hn::Eq(magnitude, hn::Set(du, kNanE4m3 << 20)));
  const V v = hn::IfThenElse(bad, hn::NaN(d), hn::Min(normal, other));
  return hn::Or(v, hn::BitCast(d, hn::ShiftLeft<24>(hn::And(words, hn::Set(du, 128u)))));
}

// Four k lie in one word. Unpacking takes longer than multiplying: this tile is not tuned as the others are.
template <int M, int P>
HWY_NOINLINE void tile_fp8(const LinearTile& t) {
  const D d;
  const hn::Repartition<uint8_t, D> d8;
  const hn::RebindToUnsigned<D> du;
  const int64_t k = t.op->w.cols, size = k_padded(DType::fp8, k) * kPanel;
  const uint8_t* w = static_cast<const uint8_t*>(t.op->w.data) + t.panel * size;
  const float* x = t.x->x + t.packed * k;
  V acc[M][P * kV];
  clear(acc);
  int64_t ahead = t.ahead.offset;
  const int64_t turn = 4 * t.ahead.turn(size);
  for (int64_t i = 0; i < k; i += 4, ahead += t.ahead.rate) {  // a line each
    if (i == turn) ahead += t.ahead.jump(size, P);
    hn::VFromD<decltype(du)> words[P * kV];
    AERIE_UNROLL for (size_t p = 0; p < P; ++p) {
      const uint8_t* at = w + static_cast<int64_t>(p) * size;
      AERIE_PREFETCH(at + ahead);
      AERIE_UNROLL for (size_t v = 0; v < kV; ++v) words[p * kV + v] = hn::BitCast(du, hn::Load(d8, at + i * kPanel + v * kN * 4));
    }
    for (int64_t j = i; j < i + 4 && j < k; ++j) {
      V values[P * kV];
      AERIE_UNROLL for (size_t v = 0; v < P * kV; ++v) {
        values[v] = from_e4m3(words[v]);
        words[v] = hn::ShiftRight<8>(words[v]);
      }
      add_products<M, P>(values, x + j * M, acc);
    }
  }
  const float* scales = static_cast<const float*>(t.op->w.scales) + t.panel * kPanel;
  AERIE_UNROLL for (size_t v = 0; v < P * kV; ++v) {
    const V scale = hn::Load(d, scales + v * kN);
    AERIE_UNROLL for (int m = 0; m < M; ++m) acc[m][v] = hn::Mul(acc[m][v], scale);
  }
  finish_tile<M, P>(t, acc);
}

// dst[k][row] of m rows from `first` on and some more, n <= 16 in all, whose outputs nobody reads. Squares of four are turned at once; those at
// the rows' end write into what lies behind it, which is written later. Behind the tile may lie one that another thread makes: the last k
// come one by one.
inline void interleave_rows(const FoundRows& x, int64_t first, int64_t m, int64_t n, int64_t k, float* dst) {
  const hn::FixedTag<float, 4> d;
  const hn::RepartitionToWide<decltype(d)> pairs;
  const auto lower = [&](auto a, auto b) {
    return hn::BitCast(d, hn::InterleaveLower(pairs, hn::BitCast(pairs, a), hn::BitCast(pairs, b)));
  };
  const auto upper = [&](auto a, auto b) {
    return hn::BitCast(d, hn::InterleaveUpper(pairs, hn::BitCast(pairs, a), hn::BitCast(pairs, b)));
  };
  const float* row[16];
  for (int64_t r = 0; r < 16; ++r) row[r] = x[first + (r < m ? r : m - 1)];
  const int64_t behind = round_up(n, 4) - n;
  int64_t i = 0;
  for (; (i + 4) * n + behind <= k * n; i += 4)
    for (int64_t r = (n - 1) / 4 * 4; r >= 0; r -= 4) {
      const auto x0 = hn::LoadU(d, row[r] + i), x1 = hn::LoadU(d, row[r + 1] + i), x2 = hn::LoadU(d, row[r + 2] + i),
                 x3 = hn::LoadU(d, row[r + 3] + i);
      const auto a = hn::InterleaveLower(d, x0, x1), b = hn::InterleaveLower(d, x2, x3);
      const auto c = hn::InterleaveUpper(d, x0, x1), e = hn::InterleaveUpper(d, x2, x3);
      float* out = dst + i * n + r;
      hn::StoreU(lower(a, b), d, out);
      hn::StoreU(upper(a, b), d, out + n);
      hn::StoreU(lower(c, e), d, out + 2 * n);
      hn::StoreU(upper(c, e), d, out + 3 * n);
    }
  for (; i < k; ++i)
    for (int64_t r = 0; r < n; ++r) dst[i * n + r] = row[r][i];
}

}  // namespace HWY_NAMESPACE
}  // namespace aerie::kernels::cpu
HWY_AFTER_NAMESPACE();
#endif

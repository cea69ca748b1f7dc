// Tiles of Linear for int8 and int4 weights, and the rows of int8 activations that they read.
#include "hwy/highway.h"
#include "kernels/cpu/linear_dots-inl.h"
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

// Where a tile reads: block after block, ascending.
template <bool kInt4, int M, int P>
struct BlockCursor {
  const Ahead& fetch;
  const int64_t size, turn;
  const uint8_t* w;
  const int8_t* x;
  int64_t ahead;

  HWY_INLINE BlockCursor(const LinearTile& t, int64_t blocks)
      : fetch(t.ahead), size(blocks * kBlockBytes<kInt4>), turn(t.ahead.turn(size) / (kBlockBytes<kInt4> / kLine)),
        w(static_cast<const uint8_t*>(t.op->w.data) + t.panel * size), x(t.x->q + t.packed * blocks * kBlock),
        ahead(t.ahead.offset) {}
  HWY_INLINE void enter(int64_t block) {
    if (fetch.follow && block == turn) ahead += fetch.jump(size, P);
  }
  HWY_INLINE void leave() {
    // The prefetches of a block are relative to it; at the full rate they move with it.
    ahead += kBlockBytes<kInt4> / kLine * (fetch.rate - kLine);
    w += kBlockBytes<kInt4>;
    x += M * kBlock;
  }
};

template <class Dots, bool kInt4, int M, size_t N>
HWY_INLINE void begin_sums(const int32_t* offsets, VI (&sum)[M][N]) {
  const hn::RebindToSigned<D> di;
  AERIE_UNROLL for (int m = 0; m < M; ++m)
    AERIE_UNROLL for (auto& s : sum[m]) s = Dots::template kOffsets<kInt4> ? hn::Set(di, offsets[m]) : hn::Zero(di);
}

// acc times the scales of the rows, to the output.
template <int M, int P>
HWY_INLINE void scale_and_finish(const LinearTile& t, V (&acc)[M][P * kV]) {
  AERIE_UNROLL for (int m = 0; m < M; ++m) {
    const V row_scale = hn::Set(D(), m < t.rows ? t.x->scale[t.row + m] : 0.0f);
    AERIE_UNROLL for (size_t j = 0; j < P * kV; ++j) acc[m][j] = hn::Mul(acc[m][j], row_scale);
  }
  finish_tile<M, P>(t, acc);
}

// One integer sum over all of K, times the scale of the weights' row.
template <class Dots, int M, int P>
HWY_NOINLINE void tile_int8(const LinearTile& t) {
  const D d;
  const int64_t blocks = k_padded(DType::int8, t.op->w.cols) / kBlock;
  VI sum[M][P * kV];
  begin_sums<Dots, false>(t.x->offsets + t.packed * blocks, sum);
  BlockCursor<false, M, P> at(t, blocks);
  for (int64_t b = 0; b < blocks; ++b, at.leave()) {
    at.enter(b);
    Dots::template add_block<false, M, P>(at.w, at.size, at.x, at.ahead, t.ahead.rate, sum);
  }
  const float* scales = static_cast<const float*>(t.op->w.scales) + t.panel * kPanel;
  V acc[M][P * kV];
  AERIE_UNROLL for (size_t j = 0; j < P * kV; ++j) {
    const V scale = hn::Load(d, scales + j * kN);
    AERIE_UNROLL for (int m = 0; m < M; ++m) acc[m][j] = hn::Mul(hn::ConvertTo(d, sum[m][j]), scale);
  }
  scale_and_finish<M, P>(t, acc);
}

// An integer sum for each block, then one FMA chain over the blocks ascending.
template <class Dots, int M, int P>
HWY_NOINLINE void tile_int4(const LinearTile& t) {
  const D d;
  const hn::Rebind<hwy::float16_t, D> d16;
  const int64_t blocks = k_padded(DType::int4, t.op->w.cols) / kBlock;
  const auto* scales = static_cast<const hwy::float16_t*>(t.op->w.scales) + t.panel * blocks * kPanel;
  const int32_t* offsets = t.x->offsets + t.packed * blocks;
  constexpr int64_t kScaleShare = kBlockBytes<true> / (kPanel * 2);  // scales are fetched as far ahead as their weights
  V acc[M][P * kV];
  clear(acc);
  BlockCursor<true, M, P> at(t, blocks);
  for (int64_t b = 0; b < blocks; ++b, at.leave(), offsets += M, scales += kPanel) {
    at.enter(b);
    VI sum[M][P * kV];
    begin_sums<Dots, true>(offsets, sum);
    Dots::template add_block<true, M, P>(at.w, at.size, at.x, at.ahead, t.ahead.rate, sum);
    AERIE_UNROLL for (size_t p = 0; p < P; ++p) {
      const hwy::float16_t* of_panel = scales + static_cast<int64_t>(p) * blocks * kPanel;
      AERIE_PREFETCH(reinterpret_cast<const char*>(of_panel) + at.ahead / kScaleShare);
      AERIE_UNROLL for (size_t v = 0; v < kV; ++v) {
        const V scale = hn::PromoteTo(d, hn::Load(d16, of_panel + v * kN));
        AERIE_UNROLL for (int m = 0; m < M; ++m)
          acc[m][p * kV + v] = hn::MulAdd(hn::ConvertTo(d, sum[m][p * kV + v]), scale, acc[m][p * kV + v]);
      }
    }
  }
  scale_and_finish<M, P>(t, acc);
}

// The largest magnitude of x, as bits: those of floats without their sign rise with them, up to infinity and then NaNs.
inline int32_t top_bits(const float* x, int64_t k) {
  const D d;
  const hn::RebindToSigned<D> di;
  constexpr auto lanes = static_cast<int64_t>(kN);
  constexpr int32_t kMagnitude = 0x7fffffff;
  constexpr int64_t kChains = 4;
  const auto load = [&](int64_t at) { return hn::And(hn::BitCast(di, hn::LoadU(d, x + at)), hn::Set(di, kMagnitude)); };
  VI top[kChains];
  AERIE_UNROLL for (auto& t : top) t = hn::Zero(di);
  int64_t i = 0;
  for (; i + kChains * lanes <= k; i += kChains * lanes)
    AERIE_UNROLL for (int64_t c = 0; c < kChains; ++c) top[c] = hn::Max(top[c], load(i + c * lanes));
  for (; i + lanes <= k; i += lanes) top[0] = hn::Max(top[0], load(i));
  int32_t most = hn::GetLane(hn::MaxOfLanes(di, hn::Max(hn::Max(top[0], top[1]), hn::Max(top[2], top[3]))));
  for (; i < k; ++i) {
    int32_t bits;
    __builtin_memcpy(&bits, x + i, sizeof bits);
    most = (bits & kMagnitude) > most ? bits & kMagnitude : most;
  }
  return most;
}

// Row m of a tile of n rows: one scale, nearest even, zeros behind k. q and offsets are the tile's. Returns the
// scale. A row that is not finite becomes zeros with a scale of NaN, so that its outputs are not finite either.
// The offsets take away what makes the weights' codes unsigned (128 or 8) times the sum of the row: int8's, over all of
// K, lies with block 0; int4's in each block.
template <bool kInt4>
float quantise_row(const float* x, int64_t k, int64_t m, int64_t n, int8_t* q, int32_t* offsets) {
  const D d;
  const hn::RebindToSigned<D> di;
  const hn::Rebind<int8_t, D> d8;
  constexpr auto lanes = static_cast<int64_t>(kN);
  const int32_t bits = top_bits(x, k);
  const bool finite = bits < 0x7f800000;
  float most;
  __builtin_memcpy(&most, &bits, sizeof most);
  // Below 1e-36 the inverse would overflow; nothing to speak of is lost.
  const float inverse = finite && most > 1e-36f ? 127.0f / most : 0.0f;
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: what is added to it is rounded to an integer, ties to even
  const V scale = hn::Set(d, inverse), round = hn::Set(d, kRound);
  VI sums = hn::Zero(di);
  int32_t total = 0;
  for (int64_t first = 0, b = 0; first < k; first += kBlock, ++b) {
    int8_t* block = q + (b * n + m) * kBlock;
    const int64_t here = finite ? (k - first < kBlock ? k - first : kBlock) : 0;
    const auto add = [&](int64_t j) {
      const V sum = hn::Add(hn::Mul(hn::LoadU(d, x + first + j), scale), round);
      const VI codes = hn::Sub(hn::BitCast(di, sum), hn::BitCast(di, round));
      sums = hn::Add(sums, codes);
      hn::StoreU(hn::DemoteTo(d8, codes), d8, block + j);
    };
    int64_t j = 0;
    if (here == kBlock) {
      AERIE_UNROLL for (; j < kBlock; j += lanes) add(j);
    } else {
      for (; j + lanes <= here; j += lanes) add(j);
      for (; j < kBlock; ++j) {
        block[j] = j < here ? static_cast<int8_t>((x[first + j] * inverse + kRound) - kRound) : 0;
        total += block[j];
      }
    }
    if (kInt4) {
      offsets[b * n + m] = -8 * (total + hn::GetLane(hn::SumOfLanes(di, sums)));
      sums = hn::Zero(di);
      total = 0;
    }
  }
  if (!kInt4) offsets[m] = -128 * (total + hn::GetLane(hn::SumOfLanes(di, sums)));
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

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

template <bool kInt4, int M, size_t N>
HWY_INLINE void begin_sums(const int32_t* offsets, VI (&sum)[M][N]) {
  const hn::RebindToSigned<D> di;
  AERIE_UNROLL for (int m = 0; m < M; ++m)
    AERIE_UNROLL for (auto& s : sum[m]) s = kOffsets<kInt4> ? hn::Set(di, offsets[m]) : hn::Zero(di);
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
template <int M, int P>
HWY_NOINLINE void tile_int8(const LinearTile& t) {
  const D d;
  const int64_t blocks = k_padded(DType::int8, t.op->w.cols) / kBlock;
  VI sum[M][P * kV];
  begin_sums<false>(t.x->offsets + t.packed * blocks, sum);
  BlockCursor<false, M, P> at(t, blocks);
  for (int64_t b = 0; b < blocks; ++b, at.leave()) {
    at.enter(b);
    add_block<false, M, P>(at.w, at.size, at.x, at.ahead, t.ahead.rate, sum);
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
template <int M, int P>
HWY_NOINLINE void tile_int4(const LinearTile& t) {
  const D d;
  const hn::Rebind<hwy::float16_t, D> d16;
  const int64_t blocks = k_padded(DType::int4, t.op->w.cols) / kBlock;
  const auto* scales = static_cast<const hwy::float16_t*>(t.op->w.scales) + t.panel * blocks * kPanel;
  const int32_t* offsets = t.x->offsets + t.packed * blocks;
  constexpr int64_t kScaleShare = kBlockBytes<true> / (kPanel * 2);  // scales are fetched as far ahead as their weights
  V acc[M][P * kV];
  AERIE_UNROLL for (auto& row : acc)
    AERIE_UNROLL for (auto& a : row) a = hn::Zero(d);
  BlockCursor<true, M, P> at(t, blocks);
  for (int64_t b = 0; b < blocks; ++b, at.leave(), offsets += M, scales += kPanel) {
    at.enter(b);
    VI sum[M][P * kV];
    begin_sums<true>(offsets, sum);
    add_block<true, M, P>(at.w, at.size, at.x, at.ahead, t.ahead.rate, sum);
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

// Row m of a tile of n rows: one scale, nearest even, zeros behind k. q and offsets are the tile's. Returns the
// scale. A row that is not finite becomes zeros with a scale of NaN, so that its outputs are not finite either.
// The offsets take away what makes the weights' codes unsigned (128 or 8) times the sum of the row: int8's, over all of
// K, lies with block 0; int4's in each block.
float quantise_row(const float* x, int64_t k, bool int4, int64_t m, int64_t n, int8_t* q, int32_t* offsets) {
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
  if (!int4) offsets[m] = 0;
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
    if (int4) offsets[b * n + m] = -8 * total;
    else offsets[m] -= 128 * total;
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

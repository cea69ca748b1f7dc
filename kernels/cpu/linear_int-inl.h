// Tiles of Linear for int8 and int4 weights, and the rows of integers that they read.
#include <type_traits>

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
template <class Code, bool kInt4, int M, int P>
struct BlockCursor {
  const Ahead& fetch;
  const int64_t size, turn;
  const uint8_t* w;
  const Code* x;
  int64_t ahead;

  HWY_INLINE BlockCursor(const LinearTile& t, int64_t blocks)
      : fetch(t.ahead), size(blocks * kBlockBytes<kInt4>), turn(t.ahead.turn(size) / (kBlockBytes<kInt4> / kLine)),
        w(static_cast<const uint8_t*>(t.op->w.data) + t.panel * size), x(static_cast<const Code*>(t.x->q) + t.packed * blocks * kBlock),
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

// Scaled sums of spans or blocks, one after the other. Where registers are few they lie in memory: what was summed last needs
// those that there are.
template <int M, int P>
class Totals {
 public:
  static constexpr size_t kWidth = P * kV;
  HWY_INLINE Totals() {
    AERIE_UNROLL for (int m = 0; m < M; ++m)
      AERIE_UNROLL for (size_t j = 0; j < kWidth; ++j) set(m, j, hn::Zero(D()));
  }
  HWY_INLINE void add(int m, size_t j, VI sum, V scale) {
    set(m, j, hn::MulAdd(hn::ConvertTo(D(), sum), scale, get(m, j)));
  }
  HWY_INLINE void scale(int m, size_t j, V by) { set(m, j, hn::Mul(get(m, j), by)); }
  HWY_INLINE void added() {
    if constexpr (kInMemory) asm volatile("" : : "r"(memory_) : "memory");
  }
  HWY_INLINE void finish(const LinearTile& t) {
    if constexpr (kInMemory) HWY_NAMESPACE::finish(t, P, memory_);
    else finish_tile<M, P>(t, registers_);
  }

 private:
  static constexpr bool kInMemory = kV > 1;
  HWY_INLINE V get(int m, size_t j) const {
    if constexpr (kInMemory) return hn::Load(D(), memory_ + (static_cast<size_t>(m) * kWidth + j) * kN);
    else return registers_[m][j];
  }
  HWY_INLINE void set(int m, size_t j, V v) {
    if constexpr (kInMemory) hn::Store(v, D(), memory_ + (static_cast<size_t>(m) * kWidth + j) * kN);
    else registers_[m][j] = v;
  }
  HWY_ALIGN float memory_[kInMemory ? M * P * kPanel : kN];
  V registers_[kInMemory ? 1 : M][kInMemory ? 1 : kWidth];
};

// Of blocks [b, end) of int8. Not a lambda: GCC inlines one too late for the sums to be in registers.
template <class Dots, bool kTwoSteps, int M, int P>
HWY_INLINE void sum_blocks(BlockCursor<typename Dots::template Code<false>, false, M, P>& at, int64_t b, int64_t end,
                           const int32_t* offsets, VI (&sum)[M][P * kV]) {
  begin_sums<Dots, false>(offsets, sum);
  for (; b < end; ++b, at.leave()) {
    at.enter(b);
    Dots::template add_block<false, kTwoSteps, M, P>(at.w, at.size, at.x, at.ahead, at.fetch.rate, sum);
  }
}

// An integer sum for each span of k: over all of K and times the scale of the weights' row, then the row's; or times the span's
// scale, in one FMA chain over the spans ascending, then the scale of the weights' row.
template <class Dots, int M, int P, bool kTwoSteps>
HWY_NOINLINE void tile_int8(const LinearTile& t) {
  constexpr ActivationCodes kCodes = Dots::template kCodes<false>;
  const D d;
  const int64_t blocks = k_padded(DType::int8, t.op->w.cols) / kBlock, first = t.packed * kCodes.spans(blocks);
  const int32_t* offsets = t.x->offsets + first;
  const float* row_scales = t.x->scale + first;
  const float* scales = static_cast<const float*>(t.op->w.scales) + t.panel * kPanel;
  BlockCursor<typename Dots::template Code<false>, false, M, P> at(t, blocks);
  VI sum[M][P * kV];
  if constexpr (kCodes.span == 0) {
    sum_blocks<Dots, kTwoSteps>(at, 0, blocks, offsets, sum);
    V acc[M][P * kV];
    AERIE_UNROLL for (size_t j = 0; j < P * kV; ++j) {
      const V scale = hn::Load(d, scales + j * kN);
      AERIE_UNROLL for (int m = 0; m < M; ++m)
        acc[m][j] = hn::Mul(hn::Mul(hn::ConvertTo(d, sum[m][j]), scale), hn::Set(d, row_scales[m]));
    }
    finish_tile<M, P>(t, acc);
  } else {
    Totals<M, P> total;
    for (int64_t b = 0; b < blocks; b += kCodes.span, offsets += M, row_scales += M) {
      sum_blocks<Dots, kTwoSteps>(at, b, b + kCodes.span < blocks ? b + kCodes.span : blocks, offsets, sum);
      AERIE_UNROLL for (int m = 0; m < M; ++m) {
        const V scale = hn::Set(d, row_scales[m]);
        AERIE_UNROLL for (size_t j = 0; j < P * kV; ++j) total.add(m, j, sum[m][j], scale);
      }
      total.added();
    }
    AERIE_UNROLL for (size_t j = 0; j < P * kV; ++j) {
      const V scale = hn::Load(d, scales + j * kN);
      AERIE_UNROLL for (int m = 0; m < M; ++m) total.scale(m, j, scale);
    }
    total.finish(t);
  }
}

// An integer sum for each block, then one FMA chain over the blocks ascending, times the row's scale.
template <class Dots, int M, int P, bool kTwoSteps>
HWY_NOINLINE void tile_int4(const LinearTile& t) {
  const D d;
  const hn::Rebind<hwy::float16_t, D> d16;
  const int64_t blocks = k_padded(DType::int4, t.op->w.cols) / kBlock;
  const auto* scales = static_cast<const hwy::float16_t*>(t.op->w.scales) + t.panel * blocks * kPanel;
  const int32_t* offsets = t.x->offsets + t.packed * blocks;
  constexpr int64_t kScaleShare = kBlockBytes<true> / (kPanel * 2);  // scales are fetched as far ahead as their weights
  Totals<M, P> total;
  BlockCursor<typename Dots::template Code<true>, true, M, P> at(t, blocks);
  for (int64_t b = 0; b < blocks; ++b, at.leave(), offsets += M, scales += kPanel) {
    at.enter(b);
    VI sum[M][P * kV];
    begin_sums<Dots, true>(offsets, sum);
    Dots::template add_block<true, kTwoSteps, M, P>(at.w, at.size, at.x, at.ahead, t.ahead.rate, sum);
    AERIE_UNROLL for (size_t p = 0; p < P; ++p) {
      const hwy::float16_t* of_panel = scales + static_cast<int64_t>(p) * blocks * kPanel;
      AERIE_PREFETCH(reinterpret_cast<const char*>(of_panel) + at.ahead / kScaleShare);
      AERIE_UNROLL for (size_t v = 0; v < kV; ++v) {
        const V scale = hn::PromoteTo(d, hn::Load(d16, of_panel + v * kN));
        AERIE_UNROLL for (int m = 0; m < M; ++m) total.add(m, p * kV + v, sum[m][p * kV + v], scale);
      }
    }
    total.added();
  }
  AERIE_UNROLL for (int m = 0; m < M; ++m) {
    const V row_scale = hn::Set(d, t.x->scale[t.packed + m]);
    AERIE_UNROLL for (size_t j = 0; j < P * kV; ++j) total.scale(m, j, row_scale);
  }
  total.finish(t);
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

// k activations of a row: one scale, nearest even, zeros behind k; block b of their codes is put at place(b), offset b at
// offsets[b * n]. Returns the scale. What is not finite becomes zeros with a scale of NaN, so that its outputs are not finite either.
// The offsets take away what makes the weights' codes unsigned (128 or 8) times the sum: int8's of all k, int4's in each block.
// Of every four codes of 16 bits the second and third change places, as the weights that they meet do (Pairs).
template <bool kInt4, class Place>
float quantise_span(const float* x, int64_t k, int32_t most_code, const Place& place, int64_t n, int32_t* offsets) {
  using Code = std::remove_pointer_t<decltype(place(0))>;
  constexpr bool kWords = sizeof(Code) == 2;
  const D d;
  const hn::RebindToSigned<D> di;
  const hn::Rebind<Code, D> dc;
  constexpr auto lanes = static_cast<int64_t>(kN);
  const int32_t bits = top_bits(x, k);
  const bool finite = bits < 0x7f800000;
  float most;
  __builtin_memcpy(&most, &bits, sizeof most);
  // Below 1e-36 the inverse would overflow; nothing to speak of is lost.
  const auto top = static_cast<float>(most_code);
  const float inverse = finite && most > 1e-36f ? top / most : 0.0f;
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: what is added to it is rounded to an integer, ties to even
  const V scale = hn::Set(d, inverse), round = hn::Set(d, kRound);
  VI sums = hn::Zero(di);
  int32_t total = 0;
  for (int64_t first = 0, b = 0; first < k; first += kBlock, ++b) {
    Code* block = place(b);
    const int64_t here = finite ? (k - first < kBlock ? k - first : kBlock) : 0;
    const auto add = [&](int64_t j) {
      const V sum = hn::Add(hn::Mul(hn::LoadU(d, x + first + j), scale), round);
      const VI codes = hn::Sub(hn::BitCast(di, sum), hn::BitCast(di, round));
      sums = hn::Add(sums, codes);
      const VI placed = kWords ? hn::InterleaveLower(codes, hn::Shuffle1032(codes)) : codes;
      hn::StoreU(hn::DemoteTo(dc, placed), dc, block + j);
    };
    int64_t j = 0;
    if (here == kBlock) {
      AERIE_UNROLL for (; j < kBlock; j += lanes) add(j);
    } else {
      for (; j + lanes <= here; j += lanes) add(j);
      for (; j < kBlock; ++j) {
        const auto code = j < here ? static_cast<Code>((x[first + j] * inverse + kRound) - kRound) : Code{0};
        block[kWords ? (j & ~3) | (j & 1) << 1 | (j >> 1 & 1) : j] = code;
        total += code;
      }
    }
    if (kInt4) {
      offsets[b * n] = -8 * (total + hn::GetLane(hn::SumOfLanes(di, sums)));
      sums = hn::Zero(di);
      total = 0;
    }
  }
  // Unsigned: who needs no offsets may have a K for which this one overflows (matrix_rows-inl.h).
  if (!kInt4) *offsets = static_cast<int32_t>(-128u * static_cast<uint32_t>(total + hn::GetLane(hn::SumOfLanes(di, sums))));
  return finite ? most / top : NAN;
}

// Row m of a tile of n rows, span by span.
template <bool kInt4, class Code>
void quantise_row(const float* x, int64_t k, const ActivationCodes& codes, int64_t m, int64_t n, Code* q, int32_t* offsets,
                  float* scales) {
  const int64_t blocks = (k + kBlock - 1) / kBlock, step = codes.span > 0 ? codes.span : blocks;
  for (int64_t b = 0; b < blocks; b += step, q += step * n * kBlock, scales += n, offsets += kInt4 ? step * n : n) {
    const int64_t first = b * kBlock, left = k - first;
    const auto place = [&](int64_t at) { return q + (at * n + m) * kBlock; };
    scales[m] = quantise_span<kInt4>(x + first, left < step * kBlock ? left : step * kBlock, codes.most, place, n, offsets + m);
  }
}

// What a tile wider than its rows reads behind them.
template <class Code>
void zero_row(int64_t blocks, int64_t sums, int64_t spans, int64_t m, int64_t n, Code* q, int32_t* offsets, float* scales) {
  for (int64_t b = 0; b < blocks; ++b)
    for (int64_t j = 0; j < kBlock; ++j) q[(b * n + m) * kBlock + j] = 0;
  for (int64_t s = 0; s < sums; ++s) offsets[s * n + m] = 0;
  for (int64_t s = 0; s < spans; ++s) scales[s * n + m] = 0;
}

}  // namespace HWY_NAMESPACE
}  // namespace aerie::kernels::cpu
HWY_AFTER_NAMESPACE();
#endif

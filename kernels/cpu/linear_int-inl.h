// Tiles of Linear for weights of 8 bits (but fp8) and of 4.
#include <type_traits>

#include "hwy/highway.h"
#include "kernels/cpu/linear_codes-inl.h"
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
template <class Dots, DType T, int M, int P>
struct BlockCursor {
  using Order = typename Dots::template Order<T>;
  const Ahead& fetch;
  const int64_t size, turn;
  const uint8_t* w;
  const typename Order::Code* x;
  int64_t ahead;

  HWY_INLINE BlockCursor(const LinearTile& t, int64_t blocks)
      : fetch(t.ahead), size(blocks * kBlockBytes<T>), turn(t.ahead.turn(size) / (kBlockBytes<T> / kLine)),
        w(static_cast<const uint8_t*>(t.op->w.data) + t.panel * size),
        x(static_cast<const typename Order::Code*>(t.x->q) + t.packed * blocks * Order::kPerBlock), ahead(t.ahead.offset) {}
  HWY_INLINE void enter(int64_t block) {
    if (fetch.follow && block == turn) ahead += fetch.jump(size, P);
  }
  HWY_INLINE void leave() {
    // The prefetches of a block are relative to it; at the full rate they move with it.
    ahead += kBlockBytes<T> / kLine * (fetch.rate - kLine);
    w += kBlockBytes<T>;
    x += M * Order::kPerBlock;
  }
};

// Rows with one scale: one exact integer sum, times the scale of the weights' row, times the row's.
template <class Dots, int M, int P, bool kTwoSteps>
HWY_NOINLINE void tile_int8(const LinearTile& t) {
  const D d;
  const int64_t blocks = k_padded(DType::int8, t.op->w.cols) / kBlock;
  BlockCursor<Dots, DType::int8, M, P> at(t, blocks);
  VI sum[M][P * kV];
  AERIE_UNROLL for (auto& row : sum)
    AERIE_UNROLL for (auto& s : row) s = hn::Zero(hn::RebindToSigned<D>());
  for (int64_t b = 0; b < blocks; ++b, at.leave()) {
    at.enter(b);
    Dots::template add_block<DType::int8, kTwoSteps, M, P>(at.w, at.size, at.x, at.ahead, at.fetch.rate, sum);
  }
  const float* row_scales = t.x->scale + t.packed;
  const float* scales = static_cast<const float*>(t.op->w.scales) + t.panel * kPanel;
  V acc[M][P * kV];
  AERIE_UNROLL for (size_t j = 0; j < P * kV; ++j) {
    const V scale = hn::Load(d, scales + j * kN);
    AERIE_UNROLL for (int m = 0; m < M; ++m)
      acc[m][j] = hn::Mul(hn::Mul(hn::ConvertTo(d, sum[m][j]), scale), hn::Set(d, row_scales[m]));
  }
  finish_tile<M, P>(t, acc);
}

// Scaled sums of blocks, one after the other. Where registers are few they lie in memory: what was summed last needs those that
// there are.
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
  HWY_INLINE void add_minimum(int m, size_t j, V minimum, V block_sum) { set(m, j, hn::MulAdd(block_sum, minimum, get(m, j))); }
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

// An integer sum for each block, times the row's scale of it (for weights of 4 bits times theirs, first), in one FMA chain over the
// blocks ascending, in which each of q4_1 is followed by the sum of the block's activations times the weights' minimum; int8's times the
// scale of the weights' row.
template <class Dots, DType T, int M, int P, bool kTwoSteps>
HWY_NOINLINE void tile_blocks(const LinearTile& t) {
  const D d;
  const hn::RebindToSigned<D> di;
  constexpr bool kOffsets = Dots::template kZeroPoint<T> != 0;
  const int64_t blocks = k_padded(DType::int8, t.op->w.cols) / kBlock;
  const auto* scales = static_cast<const BlockScale<T>*>(t.op->w.scales) + t.panel * blocks * kBlockScales<T>;  // of nibbles
  const float* row_scales = t.x->scale + t.packed * blocks;
  const int32_t* offsets = t.x->offsets + t.packed * blocks;
  const float* block_sums = t.x->block_sums + t.packed * blocks;
  constexpr int64_t kScaleShare = kBlockBytes<T> / kBlockScaleBytes<T>;  // scales are fetched as far ahead as their weights
  Totals<M, P> total;
  BlockCursor<Dots, T, M, P> at(t, blocks);
  for (int64_t b = 0; b < blocks; ++b, at.leave()) {
    at.enter(b);
    VI sum[M][P * kV];
    AERIE_UNROLL for (int m = 0; m < M; ++m)
      AERIE_UNROLL for (auto& s : sum[m]) s = kOffsets ? hn::Set(di, offsets[m]) : hn::Zero(di);
    Dots::template add_block<T, kTwoSteps, M, P>(at.w, at.size, at.x, at.ahead, t.ahead.rate, sum);
    if constexpr (is_nibbles(T)) {
      AERIE_UNROLL for (size_t p = 0; p < P; ++p) {
        const BlockScale<T>* of_panel = scales + static_cast<int64_t>(p) * blocks * kBlockScales<T>;
        AERIE_PREFETCH(reinterpret_cast<const char*>(of_panel) + at.ahead / kScaleShare);
        AERIE_UNROLL for (size_t v = 0; v < kV; ++v) {
          const V scale = load_scales(of_panel + v * kN);
          const V minimum = T == DType::q4_1 ? load_scales(of_panel + kPanel + v * kN) : hn::Zero(d);
          AERIE_UNROLL for (int m = 0; m < M; ++m) {
            if (T == DType::q4_1) asm volatile("" : : : "memory");  // no registers for both rows of numbers: they are loaded when added
            total.add(m, p * kV + v, sum[m][p * kV + v], hn::Mul(scale, hn::Set(d, row_scales[m])));
            if constexpr (T == DType::q4_1) total.add_minimum(m, p * kV + v, minimum, hn::Set(d, block_sums[m]));
          }
        }
      }
      scales += kBlockScales<T>;
    } else {
      AERIE_UNROLL for (int m = 0; m < M; ++m) {
        const V scale = hn::Set(d, row_scales[m]);
        AERIE_UNROLL for (size_t j = 0; j < P * kV; ++j) total.add(m, j, sum[m][j], scale);
      }
    }
    row_scales += M;
    if (kOffsets) offsets += M;
    if (T == DType::q4_1) block_sums += M;
    total.added();
  }
  if constexpr (T == DType::int8) {
    const float* of_rows = static_cast<const float*>(t.op->w.scales) + t.panel * kPanel;
    AERIE_UNROLL for (size_t j = 0; j < P * kV; ++j)
      AERIE_UNROLL for (int m = 0; m < M; ++m) total.scale(m, j, hn::Load(d, of_rows + j * kN));
  }
  total.finish(t);
}

}  // namespace HWY_NAMESPACE
}  // namespace aerie::kernels::cpu
HWY_AFTER_NAMESPACE();
#endif

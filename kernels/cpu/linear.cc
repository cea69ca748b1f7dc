// Linear: a few rows of activations against packed weights, one pass over the weights.
//
// Order of every output element, whatever M, tile, task or thread: one FMA chain over k ascending (f32, bf16; fp8, times the
// weights' scale); for int8 one exact integer sum, times the weights' scale, times the row's; or, where bytes are multiplied
// (ActivationCodes), an exact integer sum for each block of 32, one FMA chain over blocks, each times the row's scale of it, times the
// weights' scale; for weights of 4 bits such a chain, each block times both scales of it, and q4_1's followed by the sum of the block's
// activations as they were rounded, times the minimum. Then + bias, then + residual. (bf16 on a matrix unit: linear_matrix-inl.h.)
#include "kernels/cpu/hwy_targets.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "kernels/cpu/fetching.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/linear.h"
#include "kernels/cpu/linear_matrix.h"
#include "kernels/cpu/op_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/linear.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/dispatch.h"
#include "kernels/cpu/linear_float-inl.h"
#include "kernels/cpu/linear_int-inl.h"
#include "kernels/cpu/linear_tile.h"

HWY_BEFORE_NAMESPACE();
namespace aerie::kernels::cpu {
namespace HWY_NAMESPACE {

// Rows that one tile serves, so that the weights pass once; and rows of the tiles that more are cut into. Those read their
// weights from the cache: narrower ones of two panels, which load half as much for each product, are faster then. For
// int8 they are so from 15 rows on, with sums of blocks (of which a tile has two: of a block, of all) from 9.
struct TileRows {
  int64_t most, of_many;
};
template <class Dots>
constexpr bool sums_blocks(DType t) {
  return is_nibbles(t) || (t == DType::int8 && Dots::template Order<DType::int8>::kCodes.by_block);
}
template <class Dots>
constexpr TileRows rows_for(DType t) {
  if (kV == 1) return sums_blocks<Dots>(t) ? TileRows{8, 6} : t == DType::int8 ? TileRows{14, 8} : TileRows{16, 8};
  if (kV == 2) return {6, 6};
  return is_integer(t) ? TileRows{3, 3} : TileRows{2, 2};
}
// Not every number has a tile of its own: the next larger one serves, with rows nobody asked for. 13 has: one of 14 leaves no
// register free.
constexpr int64_t tile_rows(int64_t m) { return m <= 8 || m == 13 ? m : m <= 14 ? round_up(m, 2) : 16; }
// Panels at once: enough independent chains to hide the FMA latency, few enough registers.
constexpr int panels_for_float(int m) {
  return kV == 1 ? (m <= 4 ? 4 : m <= 12 ? 2 : 1) : kV == 2 ? (m == 1 ? 4 : m == 2 ? 2 : 1) : 1;
}
constexpr int panels_for_int8(int m) { return kV == 1 ? (m <= 6 ? 4 : m <= 14 ? 2 : 1) : kV == 2 && m <= 2 ? 2 : 1; }
template <class Dots>
constexpr int panels_for_blocks(int m) {
  if (kV == 2) return m == 2 || (m == 1 && std::is_same_v<Dots, ByteDots>) ? 2 : 1;
  return kV == 1 ? (m <= 3 ? 4 : m <= 8 ? 2 : 1) : 1;
}
template <class Dots>
constexpr int panels_for(DType t, int m) {
  return sums_blocks<Dots>(t) ? panels_for_blocks<Dots>(m) : t == DType::int8 ? panels_for_int8(m) : panels_for_float(m);
}
constexpr int64_t kChunkBytes = 256 << 10;
// Far enough for DRAM's latency, in each of the panels at once. Where one to four rows read four of them, at the speed of
// memory, more under way than the caches' queues hold costs a tenth (measured at 45 GB/s a core).
constexpr int64_t ahead_bytes(bool integer, int64_t rows, int panels) {
  return panels < 4 ? 4096 : !integer ? 1536 : rows <= 4 ? 1024 : 2048;
}

// Both ways to fetch, where some machine of the target is faster with two steps and another with one (fetching.h); f32 and fp8,
// which nobody runs for speed, have one.
constexpr bool fetches_both_ways(DType t) {
#if defined(__SANITIZE_ADDRESS__)
  return false;  // they differ in addresses that are only asked for, and this file takes minutes to compile with sanitizers
#endif
  return HWY_TARGET == HWY_AVX3_DL && (t == DType::bf16 || is_integer(t));
}

template <DType T, class Dots, int M, int P, bool kTwoSteps>
HWY_INLINE void tile_of(const LinearTile& t) {
  if constexpr (T == DType::f32) tile_f32<M, P>(t);
  else if constexpr (T == DType::bf16) tile_bf16<M, P, kTwoSteps>(t);
  else if constexpr (T == DType::fp8) tile_fp8<M, P>(t);
  else if constexpr (sums_blocks<Dots>(T)) tile_blocks<Dots, T, M, P, kTwoSteps>(t);
  else tile_int8<Dots, M, P, kTwoSteps>(t);
}

template <DType T, class Dots, int M, int P>
HWY_INLINE void tile(const LinearTile& t) {
  if constexpr (fetches_both_ways(T)) {
    if (t.ahead.two_steps) return tile_of<T, Dots, M, P, true>(t);
  }
  tile_of<T, Dots, M, P, false>(t);
}

// All rows against panels [t.panel, last), several at a time, then one by one. t is moved on in place: a copy of it would
// be read in wider pieces than it was just written in, hence only after all stores before it, the last tile's outputs.
template <DType T, class Dots, int M>
void sweep(LinearTile& t, int64_t last) {
  if constexpr (M <= tile_rows(rows_for<Dots>(T).most)) {
    constexpr int P = panels_for<Dots>(T, M);
    for (; t.panel + P <= last; t.panel += P) tile<T, Dots, M, P>(t);
    if constexpr (P > 2 && M > 4) {  // of several tiles, whose chunks may be that short
      for (; t.panel + 2 <= last; t.panel += 2) tile<T, Dots, M, 2>(t);
    }
    if constexpr (P > 1) {
      for (; t.panel < last; ++t.panel) tile<T, Dots, M, 1>(t);
    }
  }
}

template <class Dots, int M>
void panels(LinearTile& t, int64_t last) {
  switch (t.op->w.dtype) {
    case DType::int8: return sweep<DType::int8, Dots, M>(t, last);
    case DType::int4: return sweep<DType::int4, Dots, M>(t, last);
    case DType::q4_1: return sweep<DType::q4_1, Dots, M>(t, last);
    case DType::mxfp4: return sweep<DType::mxfp4, Dots, M>(t, last);
    case DType::bf16: return sweep<DType::bf16, OtherDots, M>(t, last);
    case DType::fp8: return sweep<DType::fp8, OtherDots, M>(t, last);
    default: return sweep<DType::f32, OtherDots, M>(t, last);
  }
}

template <class Dots>
void rows_of(LinearTile& t, int64_t last) {
  switch (tile_rows(t.rows)) {
    case 1: return panels<Dots, 1>(t, last);
    case 2: return panels<Dots, 2>(t, last);
    case 3: return panels<Dots, 3>(t, last);
    case 4: return panels<Dots, 4>(t, last);
    case 5: return panels<Dots, 5>(t, last);
    case 6: return panels<Dots, 6>(t, last);
    case 7: return panels<Dots, 7>(t, last);
    case 8: return panels<Dots, 8>(t, last);
    case 10: return panels<Dots, 10>(t, last);
    case 12: return panels<Dots, 12>(t, last);
    case 13: return panels<Dots, 13>(t, last);
    case 14: return panels<Dots, 14>(t, last);
    case 16: return panels<Dots, 16>(t, last);
    default: break;
  }
}

template <class Dots>
int64_t count_tiles(DType t, int64_t m) {
  const TileRows rows = rows_for<Dots>(t);
  return m <= rows.most ? 1 : (m + rows.of_many - 1) / rows.of_many;
}

// Balanced tiles: 17 rows are 6 + 6 + 5, not 8 + 8 + 1. fn(tile, first row, rows, packed rows before it).
template <class Dots, class Fn>
void each_tile(DType t, int64_t m, const Fn& fn) {
  const int64_t tiles = count_tiles<Dots>(t, m);
  for (int64_t i = 0, row = 0, packed = 0; i < tiles; ++i) {
    const int64_t n = (m - row + (tiles - i) - 1) / (tiles - i);
    fn(i, row, n, packed);
    row += n;
    packed += tile_rows(n);
  }
}

// Of all tiles: the first m % tiles have one row more than the others.
template <class Dots>
int64_t packed_rows_of(DType t, int64_t m) {
  if (m == 0) return 0;
  const int64_t tiles = count_tiles<Dots>(t, m), least = m / tiles, wider = m % tiles;
  return wider * tile_rows(least + 1) + (tiles - wider) * tile_rows(least);
}

template <class Dots>
void all_panels(const Linear& op, int64_t first, int64_t last, const PackedRows& x) {
  const int64_t m = op.x.rows, tiles = count_tiles<Dots>(op.w.dtype, m);
  // Of nibbles, weights that several tiles fetch come in one step everywhere: with two the tiles' loads take 2 % longer than they save.
  const bool two_steps = fetch_in_two_steps() && (tiles <= 1 || !is_nibbles(op.w.dtype));
  const Ahead alone{ahead_bytes(x.q, m, panels_for<Dots>(op.w.dtype, static_cast<int>(tile_rows(m)))), kLine, true, two_steps};
  // With several row tiles, a chunk of weights that stays in the second-level cache meets all of them while each of them
  // fetches its share of the next chunk. A short one leaves little unfetched where it begins; many tiles' activations come
  // from afar for every chunk.
  const int64_t bytes = data_bytes(op.w.dtype, Layout::panel16, kPanel, std::max<int64_t>(op.w.cols, 1));
  const int64_t fit = kChunkBytes / bytes;
  const int64_t chunk = tiles <= 1 ? last - first : tiles <= 4 ? 2 : fit >= 8 ? fit / 8 * 8 : fit >= 4 ? 4 : 2;
  for (int64_t at = first; at < last; at += chunk) {
    const int64_t end = std::min(last, at + chunk);
    each_tile<Dots>(op.w.dtype, m, [&](int64_t i, int64_t row, int64_t n, int64_t packed) {
      // Rounded up: one line in a hundred that comes unfetched costs more than the fetches.
      const Ahead ahead = tiles <= 1 ? alone : Ahead{chunk * bytes + i * bytes / tiles, (kLine + tiles - 1) / tiles, false, two_steps};
      LinearTile t{&op, &x, row, n, packed, at, ahead};
      rows_of<Dots>(t, end);
    });
  }
}

template <class Fn>
auto with_dots(const Fn& fn) {
  return use_byte_dots(HWY_TARGET) ? fn(ByteDots()) : fn(OtherDots());
}

int64_t packed_rows(DType t, int64_t m) {
  return with_dots([&](auto dots) { return packed_rows_of<decltype(dots)>(t, m); });
}

void linear_panels(const Linear& op, int64_t first, int64_t last, const PackedRows& x) {
  with_dots([&](auto dots) { all_panels<decltype(dots)>(op, first, last, x); });
}

Rates rates() {
  const bool dots = use_byte_dots(HWY_TARGET);
  if (kV == 1) return {100, 130, dots ? 400 : 170};
  if (kV == 2) return {60, 50, dots ? 200 : 80};
  return {50, 20, dots ? 80 : 30};
}

// Tiles that begin in [first, last) of the packed rows.
void interleave(const FoundRows& x, int64_t m, int64_t k, DType weights, float* out, int64_t first, int64_t last) {
  each_tile<OtherDots>(weights, m, [&](int64_t, int64_t row, int64_t n, int64_t packed) {
    if (packed < first || packed >= last) return;
    interleave_rows(x, row, n, tile_rows(n), k, out + packed * k);
  });
}

ActivationCodes activation_codes(DType weights) {
  return with_dots([&](auto dots) {
    using Dots = decltype(dots);
    return is_nibbles(weights) ? Dots::template Order<DType::int4>::kCodes : Dots::template Order<DType::int8>::kCodes;
  });
}

// Packed rows [first, last).
template <class Dots, DType T>
void quantise_rows(const FoundRows& x, int64_t m, int64_t k, const PackedRows& rows, int64_t first, int64_t last) {
  using Order = typename Dots::template Order<T>;
  static_assert(Order::kCodes.bytes() == sizeof(typename Order::Code));
  constexpr int32_t kZeroPoint = Dots::template kZeroPoint<T>;
  const int64_t blocks = round_up(k, kBlock) / kBlock;
  auto* const codes = static_cast<typename Order::Code*>(const_cast<void*>(rows.q));
  each_tile<Dots>(T, m, [&](int64_t, int64_t row, int64_t n, int64_t packed) {
    const int64_t wide = tile_rows(n);
    for (int64_t r = 0; r < wide; ++r) {
      if (packed + r < first || packed + r >= last) continue;
      const auto place = [&](int64_t b) { return codes + (packed * blocks + b * wide + r) * Order::kPerBlock; };
      const auto sums = [&] {
        if constexpr (T == DType::q4_1) return ScaledSums{const_cast<float*>(rows.block_sums) + packed * blocks + r, wide};
        else if constexpr (kZeroPoint != 0)
          return typename Dots::template OffsetsOf<T>{kZeroPoint, const_cast<int32_t*>(rows.offsets) + packed * blocks + r, wide};
        else return NoSums();
      };
      // Where a tile is wider than its rows, what it makes of the others is not used: they are zeros.
      const bool has = r < n;
      // Rows that lie anywhere are found by no prefetcher of the processor's.
      if (x.from && row + r + 1 < m)
        for (int64_t i = 0; i < k; i += kLine / 4) AERIE_PREFETCH(x[row + r + 1] + i);
      quantise_row(x[has ? row + r : 0], has ? k : 0, blocks, Order(), place, sums(), wide,
                   const_cast<float*>(rows.scale) + packed * Order::kCodes.scales(blocks) + r);
    }
  });
}

void quantise(const FoundRows& x, int64_t m, int64_t k, DType weights, const PackedRows& rows, int64_t first, int64_t last) {
  with_dots([&](auto dots) {
    using Dots = decltype(dots);
    const auto quantise_for = weights == DType::int8   ? quantise_rows<Dots, DType::int8>
                              : weights == DType::int4 ? quantise_rows<Dots, DType::int4>
                              : weights == DType::q4_1 ? quantise_rows<Dots, DType::q4_1>
                                                       : quantise_rows<Dots, DType::mxfp4>;
    quantise_for(x, m, k, rows, first, last);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace aerie::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace aerie::kernels::cpu {

HWY_EXPORT(linear_panels);
HWY_EXPORT(packed_rows);
HWY_EXPORT(interleave);
HWY_EXPORT(quantise);
HWY_EXPORT(activation_codes);
HWY_EXPORT(rates);

ActivationCodes activation_codes(DType weights) {
  if (weights == DType::int8 && use_matrix_unit()) return kWordCodes;
  return AERIE_DISPATCH(activation_codes)(weights);
}

namespace {

// One row of floats is read as it lies.
bool reads_unpacked(const Linear& op) { return op.x.rows == 1 && !is_integer(op.w.dtype) && !on_matrix_unit(op); }

int64_t count_packed(const Linear& op) {
  return on_matrix_unit(op) ? op.x.rows : AERIE_DISPATCH(packed_rows)(op.w.dtype, op.x.rows);
}

// Of rows packed as integers, in whole lines; of_blocks: their offsets, or block_sums: no weights have both.
struct IntegerBytes {
  int64_t codes, of_blocks, scales;
  explicit IntegerBytes(const Linear& op) {
    const ActivationCodes of = activation_codes(op.w.dtype);
    const int64_t packed = count_packed(op), k = k_padded(op.w.dtype, op.w.cols), blocks = k / kBlock;
    codes = round_up(packed * k * of.bytes(), kLine);
    of_blocks = round_up(packed * blocks * 4, kLine);
    scales = round_up(packed * of.scales(blocks) * 4, kLine);
  }
};

// An op's packed rows: bytes, where they lie in these, and the making of [first, last) of count_packed.
int64_t rows_bytes(const Linear& op) {
  if (reads_unpacked(op)) return 0;
  if (on_matrix_unit(op)) return round_up(matrix_rows_bytes(op), kLine);
  if (!is_integer(op.w.dtype)) return round_up(count_packed(op) * op.w.cols * 4, kLine);
  const IntegerBytes bytes(op);
  return bytes.codes + bytes.of_blocks + bytes.scales;
}

PackedRows rows_at(const Linear& op, char* memory) {
  if (on_matrix_unit(op)) return matrix_rows_at(op, memory);
  if (!is_integer(op.w.dtype)) return {static_cast<const float*>(reads_unpacked(op) ? op.x.data : memory)};
  const IntegerBytes bytes(op);
  char* const of_blocks = memory + bytes.codes;
  return {nullptr, memory, reinterpret_cast<int32_t*>(of_blocks), reinterpret_cast<float*>(of_blocks + bytes.of_blocks), reinterpret_cast<float*>(of_blocks)};
}

void make_rows(const Linear& op, const PackedRows& rows, int64_t first, int64_t last) {
  const FoundRows x{static_cast<const float*>(op.x.data), op.x.stride, rows.from};
  if (on_matrix_unit(op)) make_matrix_rows(op, rows, first, last);
  else if (is_integer(op.w.dtype)) AERIE_DISPATCH(quantise)(x, op.x.rows, op.w.cols, op.w.dtype, rows, first, last);
  else if (!reads_unpacked(op)) AERIE_DISPATCH(interleave)(x, op.x.rows, op.w.cols, op.w.dtype, const_cast<float*>(rows.x), first, last);
}

int64_t sums_bytes(const Linear& op) {
  return on_matrix_unit(op) ? round_up(matrix_sums_bytes(op.w.dtype, op.x.rows, op.w.cols), kLine) : 0;
}

}  // namespace

PreparedRows prepare_rows(const Linear& op, int64_t room, Scratch& scratch) {
  const int64_t before = round_up(room, kLine), sums = sums_bytes(op);
  PreparedRows done{{}, scratch.kept(), false};  // by an earlier task of this op on this thread
  done.kept = done.room != nullptr;
  if (!done.kept) {
    const int64_t bytes = before + sums + (scratch.shared() ? 0 : rows_bytes(op));
    if (bytes > 0) done.room = scratch.get(static_cast<size_t>(bytes));
  }
  auto* memory = static_cast<char*>(done.room);
  done.rows = rows_at(op, scratch.shared() ? static_cast<char*>(scratch.shared()) : memory + before + sums);
  done.rows.sums = reinterpret_cast<float*>(memory + before);
  if (!done.kept && !scratch.shared()) make_rows(op, done.rows, 0, count_packed(op));
  scratch.keep();
  return done;
}

int64_t packing_bytes(const Linear& op) { return sums_bytes(op) + rows_bytes(op); }

PackedRows pack_rows(const Linear& op, const int32_t* from, const int32_t* to, void* memory, bool again) {
  char* const at = static_cast<char*>(memory) + sums_bytes(op);
  // One row has its own place in x, where it may be read as it lies.
  const bool one = op.x.rows == 1 && from;
  Linear found = op;
  if (one) found.x = rows(op.x, from[0], 1);
  PackedRows packed = rows_at(found, at);
  packed.sums = static_cast<float*>(memory);
  packed.from = one ? nullptr : from;
  packed.to = to;
  if (!again) make_rows(found, packed, 0, count_packed(found));
  return packed;
}

// So many numbers take a thread some ten microseconds: then they are worth two waits for each other.
constexpr int64_t kWorthMakingTogether = 1 << 15;

int64_t shared_bytes(const Linear& op, int threads) {
  return threads > 1 && op.x.rows > 1 && op.x.rows * op.w.cols >= kWorthMakingTogether ? rows_bytes(op) : 0;
}

int32_t shared_parts(const Linear& op, int threads) { return static_cast<int32_t>(std::min<int64_t>(threads, count_packed(op))); }

void make_shared(const Linear& op, int32_t part, int threads, void* shared) {
  const int64_t rows = count_packed(op), parts = shared_parts(op, threads);
  make_rows(op, rows_at(op, static_cast<char*>(shared)), rows * part / parts, rows * (part + 1) / parts);
}

void linear_range(const Linear& op, int64_t first, int64_t last, const PackedRows& rows) {
  if (on_matrix_unit(op)) return linear_matrix_range(op, first, last, rows);
  AERIE_DISPATCH(linear_panels)(op, first, last, rows);
}

int64_t panels_at_once(const Linear& op) {
  return on_matrix_unit(op) ? matrix_panels_at_once(op.w.dtype, op.x.rows, op.w.cols) : op.x.rows <= 4 ? 4 : 2;
}

namespace {

int64_t panels_per_task(const Linear& op, int threads) {
  const int64_t panels = round_up(op.w.rows, kPanel) / kPanel;
  const bool unit = on_matrix_unit(op);
  const int64_t rows = std::max<int64_t>(op.x.rows / (unit ? matrix_speed(op.w.dtype) : 1), 1);
  const int64_t work = kPanel * op.w.cols * rows;  // multiply-adds a panel, or what takes as long
  // Long enough to be worth a hand-over between cores (some microseconds), short enough for a frame budget.
  const int64_t least = std::max<int64_t>(1, 200000 / std::max<int64_t>(work, 1));
  // With few rows it is the weights' way from memory that takes time: a weight's is that of some four rows' work.
  const int64_t time = work / rows * std::max<int64_t>(rows, 4);
  const int64_t most = std::max<int64_t>(1, 6000000 / std::max<int64_t>(time, 1));
  const int64_t share = threads > 1 ? (panels + threads * 8 - 1) / (threads * 8) : panels;
  // Whole groups of panels, so that the wide tiles are used; where two are too long, the tiles are of one. Two of
  // integers, a quarter of the time, never are.
  const bool integer = is_integer(op.w.dtype);
  const int64_t group = unit || most > 1 || integer || op.x.rows <= 4 ? panels_at_once(op) : 1;
  return std::min(round_up(std::clamp(share, least, std::max(least, most)), group), panels);
}

}  // namespace

int64_t weights_read(const Linear& op) { return data_bytes(op.w.dtype, Layout::panel16, op.w.rows, op.w.cols); }

int64_t estimate(const Linear& op) {
  const Rates core = AERIE_DISPATCH(rates)();
  const int64_t products = op.w.rows * op.w.cols * op.x.rows;
  return std::max(weights_read(op) / core.bytes,
                  products / (is_integer(op.w.dtype) ? core.integers : core.floats) / (on_matrix_unit(op) ? matrix_speed(op.w.dtype) : 1));
}

int32_t tasks(const Linear& op, int threads) {
  const int64_t panels = round_up(op.w.rows, kPanel) / kPanel, per = panels_per_task(op, threads);
  return static_cast<int32_t>((panels + per - 1) / per);
}

void run(const Linear& op, int32_t task, int threads, Scratch& scratch) {
  const int64_t panels = round_up(op.w.rows, kPanel) / kPanel, per = panels_per_task(op, threads);
  const int64_t first = task * per, last = std::min(panels, first + per);
  linear_range(op, first, last, prepare_rows(op, 0, scratch).rows);
}

}  // namespace aerie::kernels::cpu
#endif

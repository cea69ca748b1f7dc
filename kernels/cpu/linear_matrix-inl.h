// Tiles of Linear for bf16, int8 and int4 weights where the processor multiplies tiles of 16 rows (matrix_unit.h), and the rows that
// they read. A panel's lines are already what the unit wants on its right side: 16 of them are a tile.
//
// Order of every output element: int8 and int4 as in linear.cc, bit for bit. bf16: activations are two bf16, the nearest and what is left of it (relative
// error up to 2^-18); for every 32 k ascending, of the first and then of the second, the chains of even and of odd k from zero,
// k ascending, and sum + (even + odd).
#include "hwy/highway.h"
#include "kernels/cpu/linear_float-inl.h"
#include "kernels/cpu/linear_int-inl.h"
#include "kernels/cpu/linear_matrix.h"

#if defined(AERIE_LINEAR_MATRIX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef AERIE_LINEAR_MATRIX_INL_H_
#undef AERIE_LINEAR_MATRIX_INL_H_
#else
#define AERIE_LINEAR_MATRIX_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace aerie::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Registers: 0 to 3 are the sums of one tile of rows and four panels, or of two and two; 4 and 5 hold rows, 6 and 7 panels.
template <class Tiles, DType T, int R, int P>
HWY_INLINE void add_products(Tiles& tiles, const uint8_t* w, int64_t apart, const char* x, const char* x1, int64_t part,
                            const uint8_t* far, int64_t rate) {
  const auto fetch = [&](int64_t p) HWY_ATTR {
    AERIE_UNROLL for (int64_t j = 0; j < kSide; ++j) tiles.fetch(far + p * apart + j * rate);
  };
  constexpr auto add = []<int C, int A, int B>(Tiles& t) HWY_ATTR {
    if constexpr (T == DType::bf16) t.template add_bf16<C, A, B>();
    else t.template add_int8<C, A, B>();
  };
  if constexpr (R == 1) {
    tiles.template load<4>(x, kLine);
    if constexpr (matrix_parts(T) == 2) tiles.template load<5>(x + part, kLine);
    const auto panel = [&]<int I>() HWY_ATTR {
      if constexpr (I < P) {
        fetch(I);
        tiles.template load<6 + I % 2>(w + I * apart, kLine);
        add.template operator()<I, 4, 6 + I % 2>(tiles);
        if constexpr (matrix_parts(T) == 2) add.template operator()<I, 5, 6 + I % 2>(tiles);
      }
    };
    panel.template operator()<0>();
    panel.template operator()<1>();
    panel.template operator()<2>();
    panel.template operator()<3>();
  } else {
    fetch(0);
    tiles.template load<6>(w, kLine);
    if constexpr (P == 2) fetch(1);
    if constexpr (P == 2) tiles.template load<7>(w + apart, kLine);
    const auto both = [&](const char* of_first, const char* of_second) HWY_ATTR {
      tiles.template load<4>(of_first, kLine);
      tiles.template load<5>(of_second, kLine);
      add.template operator()<0, 4, 6>(tiles);
      if constexpr (P == 2) add.template operator()<1, 4, 7>(tiles);
      add.template operator()<2, 5, 6>(tiles);
      if constexpr (P == 2) add.template operator()<3, 5, 7>(tiles);
    };
    both(x, x1);
    if constexpr (matrix_parts(T) == 2) both(x + part, x1 + part);
  }
}

template <class Tiles, DType T, int R, int P>
HWY_NOINLINE void matrix_tile(Tiles& tiles, const LinearTile& t) {
  const int64_t k = t.op->w.cols, size = data_bytes(T, Layout::panel16, kPanel, k), full = size / kTileBytes;
  const int64_t part = tile_height(t.op->x.rows) * kLine, step = matrix_parts(T) * part, row_bytes = matrix_row_bytes(T, k);
  const auto* w = static_cast<const uint8_t*>(t.op->w.data) + t.panel * size;
  const char* x = reinterpret_cast<const char*>(t.x->q) + t.packed * row_bytes;
  const char* x1 = R == 1 ? x : x + kSide * row_bytes;
  tiles.template zero<0>();
  tiles.template zero<1>();
  tiles.template zero<2>();
  tiles.template zero<3>();
  for (int64_t m = 0; m < t.rows; ++m)
    AERIE_UNROLL for (int64_t p = 0; p < P; ++p)
      tiles.fetch_to_write(static_cast<const float*>(t.op->out.data) + (t.row + m) * t.op->out.stride + (t.panel + p) * kPanel);
  int64_t ahead = t.ahead.offset;
  const int64_t turn = t.ahead.turn(size) / kSide;
  for (int64_t i = 0; i < full; ++i, x += step, x1 += step, ahead += kSide * t.ahead.rate) {
    if (t.ahead.follow && i == turn) ahead += t.ahead.jump(size, P);
    add_products<Tiles, T, R, P>(tiles, w + i * kTileBytes, size, x, x1, part, w + ahead, t.ahead.rate);
  }
  if (const int64_t left = size - full * kTileBytes; left > 0) {
    alignas(64) uint8_t padded[P][kTileBytes] = {};
    for (int p = 0; p < P; ++p) __builtin_memcpy(padded[p], w + p * size + full * kTileBytes, static_cast<size_t>(left));
    add_products<Tiles, T, R, P>(tiles, padded[0], kTileBytes, x, x1, part, w + ahead, t.ahead.rate);
  }
  alignas(64) float sums[R * kSide * P * kPanel];
  constexpr int64_t width = P * kPanel;
  const auto store = [&]<int C>() HWY_ATTR {
    constexpr int r = R == 1 ? 0 : C / 2, p = R == 1 ? C : C % 2;
    if constexpr (p < P) tiles.template store<C>(sums + r * kSide * width + p * kPanel, width * 4);
  };
  store.template operator()<0>();
  store.template operator()<1>();
  store.template operator()<2>();
  store.template operator()<3>();
  if constexpr (T == DType::int8) {
    const D d;
    const hn::RebindToSigned<D> di;
    const float* scales = static_cast<const float*>(t.op->w.scales) + t.panel * kPanel;
    const float* row_scales = t.x->scale + t.packed;
    for (int64_t m = 0; m < t.rows; ++m)
      for (int64_t j = 0; j < width; j += kN) {
        float* at = sums + m * width + j;
        const V sum = hn::ConvertTo(d, hn::BitCast(di, hn::Load(d, at)));
        hn::Store(hn::Mul(hn::Mul(sum, hn::Load(d, scales + j)), hn::Set(d, row_scales[m])), d, at);
      }
  }
  finish(t, P, sums);
}

// Block b of int4 weights as two lots of 16 k, sixteen times what they stand for: a nibble less 8 in the upper half of a byte.
HWY_INLINE void unpack_block(const uint8_t* w, uint8_t* out) {
  const hn::Repartition<uint8_t, D> d8;
  const hn::Repartition<uint16_t, D> d16;
  const auto sign = hn::Set(d8, 0x88), upper = hn::Set(d8, 0xf0);
  AERIE_UNROLL for (size_t i = 0; i < 4 * kLine; i += 4 * kN) {
    const auto bytes = hn::Load(d8, w + i);
    hn::Store(hn::And(hn::Xor(hn::BitCast(d8, hn::ShiftLeft<4>(hn::BitCast(d16, bytes))), sign), upper), d8, out + i);
    hn::Store(hn::And(hn::Xor(bytes, sign), upper), d8, out + 4 * kLine + i);
  }
}

// Rows (x: 32 codes each, lines apart) with a block of unpacked weights. 4 and 6 hold them, C the sums.
template <class Tiles, int C>
HWY_INLINE void multiply_block(Tiles& tiles, const char* x, const uint8_t* codes, int32_t* products) {
  tiles.template zero<C>();
  tiles.template load<4>(x, kLine);
  tiles.template load<6>(codes, kLine);
  tiles.template add_int8<C, 4, 6>();
  tiles.template store<C>(products, kPanel * 4);
}

template <int M>
HWY_INLINE void add_block(const int32_t* products, const hwy::float16_t* scales, V (&total)[M][kV]) {
  const D d;
  const hn::RebindToSigned<D> di;
  const hn::Rebind<hwy::float16_t, D> d16;
  AERIE_UNROLL for (size_t v = 0; v < kV; ++v) {
    const V scale = hn::Mul(hn::PromoteTo(d, hn::Load(d16, scales + v * kN)), hn::Set(d, 0x1p-4f));
    AERIE_UNROLL for (int m = 0; m < M; ++m)
      total[m][v] = hn::MulAdd(hn::ConvertTo(d, hn::Load(di, products + m * kPanel + v * kN)), scale, total[m][v]);
  }
}

// Up to M rows with a panel of int4 weights: for every block an exact sum, then as tile_int4. While some blocks are added up, the
// unit multiplies the next, and those behind them are unpacked: what goes through memory takes long to be seen by the unit.
template <class Tiles, int M>
HWY_NOINLINE void matrix_tile_int4(Tiles& tiles, const LinearTile& t) {
  constexpr int64_t kApart = 4, kRing = 2 * kApart;
  const int64_t k = t.op->w.cols, blocks = k_padded(DType::int4, k) / kBlock, size = blocks * kBlockBytes<true>;
  const auto* w = static_cast<const uint8_t*>(t.op->w.data) + t.panel * size;
  const auto* scales = static_cast<const hwy::float16_t*>(t.op->w.scales) + t.panel * blocks * kPanel;
  const char* x = reinterpret_cast<const char*>(t.x->q) + t.packed * matrix_row_bytes(DType::int4, k);
  const int64_t row_tile = tile_height(t.op->x.rows) * kLine;  // of two blocks
  alignas(64) uint8_t codes[kRing][kBlockBytes<false>];
  alignas(64) int32_t products[kRing][M * kPanel] = {};
  V total[M][kV];
  clear(total);
  int64_t ahead = t.ahead.offset;
  const int64_t turn = t.ahead.turn(size) / (kBlockBytes<true> / kLine);
  for (int64_t b = 0; b < kRing && b < blocks; ++b) unpack_block(w + b * kBlockBytes<true>, codes[b]);
  for (int64_t b = 0; b < kApart && b < blocks; ++b)
    multiply_block<Tiles, 0>(tiles, x + b / 2 * row_tile + b % 2 * kBlock, codes[b], products[b]);
  for (int64_t b = 0; b < blocks; ++b) {
    if (t.ahead.follow && b == turn) ahead += t.ahead.jump(size, 1);
    AERIE_UNROLL for (int64_t j = 0; j < kBlockBytes<true> / kLine; ++j) AERIE_PREFETCH(w + ahead + j * t.ahead.rate);
    AERIE_PREFETCH(reinterpret_cast<const char*>(scales) + ahead / 8);
    ahead += kBlockBytes<true> / kLine * t.ahead.rate;
    add_block(products[b % kRing], scales + b * kPanel, total);
    if (const int64_t next = b + kApart; next < blocks)
      multiply_block<Tiles, 0>(tiles, x + next / 2 * row_tile + next % 2 * kBlock, codes[next % kRing], products[next % kRing]);
    if (b + kRing < blocks) unpack_block(w + (b + kRing) * kBlockBytes<true>, codes[b % kRing]);
  }
  alignas(64) float sums[M * kPanel];
  AERIE_UNROLL for (int m = 0; m < M; ++m) {
    const V row_scale = hn::Set(D(), t.x->scale[t.packed + (m < t.rows ? m : 0)]);
    AERIE_UNROLL for (size_t v = 0; v < kV; ++v) hn::Store(hn::Mul(total[m][v], row_scale), D(), sums + m * kPanel + v * kN);
  }
  finish(t, 1, sums);
}

// One shape of tiles serves all of an op, since changing it takes long: of its rows where they are fewer than a tile's.
template <class Tiles>
typename Tiles::Shapes shapes_for(DType weights, int64_t rows) {
  typename Tiles::Shapes s;
  for (int i = 0; i < 8; ++i) s.row_bytes[i] = kLine, s.rows[i] = static_cast<uint8_t>(i < 6 ? tile_height(rows) : kSide);
  if (weights == DType::int4) s.row_bytes[4] = kBlock, s.rows[6] = kBlock / 4;
  return s;
}

// For all panels [t.panel, last).
template <class Tiles, DType T>
void matrix_sweep(Tiles& tiles, LinearTile& t, int64_t last) {
  if constexpr (T == DType::int4) {
    const bool low = tile_height(t.op->x.rows) <= 8;
    for (; t.panel < last; ++t.panel) low ? matrix_tile_int4<Tiles, 8>(tiles, t) : matrix_tile_int4<Tiles, 16>(tiles, t);
  } else if (t.rows <= kSide) {
    for (; t.panel + 4 <= last; t.panel += 4) matrix_tile<Tiles, T, 1, 4>(tiles, t);
    for (; t.panel < last; ++t.panel) matrix_tile<Tiles, T, 1, 1>(tiles, t);
  } else {
    for (; t.panel + 2 <= last; t.panel += 2) matrix_tile<Tiles, T, 2, 2>(tiles, t);
    for (; t.panel < last; ++t.panel) matrix_tile<Tiles, T, 2, 1>(tiles, t);
  }
}

// Rows go through in groups. Of several, a chunk of two panels that stays in the second-level cache meets all, while each of them
// fetches its share of the next chunk.
template <class Tiles>
void all_matrix_panels(const Linear& op, int64_t first, int64_t last, const PackedRows& x) {
  const DType type = op.w.dtype;
  const int64_t m = op.x.rows, most = matrix_rows(type), groups = (m + most - 1) / most;
  const int64_t bytes = data_bytes(type, Layout::panel16, kPanel, op.w.cols), chunk = groups == 1 ? last - first : 2;
  if (m == 0) return;  // no shape has no rows
  Tiles tiles(shapes_for<Tiles>(type, m));
  for (int64_t at = first; at < last; at += chunk) {
    const int64_t end = at + chunk < last ? at + chunk : last;
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t row = g * most, rows = m - row < most ? m - row : most;
      const Ahead ahead = groups == 1 ? Ahead{4096, kLine, true, false}
                                      : Ahead{chunk * bytes + g * bytes / groups, (kLine + groups - 1) / groups, false, false};
      LinearTile t{&op, &x, row, rows, row, at, ahead};
      if (type == DType::bf16) matrix_sweep<Tiles, DType::bf16>(tiles, t, end);
      else if (type == DType::int8) matrix_sweep<Tiles, DType::int8>(tiles, t, end);
      else matrix_sweep<Tiles, DType::int4>(tiles, t, end);
    }
  }
}

// Rows of activations, in two bf16 each, to a tile of n: [tile's columns][part][row][32].
inline void pack_matrix_floats(const float* x, int64_t stride, int64_t rows, int64_t n, int64_t k, char* out) {
  const D d;
  const hn::RebindToUnsigned<D> du;
  const hn::Rebind<uint16_t, D> d16;
  const auto to_bf16 = [&](V v) HWY_ATTR {  // nearest, ties to even, in the upper half; NaN stays one
    const auto bits = hn::BitCast(du, v);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1u));
    const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fffu)));
    return hn::IfThenElse(hn::RebindMask(du, hn::Ne(v, v)), hn::Set(du, 0x7fc00000u), hn::And(rounded, hn::Set(du, 0xffff0000u)));
  };
  const auto put = [&](hn::VFromD<decltype(du)> v, char* to) HWY_ATTR {
    hn::StoreU(hn::TruncateTo(d16, hn::ShiftRight<16>(v)), d16, reinterpret_cast<uint16_t*>(to));
  };
  constexpr int64_t kDepth = kLine / 2;
  for (int64_t m = 0; m < rows; ++m)
    for (int64_t first = 0; first < k; first += kDepth) {
      char* part = out + (first / kDepth * 2 * n + m) * kLine;
      const float* from = x + m * stride + first;
      alignas(64) float padded[kDepth] = {};
      if (k - first < kDepth) {
        for (int64_t i = 0; i < k - first; ++i) padded[i] = from[i];
        from = padded;
      }
      for (int64_t i = 0; i < kDepth; i += kN) {
        const V v = hn::LoadU(d, from + i);
        const auto nearest = to_bf16(v);
        put(nearest, part + 2 * i);
        put(to_bf16(hn::Sub(v, hn::BitCast(d, nearest))), part + n * kLine + 2 * i);
      }
    }
}

// The same as bytes: [tile's columns][row][64].
inline void pack_matrix_codes(const float* x, int64_t stride, int64_t rows, int64_t n, int64_t k, char* out, float* scales) {
  const int64_t blocks = (k + kBlock - 1) / kBlock;
  for (int64_t m = 0; m < rows; ++m) {
    const auto place = [&](int64_t b) { return reinterpret_cast<int8_t*>(out + (b / 2 * n + m) * kLine + b % 2 * kBlock); };
    int32_t offset;
    scales[m] = quantise_span<false>(x + m * stride, k, ActivationCodes().most, place, 1, &offset);
    if (blocks % 2 != 0) __builtin_memset(place(blocks), 0, kBlock);
  }
}

// Tile after tile. What lies behind the last row is multiplied with the others, and nobody looks at it.
inline void pack_all_matrix_rows(const Linear& op, char* out, float* scales) {
  const int64_t m = op.x.rows, k = op.w.cols, height = tile_height(m), bytes = matrix_row_bytes(op.w.dtype, k);
  for (int64_t row = 0; row < m; row += height) {
    const float* x = static_cast<const float*>(op.x.data) + row * op.x.stride;
    const int64_t rows = m - row < height ? m - row : height;
    if (op.w.dtype == DType::bf16) pack_matrix_floats(x, op.x.stride, rows, height, k, out + row * bytes);
    else pack_matrix_codes(x, op.x.stride, rows, height, k, out + row * bytes, scales + row);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace aerie::kernels::cpu
HWY_AFTER_NAMESPACE();
#endif

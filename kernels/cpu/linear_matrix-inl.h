// Linear for bf16, int8 and weights of 4 bits where the processor multiplies tiles of 16 rows (matrix_unit.h). A panel's lines are already
// what the unit wants on its right side: 16 of them are a tile.
//
// Order of every output element: int8 as in linear.cc for machines without VNNI, weights of 4 bits as there, bit for bit. bf16: activations are two
// bf16, the nearest and what is left of it (relative error up to 2^-18, but for the smallest and largest of f32, which become 0 and no
// number); for every 32 k ascending, of the first and then of the second, the chains of even and of odd k from zero, k ascending, and
// sum + (even + odd).
#include "hwy/highway.h"
#include "kernels/cpu/matrix_nibbles-inl.h"
#include "kernels/cpu/matrix_rows-inl.h"
#include "kernels/cpu/matrix_tile-inl.h"

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

// Outputs of rows [first, last): they are in many places, and each store would wait for its line.
template <class Tiles>
void fetch_outputs(Tiles& tiles, const Linear& op, const PackedRows& x, int64_t first, int64_t last, int64_t panel, int64_t panels) {
  for (int64_t row = first; row < last; ++row)
    for (int64_t p = 0; p < panels; ++p)
      tiles.fetch_to_write(static_cast<const float*>(op.out.data) + x.out_row(row) * op.out.stride + (panel + p) * kPanel);
}

// Steps [from, from + steps) of k.
struct MatrixPiece {
  int64_t from, steps;
  MatrixFetch fetch;
};

// P panels from `panel` on meet the rows of an op. sums: (row, panel, lane).
template <class Tiles, DType T, int P>
class MatrixPanels {
 public:
  MatrixPanels(Tiles& tiles, const Linear& op, const PackedRows& x, int64_t panel)
      : tiles_(tiles), op_(op), x_(x), panel_(panel), size_(data_bytes(T, Layout::panel16, kPanel, op.w.cols)), steps_(size_ / kTileBytes) {}

  // Few rows, in streams side by side.
  void stream(float* sums) {
    constexpr int64_t kAhead = 8;
    // Behind a panel's end lies the next one, which the stream beside this has.
    const MatrixPiece all{0, steps_, {weights(0, kAhead), kSide, steps_ > kAhead ? steps_ - kAhead : 0, (P - 1) * size_}};
    if (steps_ > 0) multiply(0, all, sums);
    end(0, sums);
  }

  // Many rows, one group after the other; each asks for its share of what comes next.
  void multiply_groups(MatrixPiece piece, float* sums) {
    const int64_t m = op_.x.rows, groups = (m + kGroup - 1) / kGroup;
    piece.fetch.lines = (kSide + groups - 1) / groups;
    for (int64_t row = 0; row < m; row += kGroup, sums += 2 * kSide * kWidth) {
      if (piece.steps > 0) multiply(row, piece, sums);
      if (piece.from + piece.steps == steps_) end(row, sums);
      piece.fetch.at += piece.steps * piece.fetch.lines * kLine;
    }
  }

 private:
  static constexpr int64_t kWidth = P * kPanel, kGroup = group_rows(T);

  // The tile of panel panel_ + `panel`.
  const uint8_t* weights(int64_t panel, int64_t step) const {
    return static_cast<const uint8_t*>(op_.w.data) + (panel_ + panel) * size_ + step * kTileBytes;
  }
  const char* rows_at(int64_t row, int64_t step) const {
    return reinterpret_cast<const char*>(x_.q) + row * row_bytes() + step * matrix_parts(T) * height() * kLine;
  }
  int64_t row_bytes() const { return matrix_row_bytes(T, op_.w.cols); }
  // From a tile of rows to the next, or from one part of it to the other.
  int64_t apart() const { return sums_apart(T) ? height() * kLine : kSide * row_bytes(); }
  int64_t height() const { return tile_height(op_.x.rows); }

  void multiply(int64_t row, const MatrixPiece& p, float* sums) {
    if (p.from + p.steps == steps_) fetch_outputs(tiles_, op_, x_, row, op_.x.rows - row < kGroup ? op_.x.rows : row + kGroup, panel_, P);
    run(row, {weights(0, p.from), size_, rows_at(row, p.from), apart(), height(), p.steps, sums, p.from == 0, p.fetch});
  }
  // What is left of k behind the whole tiles; then the outputs.
  void end(int64_t row, float* sums) {
    const int64_t left = op_.x.rows - row, rows = left < kGroup ? left : kGroup;
    if (size_ % kTileBytes != 0) multiply_rest(row, sums);
    if constexpr (T == DType::int8) scale(row, rows, sums);
    finish({&op_, &x_, row, rows, row, panel_, {}}, P, sums);
  }
  void multiply_rest(int64_t row, float* sums) {
    alignas(64) uint8_t padded[P][kTileBytes] = {};
    for (int p = 0; p < P; ++p)
      __builtin_memcpy(padded[p], weights(p, steps_), static_cast<size_t>(size_ - steps_ * kTileBytes));
    run(row, {padded[0], kTileBytes, rows_at(row, steps_), apart(), height(), 1, sums, steps_ == 0, {padded[0], 0}});
  }
  void run(int64_t row, const MatrixTile& t) {
    if (sum_tiles(T, op_.x.rows) == 1 || (!sums_apart(T) && op_.x.rows - row <= kSide)) return matrix_steps<Tiles, T, 1, P>(tiles_, t);
    if constexpr (P <= 2) matrix_steps<Tiles, T, 2, P>(tiles_, t);
  }

  // The sums of high bytes and of low ones are one, which fits (ActivationCodes).
  void scale(int64_t row, int64_t rows, float* sums) {
    const D d;
    const hn::RebindToSigned<D> di;
    const float* scales = static_cast<const float*>(op_.w.scales) + panel_ * kPanel;
    const int64_t second = (stacked(T, op_.x.rows) ? op_.x.rows : kSide) * kWidth;
    for (int64_t m = 0; m < rows; ++m, sums += kWidth) {
      const V row_scale = hn::Set(d, x_.scale[row + m]);
      AERIE_UNROLL for (size_t j = 0; j < kWidth; j += kN) {
        const VI high = hn::BitCast(di, hn::Load(d, sums + j)), low = hn::BitCast(di, hn::Load(d, sums + second + j));
        const V sum = hn::ConvertTo(d, hn::Add(hn::ShiftLeft<8>(high), low));
        hn::Store(hn::Mul(hn::Mul(sum, hn::Load(d, scales + j)), row_scale), d, sums + j);
      }
    }
  }

  Tiles& tiles_;
  const Linear& op_;
  const PackedRows& x_;
  const int64_t panel_, size_, steps_;
};

// Of k so much at once that all rows stay in the second-level cache; where that is not all of it, they meet a lot of panels before
// the next part.
template <class Tiles, DType T>
void matrix_lots(Tiles& tiles, const Linear& op, int64_t first, int64_t last, const PackedRows& x, float* sums) {
  const auto* w = static_cast<const uint8_t*>(op.w.data);
  const int64_t size = data_bytes(T, Layout::panel16, kPanel, op.w.cols), all = size / kTileBytes, most = matrix_steps_at_once(T, op.x.rows);
  const int64_t lot = matrix_panels_at_once(T, op.x.rows, op.w.cols), of_panel = sum_tiles(T, op.x.rows) * kSide * kPanel;
  for (int64_t begin = first; begin < last; begin += lot) {
    const int64_t end = begin + lot < last ? begin + lot : last;
    for (int64_t from = 0; from == 0 || from < all; from += most) {
      const int64_t steps = all - from < most ? all - from : most;
      const uint8_t* then = from + steps < all ? w + begin * size + (from + steps) * kTileBytes : w + end * size;
      for (int64_t p = begin; p < end; p += 2) {
        const MatrixPiece piece{from, steps, {p + 2 < end ? w + (p + 2) * size + from * kTileBytes : then}};
        float* at = sums + (p - begin) * of_panel;
        if (p + 2 <= end) MatrixPanels<Tiles, T, 2>(tiles, op, x, p).multiply_groups(piece, at);
        else MatrixPanels<Tiles, T, 1>(tiles, op, x, p).multiply_groups(piece, at);
      }
    }
  }
}

template <class Tiles, DType T>
void matrix_panels_of(Tiles& tiles, const Linear& op, int64_t first, int64_t last, const PackedRows& x, float* sums) {
  if (op.x.rows > group_rows(T)) return matrix_lots<Tiles, T>(tiles, op, first, last, x, sums);
  int64_t panel = first;
  if (sum_tiles(T, op.x.rows) == 1)
    for (; panel + 4 <= last; panel += 4) MatrixPanels<Tiles, T, 4>(tiles, op, x, panel).stream(sums);
  for (; panel + 2 <= last; panel += 2) MatrixPanels<Tiles, T, 2>(tiles, op, x, panel).stream(sums);
  if (panel < last) MatrixPanels<Tiles, T, 1>(tiles, op, x, panel).stream(sums);
}

// Panel after panel: some blocks of it are unpacked and meet all rows, while the next are unpacked.
template <class Tiles, DType T>
void matrix_panels_nibbles(Tiles& tiles, const Linear& op, int64_t first, int64_t last, const PackedRows& x, float* sums) {
  constexpr int64_t kAtOnce = 16;
  const int64_t m = op.x.rows, height = tile_height(m), blocks = k_padded(T, op.w.cols) / kBlock;
  const int64_t row_bytes = matrix_row_bytes(T, op.w.cols), tile_bytes = height * kLine;
  alignas(64) uint8_t codes[2][kAtOnce * kBlockBytes<DType::int8>];
  int now = 0;
  const auto unpacking = [&](int64_t panel, int64_t b) {  // blocks from b on, to where they wait for their turn
    const auto* w = static_cast<const uint8_t*>(op.w.data) + (panel * blocks + b) * kBlockBytes<T>;
    return Unpacking{w, codes[1 - now], panel >= last ? 0 : blocks - b < kAtOnce ? blocks - b : kAtOnce};
  };
  const Unpacking start = unpacking(first, 0);
  for (int64_t b = 0; b < start.blocks; ++b) start.one<T>(tiles, b);
  for (int64_t panel = first; panel < last; ++panel) {
    const auto* scales = static_cast<const BlockScale<T>*>(op.w.scales) + panel * blocks * kBlockScales<T>;
    for (int64_t b = 0; b < blocks; b += kAtOnce) {
      now = 1 - now;
      const int64_t n = blocks - b < kAtOnce ? blocks - b : kAtOnce;
      const Unpacking next = b + n < blocks ? unpacking(panel, b + n) : unpacking(panel + 1, 0);
      if (b + n == blocks) fetch_outputs(tiles, op, x, 0, m, panel, 1);
      for (int64_t row = 0; row < m; row += height) {
        const char* rows = reinterpret_cast<const char*>(x.q) + row * row_bytes + b / 2 * tile_bytes;
        const int64_t of_rows = row * (round_up(op.w.cols, kLine) / kBlock) + b * height;
        matrix_tile_nibbles<T>(tiles, rows, tile_bytes, x.scale + of_rows, x.block_sums + of_rows, height, codes[now], scales + b * kBlockScales<T>,
                               n, b == 0, sums + row * kPanel, row + height < m ? Unpacking{} : next);
      }
    }
    finish({&op, &x, 0, m, 0, panel, {}}, 1, sums);
  }
}

// One shape of tiles serves all of an op, since changing it takes long: of its rows where they are fewer than a tile's.
template <class Tiles>
typename Tiles::Shapes shapes_for(DType weights, int64_t m) {
  typename Tiles::Shapes s;
  const int64_t height = stacked(weights, m) ? 2 * m : tile_height(m);
  for (int i = 0; i < 8; ++i) s.row_bytes[i] = kLine, s.rows[i] = static_cast<uint8_t>(i < 6 ? height : kSide);
  if (is_nibbles(weights)) s.row_bytes[4] = kBlock, s.rows[6] = kBlock / 4;
  return s;
}

// sums: matrix_sums_bytes.
template <class Tiles>
void all_matrix_panels(const Linear& op, int64_t first, int64_t last, const PackedRows& x, float* sums) {
  const DType type = op.w.dtype;
  const int64_t m = op.x.rows;
  if (m == 0) return;  // no shape has no rows
  Tiles tiles(shapes_for<Tiles>(type, m));
  if (type == DType::bf16) matrix_panels_of<Tiles, DType::bf16>(tiles, op, first, last, x, sums);
  else if (type == DType::int8) matrix_panels_of<Tiles, DType::int8>(tiles, op, first, last, x, sums);
  else if (type == DType::int4) matrix_panels_nibbles<Tiles, DType::int4>(tiles, op, first, last, x, sums);
  else if (type == DType::q4_1) matrix_panels_nibbles<Tiles, DType::q4_1>(tiles, op, first, last, x, sums);
  else matrix_panels_nibbles<Tiles, DType::mxfp4>(tiles, op, first, last, x, sums);
}

}  // namespace HWY_NAMESPACE
}  // namespace aerie::kernels::cpu
HWY_AFTER_NAMESPACE();
#endif

// bf16 and int8 weights on the matrix unit.
#include "hwy/highway.h"
#include "kernels/cpu/linear_float-inl.h"
#include "kernels/cpu/linear_matrix.h"

#if defined(AERIE_MATRIX_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef AERIE_MATRIX_TILE_INL_H_
#undef AERIE_MATRIX_TILE_INL_H_
#else
#define AERIE_MATRIX_TILE_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace aerie::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// What is asked for meanwhile: so many lines a step in every panel. From step `turn` on they lie `jump` bytes further.
struct MatrixFetch {
  const uint8_t* at;
  int64_t lines = kSide, turn = -1, jump = 0;
};

struct MatrixTile {
  const uint8_t* w;  // the first tile of the first panel
  int64_t size;      // bytes from panel to panel
  const char* x;     // the first tile of rows
  int64_t rows;      // bytes to the next one, or to the rows' second part
  int64_t height;    // rows of a tile
  int64_t steps;     // tiles along k
  float* sums;       // (row of a tile, panel, lane); the second parts' behind the first's
  bool begin;        // else they are added to
  MatrixFetch fetch;
};

// fn<register>(row tile, panel) for the sums of R tiles of rows (or of their parts) and P panels: one and four, or two and two, or
// fewer panels.
template <int R, int P, class Fn>
HWY_INLINE void each_sum(const Fn& fn) {
  const auto one = [&]<int C>() HWY_ATTR {
    constexpr int r = R == 1 ? 0 : C / 2, p = R == 1 ? C : C % 2;
    if constexpr (p < P) fn.template operator()<C>(r, p);
  };
  one.template operator()<0>();
  one.template operator()<1>();
  one.template operator()<2>();
  one.template operator()<3>();
}

template <class Tiles, DType T, int C, int A, int B>
HWY_INLINE void add_tile(Tiles& tiles) {
  if constexpr (T == DType::bf16) tiles.template add_bf16<C, A, B>();
  else tiles.template add_int8<C, A, B>();
}

// One step of k. Registers 0 to 3 are sums, 4 and 5 hold rows, 6 and 7 panels.
template <class Tiles, DType T, int R, int P>
HWY_INLINE void add_products(Tiles& tiles, const MatrixTile& t, const uint8_t* w, const char* x, const uint8_t* far) {
  const auto load_panel = [&]<int B>(int64_t p) HWY_ATTR {
    const uint8_t* line = far + p * t.size;
    if (t.fetch.lines == kSide) {
      AERIE_UNROLL for (int64_t j = 0; j < kSide; ++j) {  // in two steps (fetching.h)
        tiles.fetch(line + j * kLine);
        tiles.fetch_near(w + p * t.size + kTileBytes + j * kLine);
      }
    } else {
      for (int64_t j = 0; j < t.fetch.lines; ++j) tiles.fetch(line + j * kLine);
    }
    tiles.template load<B>(w + p * t.size, kLine);
  };
  if constexpr (R == 1) {
    constexpr bool kTwice = matrix_parts(T) == 2 && !sums_apart(T);
    tiles.template load<4>(x, kLine);
    if constexpr (kTwice) tiles.template load<5>(x + t.height * kLine, kLine);
    each_sum<R, P>([&]<int C>(int, int p) HWY_ATTR {
      load_panel.template operator()<6 + C % 2>(p);
      add_tile<Tiles, T, C, 4, 6 + C % 2>(tiles);
      if constexpr (kTwice) add_tile<Tiles, T, C, 5, 6 + C % 2>(tiles);
    });
  } else {
    load_panel.template operator()<6>(0);
    if constexpr (P == 2) load_panel.template operator()<7>(1);
    const auto part = [&](const char* at) HWY_ATTR {
      tiles.template load<4>(at, kLine);
      tiles.template load<5>(at + t.rows, kLine);
      each_sum<R, P>([&]<int C>(int, int) HWY_ATTR { add_tile<Tiles, T, C, 4 + C / 2, 6 + C % 2>(tiles); });
    };
    part(x);
    if constexpr (matrix_parts(T) == 2 && !sums_apart(T)) part(x + t.height * kLine);
  }
}

template <class Tiles, DType T, int R, int P>
HWY_NOINLINE void matrix_steps(Tiles& tiles, const MatrixTile& t) {
  constexpr int64_t width = P * kPanel;
  each_sum<R, P>([&]<int C>(int r, int p) HWY_ATTR {
    if (t.begin) tiles.template zero<C>();
    else tiles.template load<C>(t.sums + r * kSide * width + p * kPanel, width * 4);
  });
  const uint8_t* far = t.fetch.at;
  const int64_t step = matrix_parts(T) * t.height * kLine;
  for (int64_t i = 0; i < t.steps; ++i, far += t.fetch.lines * kLine) {
    if (i == t.fetch.turn) far += t.fetch.jump;
    add_products<Tiles, T, R, P>(tiles, t, t.w + i * kTileBytes, t.x + i * step, far);
  }
  each_sum<R, P>([&]<int C>(int r, int p) HWY_ATTR {
    tiles.template store<C>(t.sums + r * kSide * width + p * kPanel, width * 4);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace aerie::kernels::cpu
HWY_AFTER_NAMESPACE();
#endif

// Row-wise ops: movement, embedding, norm, activations. A row is one task's; its order is fixed.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/cpu/cpu_device.h"
#include "kernels/cpu/hwy_targets.h"
#include "kernels/cpu/op_kernels.h"
#include "kernels/narrow_floats.h"
#include "kernels/reference/reference.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rows.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/dispatch.h"
#include "kernels/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace aerie::kernels::cpu {
namespace HWY_NAMESPACE {

void rms_norm_row(const float* x, const float* weight, float eps, int64_t n, float* out) {
  const F d;
  VF acc[kParts];
  for (auto& a : acc) a = hn::Zero(d);
  int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    for (size_t p = 0; p < kParts; ++p) {
      const VF v = hn::LoadU(d, x + i + p * kLanes);
      acc[p] = hn::MulAdd(v, v, acc[p]);
    }
  float sum = SumLanes(acc);
  for (; i < n; ++i) sum += x[i] * x[i];
  const float scale = 1.0f / std::sqrt(sum / static_cast<float>(n) + eps);
  const VF s = hn::Set(d, scale);
  i = 0;
  for (; i + static_cast<int64_t>(kLanes) <= n; i += kLanes)
    hn::StoreU(hn::Mul(hn::Mul(hn::LoadU(d, x + i), s), hn::LoadU(d, weight + i)), d, out + i);
  for (; i < n; ++i) out[i] = x[i] * scale * weight[i];
}

// Several vectors, for the steps of one wait for each other.
template <Activation k, size_t N>
HWY_INLINE void act(VF (&x)[N]) {
  const F d;
  if constexpr (k == Activation::none) return;
  if constexpr (k == Activation::relu) {
    AERIE_UNROLL for (VF& v : x) v = hn::IfThenElse(hn::Lt(v, hn::Zero(d)), hn::Zero(d), v);  // keeps a NaN
  } else {
    VF e[N];
    AERIE_UNROLL for (size_t i = 0; i < N; ++i) {
      if constexpr (k == Activation::gelu_tanh) {
        // 0.5 x (1 + tanh(u)) = x / (1 + exp(-2 u))
        const VF cube = hn::Mul(hn::Set(d, 0.044715f), hn::Mul(x[i], hn::Mul(x[i], x[i])));
        const VF u = hn::Mul(hn::Set(d, 0.7978845608f), hn::Add(x[i], cube));
        e[i] = hn::Mul(hn::Set(d, -2.0f), u);
      } else {
        e[i] = hn::Neg(x[i]);
      }
    }
    Exp(e);
    AERIE_UNROLL for (size_t i = 0; i < N; ++i)
      x[i] = hn::Div(k == Activation::sigmoid ? hn::Set(d, 1.0f) : x[i], hn::Add(hn::Set(d, 1.0f), e[i]));
  }
}

template <Activation k, size_t N>
HWY_INLINE void activate_vectors(const float* x, const float* up, float* out) {
  const F d;
  VF y[N];
  AERIE_UNROLL for (size_t i = 0; i < N; ++i) y[i] = hn::LoadU(d, x + i * kLanes);
  act<k>(y);
  AERIE_UNROLL for (size_t i = 0; i < N; ++i) {
    if (up) y[i] = hn::Mul(y[i], hn::LoadU(d, up + i * kLanes));
    hn::StoreU(y[i], d, out + i * kLanes);
  }
}

template <Activation k>
struct Activated {
  template <size_t N>
  HWY_INLINE void operator()(const float* x, const float* up, float* out) const { activate_vectors<k, N>(x, up, out); }
};

// GatedActivate with a limit. What is not a number stays that.
struct Limited {
  float limit;
  template <size_t N>
  HWY_INLINE void operator()(const float* x, const float* up, float* out) const {
    const F d;
    const VF most = hn::Set(d, limit), least = hn::Neg(most), one = hn::Set(d, 1.0f);
    VF gate[N], e[N];
    AERIE_UNROLL for (size_t i = 0; i < N; ++i) {
      const VF v = hn::LoadU(d, x + i * kLanes);
      gate[i] = hn::IfThenElse(hn::Gt(v, most), most, v);
      e[i] = hn::Mul(hn::Set(d, -kLimitedGateSlope), gate[i]);
    }
    Exp(e);
    AERIE_UNROLL for (size_t i = 0; i < N; ++i) {
      VF u = hn::LoadU(d, up + i * kLanes);
      u = hn::IfThenElse(hn::Gt(u, most), most, hn::IfThenElse(hn::Lt(u, least), least, u));
      hn::StoreU(hn::Mul(hn::Div(gate[i], hn::Add(one, e[i])), hn::Add(u, one)), d, out + i * kLanes);
    }
  }
};

struct Capped {
  float cap;
  template <size_t N>
  HWY_INLINE void operator()(const float* x, const float*, float* out) const {
    const F d;
    VF v[N];
    AERIE_UNROLL for (size_t i = 0; i < N; ++i) v[i] = hn::LoadU(d, x + i * kLanes);
    Cap(cap, v);
    AERIE_UNROLL for (size_t i = 0; i < N; ++i) hn::StoreU(v[i], d, out + i * kLanes);
  }
};

template <class Fn>
void each_vector(const Fn& fn, const float* x, const float* up, int64_t n, float* out) {
  constexpr auto lanes = static_cast<int64_t>(kLanes);
  constexpr int64_t kWide = kLanes == 16 ? 4 : 2;
  int64_t i = 0;
  for (; i + kWide * lanes <= n; i += kWide * lanes) fn.template operator()<kWide>(x + i, up ? up + i : nullptr, out + i);
  for (; i + lanes <= n; i += lanes) fn.template operator()<1>(x + i, up ? up + i : nullptr, out + i);
  if (i == n) return;
  HWY_ALIGN float in[16] = {}, scale[16] = {}, res[16];
  const auto left = static_cast<size_t>(n - i);
  std::memcpy(in, x + i, left * 4);
  if (up) std::memcpy(scale, up + i, left * 4);
  fn.template operator()<1>(in, up ? scale : nullptr, res);
  std::memcpy(out + i, res, left * 4);
}

// out[i] = act(x[i]) * (up ? up[i] : 1)
void activate_row(int kind, const float* x, const float* up, int64_t n, float* out) {
  switch (static_cast<Activation>(kind)) {
    case Activation::silu: return each_vector(Activated<Activation::silu>(), x, up, n, out);
    case Activation::gelu_tanh: return each_vector(Activated<Activation::gelu_tanh>(), x, up, n, out);
    case Activation::relu: return each_vector(Activated<Activation::relu>(), x, up, n, out);
    case Activation::sigmoid: return each_vector(Activated<Activation::sigmoid>(), x, up, n, out);
    case Activation::none: return each_vector(Activated<Activation::none>(), x, up, n, out);
  }
}

void limited_row(float limit, const float* x, const float* up, int64_t n, float* out) { each_vector(Limited{limit}, x, up, n, out); }

void capped_row(float cap, const float* x, int64_t n, float* out) { each_vector(Capped{cap}, x, nullptr, n, out); }

}  // namespace HWY_NAMESPACE
}  // namespace aerie::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace aerie::kernels::cpu {

HWY_EXPORT(rms_norm_row);
HWY_EXPORT(activate_row);
HWY_EXPORT(limited_row);
HWY_EXPORT(capped_row);

namespace {

float* row(const Tensor& t, int64_t r) { return static_cast<float*>(t.data) + r * t.stride; }

// Rows are dealt out in runs; a run is worth a hand-over only from some thousand elements on.
int64_t rows_per_task(int64_t n, int64_t width, int threads) {
  const int64_t least = std::max<int64_t>(1, 16384 / std::max<int64_t>(width, 1));
  return std::max(least, (n + threads * 4 - 1) / (threads * 4));
}
int32_t row_tasks(int64_t n, int64_t width, int threads) {
  const int64_t per = rows_per_task(n, width, threads);
  return static_cast<int32_t>((n + per - 1) / per);
}
template <class F>
void each_row(int64_t n, int64_t width, int threads, int32_t task, F&& f) {
  const int64_t per = rows_per_task(n, width, threads);
  for (int64_t r = task * per; r < std::min(n, (task + 1) * per); ++r) f(r);
}

// out (H) = row `id` of the table. A panel holds 16 rows: read every sixteenth element.
void embed_row(const Tensor& t, int64_t id, float* out) {
  const int64_t lane = id % kPanel, panel = id / kPanel * kPanel * k_padded(t.dtype, t.cols);
  if (t.layout == Layout::row_major && t.dtype == DType::f32) {
    std::memcpy(out, row(t, id), static_cast<size_t>(t.cols) * 4);
  } else if (t.layout == Layout::row_major) {
    const uint16_t* in = static_cast<const uint16_t*>(t.data) + id * t.stride;
    for (int64_t c = 0; c < t.cols; ++c) out[c] = from_bf16(in[c]);
  } else if (t.dtype == DType::f32) {
    const float* in = static_cast<const float*>(t.data) + panel + lane;
    for (int64_t c = 0; c < t.cols; ++c) out[c] = in[c * kPanel];
  } else if (t.dtype == DType::bf16) {
    const uint16_t* in = static_cast<const uint16_t*>(t.data) + panel + lane * 2;
    for (int64_t c = 0; c < t.cols; ++c) out[c] = from_bf16(in[c / 2 * 2 * kPanel + c % 2]);
  } else {
    for (int64_t c = 0; c < t.cols; ++c) out[c] = panel16_at(t, id, c);
  }
}

}  // namespace

int32_t tasks(const Upload& op, int) { return op.bytes > 0; }
void run(const Upload& op, int32_t, int, Scratch&) { std::memcpy(op.device, op.host, static_cast<size_t>(op.bytes)); }

int32_t tasks(const Download& op, int) { return op.bytes > 0; }
void run(const Download& op, int32_t, int, Scratch&) { std::memcpy(op.host, op.device, static_cast<size_t>(op.bytes)); }

int32_t tasks(const Timestamp&, int) { return 1; }
void run(const Timestamp& op, int32_t, int, Scratch&) { reference::run(op); }

int32_t tasks(const CopyRows& op, int threads) { return row_tasks(op.rows, op.src.cols, threads); }
void run(const CopyRows& op, int32_t task, int threads, Scratch&) {
  each_row(op.rows, op.src.cols, threads, task, [&](int64_t r) {
    const int64_t from = op.src_index ? op.src_index[r] : r, to = op.dst_index ? op.dst_index[r] : r;
    if (!has_row(op.src, from) || !has_row(op.dst, to)) return;
    std::memcpy(row(op.dst, to), row(op.src, from), static_cast<size_t>(op.src.cols) * 4);
  });
}

int32_t tasks(const Embed& op, int threads) { return row_tasks(op.out.rows, op.out.cols * 4, threads); }
void run(const Embed& op, int32_t task, int threads, Scratch&) {
  each_row(op.out.rows, op.out.cols * 4, threads, task, [&](int64_t r) {
    const int64_t id = op.ids[r];
    float* out = row(op.out, r);
    if (id >= 0 && id < op.table.rows)
      embed_row(op.table, id, out);
    else
      std::fill_n(out, op.out.cols, 0.0f);  // no row to read: a plugin's bad token must not crash
    for (int64_t i = 0; op.scale != 1 && i < op.out.cols; ++i) out[i] *= op.scale;
  });
}

int32_t tasks(const RmsNorm& op, int threads) { return row_tasks(op.out.rows, op.x.cols, threads); }
void run(const RmsNorm& op, int32_t task, int threads, Scratch&) {
  each_row(op.out.rows, op.x.cols, threads, task, [&](int64_t r) {
    const int64_t n = op.x.cols / op.heads;
    for (int64_t first = 0; first < op.x.cols; first += n)
      AERIE_DISPATCH(rms_norm_row)(row(op.x, r) + first, row(op.weight, 0), op.eps, n, row(op.out, r) + first);
  });
}

int32_t tasks(const Activate& op, int threads) { return row_tasks(op.out.rows, op.x.cols * 4, threads); }
void run(const Activate& op, int32_t task, int threads, Scratch&) {
  each_row(op.out.rows, op.x.cols * 4, threads, task, [&](int64_t r) {
    AERIE_DISPATCH(activate_row)(static_cast<int>(op.kind), row(op.x, r), nullptr, op.x.cols, row(op.out, r));
  });
}

int32_t tasks(const GatedActivate& op, int threads) { return row_tasks(op.out.rows, op.out.cols * 4, threads); }
void run(const GatedActivate& op, int32_t task, int threads, Scratch&) {
  const int64_t n = op.out.cols;
  each_row(op.out.rows, n * 4, threads, task, [&](int64_t r) {
    const float *gate = row(op.gate_up, r), *up = op.up ? row(op.up, r) : gate + n;
    if (op.limit > 0) AERIE_DISPATCH(limited_row)(op.limit, gate, up, n, row(op.out, r));
    else AERIE_DISPATCH(activate_row)(static_cast<int>(op.kind), gate, up, n, row(op.out, r));
  });
}

int32_t tasks(const Add& op, int threads) { return row_tasks(op.out.rows, op.a.cols, threads); }
void run(const Add& op, int32_t task, int threads, Scratch&) {
  each_row(op.out.rows, op.a.cols, threads, task, [&](int64_t r) {
    const float *a = row(op.a, r), *b = row(op.b, r);
    float* out = row(op.out, r);
    for (int64_t i = 0; i < op.a.cols; ++i) out[i] = (a[i] + b[i] * op.scale) * op.times;
  });
}

int32_t tasks(const SoftCap& op, int threads) {
  const int64_t n = op.out.rows * op.out.cols;  // few rows, and each a vocabulary long
  return static_cast<int32_t>(std::clamp<int64_t>(n / 16384, 1, int64_t{threads} * 4));
}
void run(const SoftCap& op, int32_t task, int threads, Scratch&) {
  const int64_t n = op.out.cols, of = tasks(op, threads);
  const int64_t begin = n * task / of, end = n * (task + 1) / of;
  for (int64_t r = 0; r < op.out.rows; ++r) AERIE_DISPATCH(capped_row)(op.cap, row(op.x, r) + begin, end - begin, row(op.out, r) + begin);
}

}  // namespace aerie::kernels::cpu
#endif

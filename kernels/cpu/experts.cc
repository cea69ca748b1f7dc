// Mixtures of experts. A task of ExpertLinear is an expert that some row takes, or a range of its outputs: its weights pass once, whatever
// the number of rows that take it.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "kernels/cpu/linear.h"
#include "kernels/cpu/op_kernels.h"
#include "kernels/route_math.h"

namespace aerie::kernels::cpu {

namespace {

float* row(const Tensor& t, int64_t r) { return static_cast<float*>(t.data) + r * t.stride; }

// The experts that are taken, as bits; all others come last in a group of their own if there are any.
struct Taken {
  std::array<uint64_t, kMaxExperts / 64> bits{};
  bool none = false;  // some output belongs to no expert
  explicit Taken(const ExpertLinear& op) {
    const int64_t all = op.w.rows / op.out.cols;
    for (int64_t p = 0; p < op.out.rows; ++p) {
      const int64_t e = op.experts[p];
      if (e < 0 || e >= all) none = true;
      else bits[static_cast<size_t>(e / 64)] |= uint64_t{1} << (e % 64);
    }
  }
  int64_t count() const {
    int64_t n = 0;
    for (const uint64_t word : bits) n += std::popcount(word);
    return n;
  }
  // The i-th of them, -1 behind the last.
  int64_t expert(int64_t i) const {
    for (size_t w = 0; w < bits.size(); ++w) {
      uint64_t word = bits[w];
      const int n = std::popcount(word);
      if (i >= n) { i -= n; continue; }
      while (i-- > 0) word &= word - 1;
      return static_cast<int64_t>(w) * 64 + std::countr_zero(word);
    }
    return -1;
  }
};

// Ranges that an expert's outputs are cut into.
int64_t parts_of(const ExpertLinear& op, int64_t taken, int threads) {
  return std::clamp<int64_t>((8 * threads + taken - 1) / std::max<int64_t>(taken, 1), 1, op.out.cols / kPanel);
}

}  // namespace

int32_t tasks(const Route& op, int) { return static_cast<int32_t>((op.logits.rows + 15) / 16); }
void run(const Route& op, int32_t task, int, Scratch&) {
  for (int64_t r = task * 16; r < std::min<int64_t>(op.logits.rows, task * 16 + 16); ++r)
    route_row(row(op.logits, r), op.logits.cols, op.k, op.normed, op.experts + r * op.k, row(op.weights, r));
}

int32_t tasks(const ExpertLinear& op, int threads) {
  const Taken taken(op);
  const int64_t n = taken.count();
  return static_cast<int32_t>(n * parts_of(op, n, threads) + taken.none);
}

void run(const ExpertLinear& op, int32_t task, int threads, Scratch& scratch) {
  const Taken taken(op);
  const int64_t n = taken.count(), parts = parts_of(op, n, threads), all = op.w.rows / op.out.cols;
  const int64_t expert = taken.expert(task / parts), part = task % parts, panels_each = op.out.cols / kPanel;
  if (task >= n * parts) {
    for (int64_t p = 0; p < op.out.rows; ++p)
      if (op.experts[p] < 0 || op.experts[p] >= all) std::fill_n(row(op.out, p), op.out.cols, 0.0f);
    return;
  }
  const int64_t shared = op.x.rows == op.out.rows ? 1 : op.k;
  const int64_t first = panels_each * part / parts, last = panels_each * (part + 1) / parts;
  // TODO rows together
  for (int64_t p = 0; p < op.out.rows; ++p) {
    if (op.experts[p] != expert) continue;
    scratch.forget();
    const Linear linear{rows(op.x, p / shared, 1), panels(op.w, expert * panels_each, panels_each), {}, {}, rows(op.out, p, 1)};
    linear_range(linear, first, last, prepare_rows(linear, 0, scratch).rows);
  }
}

int32_t tasks(const CombineExperts& op, int) { return static_cast<int32_t>((op.out.rows + 15) / 16); }
void run(const CombineExperts& op, int32_t task, int, Scratch&) {
  const int64_t k = op.weights.cols;
  for (int64_t r = task * 16; r < std::min<int64_t>(op.out.rows, task * 16 + 16); ++r) {
    const float* w = row(op.weights, r);
    float* out = row(op.out, r);
    for (int64_t i = 0; i < k; ++i) {
      const float* x = row(op.x, r * k + i);
      for (int64_t c = 0; c < op.out.cols; ++c) out[c] = i == 0 ? w[i] * x[c] : out[c] + w[i] * x[c];
    }
  }
}

}  // namespace aerie::kernels::cpu

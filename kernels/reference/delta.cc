// Recurrent layers.
#include "kernels/delta_math.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/reference/reference.h"

namespace aerie::kernels::reference {

void run(const ShortConv& op) {
  const DeltaShape& s = op.shape;
  for (int64_t r = 0; r < op.out.rows; ++r) {
    const float* window = delta_window(s, delta_state(op.cache, op.rows.seqs[op.rows.seq[r]].from, op.at));
    for (int64_t c = 0; c < s.channels(); ++c) {
      double sum = 0;
      for (int32_t t = 0; t < s.taps; ++t) {
        const float* x = row_before(op.x, op.rows.parent, s, window, static_cast<int32_t>(r), s.taps - 1 - t);
        if (x) sum += static_cast<double>(at(op.weight, t, c)) * x[c];
      }
      at(op.out, r, c) = static_cast<float>(sum);
    }
  }
}

void run(const DeltaGates& op) {
  const int64_t heads = op.out.cols / 2;
  for (int64_t r = 0; r < op.out.rows; ++r)
    for (int64_t h = 0; h < heads; ++h) {
      const double a = static_cast<double>(at(op.gates, r, heads + h)) + at(op.decay, 1, h), b = at(op.gates, r, h);
      at(op.out, r, h) = static_cast<float>(std::exp(at(op.decay, 0, h) * (a > 20 ? a : std::log1p(std::exp(a)))));
      at(op.out, r, heads + h) = static_cast<float>(1 / (1 + std::exp(-b)));
    }
}

namespace {

// The matrix of head h: from -> to, which may be the same; the row's output for it.
void step(const DeltaRule& op, int32_t row, int64_t h, const float* from, float* to) {
  const DeltaShape& s = op.shape;
  const int64_t key_head = h / (s.heads / s.key_heads);
  const float *q = &at(op.qkv, row, key_head * s.key_dim), *k = &at(op.qkv, row, s.keys() + key_head * s.key_dim);
  const double g = at(op.gates, row, h), beta = at(op.gates, row, s.heads + h);
  for (int64_t j = 0; j < s.value_dim; ++j) {
    const auto place = [&](int64_t i) { return (j / kPanel * s.key_dim + i) * kPanel + j % kPanel; };
    double known = 0, out = 0;
    for (int64_t i = 0; i < s.key_dim; ++i) known += from ? static_cast<double>(from[place(i)]) * k[i] : 0;
    const double delta = (at(op.qkv, row, 2 * s.keys() + h * s.value_dim + j) - g * known) * beta;
    for (int64_t i = 0; i < s.key_dim; ++i) {
      to[place(i)] = static_cast<float>((from ? g * from[place(i)] : 0) + k[i] * delta);
      out += static_cast<double>(to[place(i)]) * q[i];
    }
    if (op.out) at(op.out, row, h * s.value_dim + j) = static_cast<float>(out);
  }
}

// The rows of x that came last, from state `from` and the pass to state `to`.
void keep_last(const Tensor& x, const DeltaRows& rows, const DeltaShape& s, const DeltaSeq& seq, float* from, float* to) {
  for (int32_t back = 0; back < s.taps - 1; ++back) {
    const float* row = row_before(x, rows.parent, s, delta_window(s, from), seq.last, back);
    float* const kept = delta_window(s, to) + (s.taps - 2 - back) * s.channels();
    if (row) std::copy_n(row, s.channels(), kept);
    else std::fill_n(kept, s.channels(), 0.0f);
  }
}

}  // namespace

void run(const DeltaRule& op) {
  const DeltaShape& s = op.shape;
  std::vector<std::vector<float>> buffers(static_cast<size_t>(op.rows.buffers), std::vector<float>(static_cast<size_t>(s.head_floats())));
  for (int32_t i = 0; i < op.rows.n_seqs; ++i) {
    const DeltaSeq& seq = op.rows.seqs[i];
    float *const from = delta_state(op.cache, seq.from, op.at), *const to = delta_state(op.cache, seq.to, op.at);
    for (int64_t h = 0; h < s.heads; ++h)
      for (int32_t n = seq.first_step; n < seq.first_step + seq.steps; ++n) {
        const DeltaStep& turn = op.rows.steps[n];
        const int64_t head = h * s.head_floats();
        float* const made = buffers[static_cast<size_t>(turn.to)].data();
        step(op, turn.row, h, turn.from >= 0 ? buffers[static_cast<size_t>(turn.from)].data() : from ? from + head : nullptr, made);
        if (to && turn.row == seq.last) std::copy_n(made, s.head_floats(), to + head);
      }
    if (to) keep_last(op.x, op.rows, s, seq, from, to);
  }
}

void run(const KeepLast& op) {
  for (int32_t i = 0; i < op.rows.n_seqs; ++i) {
    const DeltaSeq& seq = op.rows.seqs[i];
    if (seq.to >= 0) keep_last(op.x, op.rows, op.shape, seq, delta_state(op.cache, seq.from, op.at), delta_state(op.cache, seq.to, op.at));
  }
}

}  // namespace aerie::kernels::reference

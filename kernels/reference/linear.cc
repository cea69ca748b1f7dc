#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "kernels/cpu/cpu_device.h"
#include "kernels/e2m1.h"
#include "kernels/reference/reference.h"

namespace aerie::kernels::reference {
namespace {

// The integer of a packed weight; of a block of 32 its scale, of weights of 4 bits, and q4_1's minimum.
int quantum(const Tensor& w, int64_t n, int64_t k) {
  const int64_t panel = n / kPanel, lane = n % kPanel;
  const int64_t kp = k_padded(w.dtype, w.cols);
  const int64_t base = panel * kPanel * kp;
  if (w.dtype == DType::int8) return static_cast<const int8_t*>(w.data)[base + (k / 4) * 4 * kPanel + lane * 4 + k % 4];
  const int64_t in_block = k % kBlock, low = in_block % 16;
  const uint8_t byte = static_cast<const uint8_t*>(
      w.data)[base / 2 + (k / kBlock) * 16 * kPanel + (low / 4) * 4 * kPanel + lane * 4 + low % 4];
  const int code = in_block < 16 ? byte & 15 : byte >> 4;
  return w.dtype == DType::mxfp4 ? kE2m1Twice[code] : code - (w.dtype == DType::int4 ? 8 : 0);
}

float block_scale(const Tensor& w, int64_t n, int64_t block) {
  const int64_t blocks = round_up(w.cols, kBlock) / kBlock, at = n / kPanel * blocks + block;
  if (w.dtype == DType::mxfp4) return mxfp4_scale(static_cast<const uint8_t*>(w.scales)[at * kPanel + n % kPanel]);
  return from_half(static_cast<const uint16_t*>(w.scales)[(w.dtype == DType::q4_1 ? 2 * at : at) * kPanel + n % kPanel]);
}

float block_minimum(const Tensor& w, int64_t n, int64_t block) {
  const int64_t blocks = round_up(w.cols, kBlock) / kBlock, at = n / kPanel * blocks + block;
  return w.dtype == DType::q4_1 ? from_half(static_cast<const uint16_t*>(w.scales)[(2 * at + 1) * kPanel + n % kPanel]) : 0;
}

std::optional<ActivationCodes> codes_for_int8, codes_for_nibbles;

// A row of activations as integers (ops.h), and the scale of each.
struct Quantised {
  std::vector<int> q;
  std::vector<float> scale;

  Quantised(const Tensor& x, int64_t r, int64_t K, const ActivationCodes& codes) {
    const int64_t step = codes.by_block ? kBlock : K;
    for (int64_t first = 0; first < K; first += step) {
      const int64_t last = std::min(K, first + step);
      float top = 0;
      double sum = 0;
      for (int64_t k = first; k < last; ++k) {
        const float magnitude = std::fabs(at(x, r, k));
        top = std::max(top, magnitude);
        sum += static_cast<double>(magnitude);
      }
      const float most = codes.most_of(last - first, top, static_cast<float>(sum));
      const float inverse = top > 1e-34f ? most / top : 0.0f;  // no overflow
      for (int64_t k = first; k < last; ++k) {
        q.push_back(std::clamp(static_cast<int>(std::nearbyint(at(x, r, k) * inverse)), -codes.most, codes.most));
        scale.push_back(top / most);
      }
    }
  }
};

// Sums of products of a block are exact integers; int8's of a row, too.
double dot_quantised(const Tensor& w, int64_t n, const Quantised& x) {
  const auto k = static_cast<int64_t>(x.q.size());
  const bool int8 = w.dtype == DType::int8;
  double sum = 0;
  for (int64_t first = 0; first < k; first += kBlock) {
    int64_t s = 0, codes = 0;
    for (int64_t i = first; i < std::min(k, first + kBlock); ++i) {
      s += x.q[static_cast<size_t>(i)] * quantum(w, n, i);
      codes += x.q[static_cast<size_t>(i)];
    }
    const float of_weights = int8 ? static_cast<const float*>(w.scales)[n] : block_scale(w, n, first / kBlock);
    const double of_codes = static_cast<double>(s) * static_cast<double>(of_weights);
    const double of_minimum = static_cast<double>(codes) * static_cast<double>(int8 ? 0 : block_minimum(w, n, first / kBlock));
    sum += (of_codes + of_minimum) * static_cast<double>(x.scale[static_cast<size_t>(first)]);
  }
  return sum;
}

}  // namespace

void round_as(const std::optional<ActivationCodes>& int8, const std::optional<ActivationCodes>& nibbles) {
  codes_for_int8 = int8;
  codes_for_nibbles = nibbles;
}

void run(const Linear& op) {
  const int64_t K = op.w.cols, N = op.w.rows;
  const auto codes = op.w.dtype == DType::int8 ? codes_for_int8 : is_nibbles(op.w.dtype) ? codes_for_nibbles : std::nullopt;
  std::vector<Quantised> quantised;
  for (int64_t r = 0; codes && r < op.out.rows; ++r) quantised.emplace_back(op.x, r, K, *codes);
  std::vector<float> out;  // op.out may be the residual, or x
  std::vector<double> weights(static_cast<size_t>(K));
  for (int64_t n = 0; n < N; ++n) {
    for (int64_t k = 0; k < K; ++k) weights[static_cast<size_t>(k)] = panel16_at(op.w, n, k);
    for (int64_t r = 0; r < op.out.rows; ++r) {
      double sum = 0;
      if (codes)
        sum = dot_quantised(op.w, n, quantised[static_cast<size_t>(r)]);
      else
        for (int64_t k = 0; k < K; ++k) sum += static_cast<double>(at(op.x, r, k)) * weights[static_cast<size_t>(k)];
      auto v = static_cast<float>(sum);
      if (op.bias) v = at(op.bias, 0, n) + v;
      if (op.residual) v = at(op.residual, r, n) + v;
      out.push_back(v);
    }
  }
  for (int64_t n = 0, i = 0; n < N; ++n)
    for (int64_t r = 0; r < op.out.rows; ++r) at(op.out, r, n) = out[static_cast<size_t>(i++)];
}

}  // namespace aerie::kernels::reference

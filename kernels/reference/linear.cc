#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cpu/cpu_device.h"
#include "kernels/reference/reference.h"

namespace aerie::kernels::reference {
namespace {

// The integer of a packed int8/int4 weight, and int4's scale of its block of 32.
int quantum(const Tensor& w, int64_t n, int64_t k) {
  const int64_t panel = n / kPanel, lane = n % kPanel;
  const int64_t kp = k_padded(w.dtype, w.cols);
  const int64_t base = panel * kPanel * kp;
  if (w.dtype == DType::int8) return static_cast<const int8_t*>(w.data)[base + (k / 4) * 4 * kPanel + lane * 4 + k % 4];
  const int64_t in_block = k % kBlock, low = in_block % 16;
  const uint8_t byte = static_cast<const uint8_t*>(
      w.data)[base / 2 + (k / kBlock) * 16 * kPanel + (low / 4) * 4 * kPanel + lane * 4 + low % 4];
  return (in_block < 16 ? byte & 15 : byte >> 4) - 8;
}

float block_scale(const Tensor& w, int64_t n, int64_t block) {
  const int64_t blocks = round_up(w.cols, kBlock) / kBlock;
  return from_half(static_cast<const uint16_t*>(w.scales)[((n / kPanel) * blocks + block) * kPanel + n % kPanel]);
}

// Activations become integers with one scale per row; sums of products (int8: of the row, int4: of 32) are exact integers.
float dot_quantised(const Tensor& w, int64_t n, const std::vector<int>& q, float scale) {
  const auto k = static_cast<int64_t>(q.size());
  if (w.dtype == DType::int8) {
    int32_t s = 0;
    for (int64_t i = 0; i < k; ++i) s += q[static_cast<size_t>(i)] * quantum(w, n, i);
    return static_cast<float>(s) * static_cast<const float*>(w.scales)[n] * scale;
  }
  float sum = 0;
  for (int64_t b = 0; b * kBlock < k; ++b) {
    int s = 0;
    for (int64_t i = b * kBlock; i < std::min(k, (b + 1) * kBlock); ++i)
      s += q[static_cast<size_t>(i)] * quantum(w, n, i);
    sum += static_cast<float>(s) * block_scale(w, n, b);
  }
  return sum * scale;
}

}  // namespace

void run(const Linear& op) {
  const int64_t K = op.w.cols, N = op.w.rows;
  const bool quantised = is_integer(op.w.dtype);
  std::vector<int> q(static_cast<size_t>(K));
  std::vector<float> out(static_cast<size_t>(N));  // out may be the residual, or x
  for (int64_t r = 0; r < op.out.rows; ++r) {
    float scale = 0;
    if (quantised) {
      float top = 0;
      for (int64_t k = 0; k < K; ++k) top = std::max(top, std::fabs(at(op.x, r, k)));
      scale = top / 127.0f;
      const float inverse = top > 1e-36f ? 127.0f / top : 0.0f;  // no overflow
      for (int64_t k = 0; k < K; ++k)
        q[static_cast<size_t>(k)] = std::clamp(static_cast<int>(std::nearbyint(at(op.x, r, k) * inverse)), -127, 127);
    }
    for (int64_t n = 0; n < N; ++n) {
      double sum = 0;
      if (quantised)
        sum = dot_quantised(op.w, n, q, scale);
      else
        for (int64_t k = 0; k < K; ++k) sum += static_cast<double>(at(op.x, r, k)) * panel16_at(op.w, n, k);
      auto v = static_cast<float>(sum);
      if (op.bias) v = at(op.bias, 0, n) + v;
      if (op.residual) v = at(op.residual, r, n) + v;
      out[static_cast<size_t>(n)] = v;
    }
    for (int64_t n = 0; n < N; ++n) at(op.out, r, n) = out[static_cast<size_t>(n)];
  }
}

}  // namespace aerie::kernels::reference

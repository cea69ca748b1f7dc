#include <chrono>
#include <cmath>
#include <cstring>

#include "kernels/cpu/cpu_device.h"
#include "kernels/device.h"
#include "kernels/reference/reference.h"

namespace aerie::kernels::reference {
namespace {

double activation(Activation kind, double x) {
  switch (kind) {
    case Activation::silu:
      return x / (1 + std::exp(-x));
    case Activation::gelu_tanh:
      return 0.5 * x * (1 + std::tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
    case Activation::relu:
      return x > 0 ? x : (std::isnan(x) ? x : 0);
    case Activation::sigmoid:
      return 1 / (1 + std::exp(-x));
    case Activation::none:
      return x;
  }
  return 0;
}

}  // namespace

void run(const Upload& op) {
  if (op.bytes > 0) std::memcpy(op.device, op.host, static_cast<size_t>(op.bytes));
}
void run(const Download& op) {
  if (op.bytes > 0) std::memcpy(op.host, op.device, static_cast<size_t>(op.bytes));
}

void run(const Timestamp& op) { *op.out = std::chrono::nanoseconds(Clock::now().time_since_epoch()).count(); }

void run(const CopyRows& op) {
  for (int64_t r = 0; r < op.rows; ++r) {
    const int64_t from = op.src_index ? op.src_index[r] : r;
    const int64_t to = op.dst_index ? op.dst_index[r] : r;
    if (!has_row(op.src, from) || !has_row(op.dst, to)) continue;
    std::memcpy(&at(op.dst, to, 0), &at(op.src, from, 0), static_cast<size_t>(op.src.cols) * 4);
  }
}

void run(const Embed& op) {
  for (int64_t r = 0; r < op.out.rows; ++r) {
    const int64_t id = op.ids[r];
    for (int64_t c = 0; c < op.out.cols; ++c) {
      float v = 0;  // an id outside the table
      if (id >= 0 && id < op.table.rows) {
        if (op.table.layout == Layout::panel16)
          v = panel16_at(op.table, id, c);
        else if (op.table.dtype == DType::bf16)
          v = from_bf16(static_cast<const uint16_t*>(op.table.data)[id * op.table.stride + c]);
        else
          v = at(op.table, id, c);
      }
      at(op.out, r, c) = v * op.scale;
    }
  }
}

void run(const RmsNorm& op) {
  const int64_t n = op.x.cols / op.heads;
  for (int64_t r = 0; r < op.out.rows; ++r)
    for (int64_t first = 0; first < op.x.cols; first += n) {
      double sum = 0;
      for (int64_t c = first; c < first + n; ++c) sum += static_cast<double>(at(op.x, r, c)) * at(op.x, r, c);
      const double inv = 1 / std::sqrt(sum / static_cast<double>(n) + op.eps);
      for (int64_t c = 0; c < n; ++c)
        at(op.out, r, first + c) = static_cast<float>(at(op.x, r, first + c) * inv * at(op.weight, 0, c));
    }
}

void run(const Activate& op) {
  for (int64_t r = 0; r < op.out.rows; ++r)
    for (int64_t c = 0; c < op.out.cols; ++c)
      at(op.out, r, c) = static_cast<float>(activation(op.kind, at(op.x, r, c)));
}

void run(const GatedActivate& op) {
  const int64_t f = op.out.cols;
  for (int64_t r = 0; r < op.out.rows; ++r)
    for (int64_t c = 0; c < f; ++c) {
      double gate = at(op.gate_up, r, c), up = op.up ? at(op.up, r, c) : at(op.gate_up, r, f + c);
      if (op.limit > 0) {
        const double limit = op.limit;
        gate = gate > limit ? limit : gate, up = up > limit ? limit : up < -limit ? -limit : up;
        at(op.out, r, c) = static_cast<float>(gate / (1 + std::exp(-double{kLimitedGateSlope} * gate)) * (up + 1));
      } else {
        at(op.out, r, c) = static_cast<float>(activation(op.kind, gate) * up);
      }
    }
}

void run(const Add& op) {
  for (int64_t r = 0; r < op.out.rows; ++r)
    for (int64_t c = 0; c < op.out.cols; ++c) {
      const float scaled = at(op.b, r, c) * op.scale;
      at(op.out, r, c) = (at(op.a, r, c) + scaled) * op.times;
    }
}

void run(const SoftCap& op) {
  for (int64_t r = 0; r < op.out.rows; ++r)
    for (int64_t c = 0; c < op.out.cols; ++c) {
      const float x = at(op.x, r, c);
      at(op.out, r, c) = std::isfinite(x) ? static_cast<float>(op.cap * std::tanh(x / double{op.cap})) : NAN;
    }
}

}  // namespace aerie::kernels::reference

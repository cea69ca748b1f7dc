// The reference device: every op as a plain loop, one value after another, sums in double. Slow and
// obviously right: the oracle that the tests hold the other backends against.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>

#include "kernels/ops.h"

namespace aerie::kernels::reference {

// rows.cc
void run(const Upload&);
void run(const Download&);
void run(const Timestamp&);
inline void run(const RunIf&) {}  // the executor's affair
void run(const CopyRows&);
void run(const Embed&);
void run(const RmsNorm&);
void run(const Activate&);
void run(const GatedActivate&);
void run(const Add&);
void run(const SoftCap&);
// linear.cc
void run(const Linear&);
// Activations that meet int8 weights, and int4 or q4_1, as the device does that this one is held against; at first not at all.
void round_as(const std::optional<ActivationCodes>& int8, const std::optional<ActivationCodes>& nibbles);
// experts.cc
void run(const Route&);
void run(const ExpertLinear&);
void run(const CombineExperts&);
// delta.cc
void run(const ShortConv&);
void run(const DeltaGates&);
void run(const DeltaRule&);
void run(const KeepLast&);
// attention.cc
void run(const RopeAngles&);
void run(const RopeAndStore&);
void run(const Attention&);
void run(const AttentionMerge&);
void run(const KvCopy&);
// draw.cc
void run(const TopK&);
void run(const Walk&);
// tree.cc
void run(const ExpandTree&);
void run(const SelectTree&);
void run(const PathSlots&);
// linear_topk.cc
void run(const LinearTopK&);
void run(const MergeTopK&);
// candidates.cc
void run(const LinearRows&);
void run(const Rescore&);

inline float& at(const Tensor& t, int64_t r, int64_t c) { return static_cast<float*>(t.data)[r * t.stride + c]; }

inline float from_bf16(uint16_t b) { return std::bit_cast<float>(static_cast<uint32_t>(b) << 16); }

// Nearest, ties to even; a NaN stays a NaN.
inline uint16_t to_bf16(float v) {
  const uint32_t u = std::bit_cast<uint32_t>(v);
  if (std::isnan(v)) return static_cast<uint16_t>((u >> 16) | 0x40);
  return static_cast<uint16_t>((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}

inline float from_half(uint16_t h) {
  const int exponent = (h >> 10) & 31, mantissa = h & 1023;
  const float sign = (h & 0x8000) ? -1.0f : 1.0f;
  if (exponent == 31) return mantissa ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -24);
  return sign * std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
}

}  // namespace aerie::kernels::reference

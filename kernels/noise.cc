#include "kernels/noise.h"

#include "kernels/noise_math.h"

namespace aerie::kernels {

std::array<uint32_t, 4> philox4x32_10(std::array<uint32_t, 4> c, std::array<uint32_t, 2> k) {
  const noise::Words w = noise::philox({{c[0], c[1], c[2], c[3]}}, k[0], k[1]);
  return {w.w[0], w.w[1], w.w[2], w.w[3]};
}

float gumbel_of_word(uint32_t word) { return noise::gumbel_of_word(word); }

float gumbel(uint64_t seed, uint64_t stream, int64_t position, int32_t token) {
  return noise::gumbel(seed, stream, position, token);
}

double keyed_uniform(uint64_t seed, uint64_t stream, int64_t position, uint32_t lane) {
  // Token ids are below 2^31, so the walk never uses a counter with the top bit set.
  const noise::Words w = noise::block(seed, stream, position, 0x80000000u | lane);
  const uint64_t bits = (static_cast<uint64_t>(w.w[0]) << 20) | (w.w[1] >> 12);  // 52 bits
  return (static_cast<double>(bits) + 0.5) * 0x1p-52;
}

}  // namespace aerie::kernels

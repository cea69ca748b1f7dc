// The keyed noise of the walk: Philox-4x32-10 (Salmon et al., SC'11) turned into Gumbel noise.
//
//   word(seed, stream, position, token) =
//       philox4x32_10(counter = {token / 4, position lo, position hi ^ stream hi, stream lo}, key = {seed lo, seed
//       hi})[token % 4]
//   u = (word + 0.5) * 2^-32 in (0, 1);   G = -log(-log(u))
//
// log here is ours (not libm's), so that the bits do not depend on the C library; every backend
// and every ISA of a build returns the same float for the same key.
#pragma once

#include <array>
#include <cstdint>

namespace aerie::kernels {

std::array<uint32_t, 4> philox4x32_10(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// G of one word.
float gumbel_of_word(uint32_t word);
// Scalar oracle; the vector form lives with the CPU kernels.
float gumbel(uint64_t seed, uint64_t stream, int64_t position, int32_t token);

// A uniform in (0, 1) of a domain of its own (`lane` tells draws at one position apart): used by the
// sampled-draft rule, whose draws must not be the walk's.
double keyed_uniform(uint64_t seed, uint64_t stream, int64_t position, uint32_t lane);

}  // namespace aerie::kernels

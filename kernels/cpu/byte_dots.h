// Processors that add products of bytes in one instruction although Highway's target does not promise it: AVX-VNNI beside AVX2
// (Intel's since 2021, AMD's since Zen 5), AVX-512 VNNI beside AVX-512 (Cascade Lake), the dot product beside NEON.
#pragma once

#include <cstdint>

namespace aerie::kernels::cpu {

// Whether this machine has the instruction that goes with one Highway target.
bool has_byte_dots(int64_t target);

}  // namespace aerie::kernels::cpu

// Processors with registers for whole tiles of a matrix, and an instruction that multiplies two of them: Intel's AMX (Sapphire
// Rapids, 2023, and later), for bytes and bf16.
#pragma once

namespace aerie::kernels::cpu {

// Whether this process may use it: the processor has it and all of AVX-512 that goes with it, and the kernel allowed it, which is
// asked for once. It says no where some thread's stack for signals is too small for the registers.
bool has_matrix_unit();

}  // namespace aerie::kernels::cpu

#pragma once

// Vectors in an array stay in registers only if every loop over it is unrolled early.
#define AERIE_UNROLL _Pragma("GCC unroll 16")

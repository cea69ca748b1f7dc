// Which Highway targets the kernels are compiled for. Include before any hwy header: every file must
// choose the same set, or the dispatch tables disagree.
//   x86: SSE4 (the floor), AVX2, AVX3, AVX3_DL.  ARM: NEON.
// Not SVE: its vectors have no size at compile time, and the tiles are arrays of them (V acc[M][P] lies in
// registers). A processor with SVE, whatever its vector length, runs the NEON code.
#pragma once

#if defined(__x86_64__) || defined(_M_X64)
#ifndef HWY_BASELINE_TARGETS
#define HWY_BASELINE_TARGETS HWY_SSE4
#endif
#define HWY_WANT_AVX3_DL
#endif
// For a build that stays on one machine (tests/run.sh): each takes a quarter of the time that compiling the kernels takes.
#if defined(AERIE_WITHOUT_AVX512)
#define AERIE_NO_TARGETS (HWY_AVX3 | HWY_AVX3_DL)
#elif defined(AERIE_WITHOUT_AVX3)
#define AERIE_NO_TARGETS HWY_AVX3
#else
#define AERIE_NO_TARGETS 0
#endif
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | AERIE_NO_TARGETS)

// Which Highway targets the kernels are compiled for. Include before any hwy header: every file must
// choose the same set, or the dispatch tables disagree.
//   x86: SSE4 (the floor), AVX2, AVX3, AVX3_DL.  ARM: NEON only.
#pragma once

#if defined(__x86_64__) || defined(_M_X64)
#ifndef HWY_BASELINE_TARGETS
#define HWY_BASELINE_TARGETS HWY_SSE4
#endif
#define HWY_WANT_AVX3_DL
#endif
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)

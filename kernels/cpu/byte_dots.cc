#include "kernels/cpu/byte_dots.h"

#include "kernels/cpu/hwy_targets.h"

// After the choice of targets.
#include <hwy/highway.h>

#if HWY_ARCH_X86
#include <cpuid.h>
#elif HWY_ARCH_ARM_A64 && defined(__linux__)
#include <sys/auxv.h>
#elif HWY_ARCH_ARM_A64 && defined(_WIN32)
#include "kernels/win32.h"
#endif

namespace aerie::kernels::cpu {

#if HWY_ARCH_X86
static bool cpuid_bit(unsigned subleaf, unsigned which, unsigned bit) {  // of leaf 7: eax, ebx, ecx, edx
  unsigned r[4] = {};
  return __get_cpuid_count(7, subleaf, &r[0], &r[1], &r[2], &r[3]) && ((r[which] >> bit) & 1) != 0;
}
bool has_byte_dots(int64_t target) {
  // In a virtual machine each cpuid is an exit to the host.
  static const bool avx512_vnni = cpuid_bit(0, 2, 11), avx_vnni = cpuid_bit(1, 0, 4);
  return target == HWY_AVX3 ? avx512_vnni : target == HWY_AVX2 && avx_vnni;
}
#elif HWY_ARCH_ARM_A64 && !defined(__ARM_FEATURE_DOTPROD)  // else all tiles use it
bool has_byte_dots(int64_t target) {
#if defined(__linux__)
  constexpr unsigned long kDotProducts = 1ul << 20;  // HWCAP_ASIMDDP
  static const bool has = (getauxval(AT_HWCAP) & kDotProducts) != 0;
#elif defined(_WIN32)
  constexpr DWORD kDotProducts = 43;  // PF_ARM_V82_DP_INSTRUCTIONS_AVAILABLE
  static const bool has = IsProcessorFeaturePresent(kDotProducts) != 0;
#else
  constexpr bool has = false;
#endif
  return has && target == HWY_NEON;
}
#else
bool has_byte_dots(int64_t) { return false; }
#endif

}  // namespace aerie::kernels::cpu

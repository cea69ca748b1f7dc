#include "kernels/cpu/matrix_unit.h"

#include "kernels/cpu/hwy_targets.h"

// After the choice of targets.
#include <hwy/highway.h>
#include <hwy/targets.h>

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace aerie::kernels::cpu {
namespace {

#if defined(__x86_64__) && defined(__linux__)
[[maybe_unused]] bool ask() {
  constexpr unsigned kBf16 = 1u << 22, kTiles = 1u << 24, kInt8 = 1u << 25, kAll = kBf16 | kTiles | kInt8;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & kAll) != kAll) return false;
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA; Linux 5.16
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}
#else
[[maybe_unused]] bool ask() { return false; }
#endif

}  // namespace

// linear_matrix.cc's code for it is of Highway's target AVX3_DL.
bool has_matrix_unit() {
#if HWY_TARGETS & HWY_AVX3_DL
  static const bool has = (hwy::SupportedTargets() & HWY_AVX3_DL) != 0 && ask();
  return has;
#else
  return false;
#endif
}

}  // namespace aerie::kernels::cpu

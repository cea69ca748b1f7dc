// The one floating-point environment of every kernel: round to nearest, subnormals kept, no traps.
#pragma once

#if defined(__x86_64__) || defined(_M_X64)
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

namespace aerie::kernels::cpu {

class FpEnv {
 public:
#if defined(__x86_64__) || defined(_M_X64)
  FpEnv() : saved_(_mm_getcsr()) {
    if (saved_ != kDefault) _mm_setcsr(kDefault);
  }
  ~FpEnv() {
    if (saved_ != kDefault) _mm_setcsr(saved_);
  }

 private:
  static constexpr unsigned kDefault = 0x1f80;
  unsigned saved_;
#else
  FpEnv() {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);  // feholdexcept would keep the rounding and the flush-to-zero of FPCR
  }
  ~FpEnv() { std::fesetenv(&saved_); }

 private:
  std::fenv_t saved_;
#endif
};

}  // namespace aerie::kernels::cpu

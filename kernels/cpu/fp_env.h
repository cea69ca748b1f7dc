// The one floating-point environment of every kernel: round to nearest, subnormals kept, no traps.
#pragma once

#include <cstdint>
#if defined(__x86_64__) || defined(_M_X64)
#include <xmmintrin.h>
#elif !defined(__aarch64__)
#include <cfenv>
#endif

namespace aerie::kernels::cpu {

// The control register, where it is known by name.
#if defined(__x86_64__) || defined(_M_X64)
using FpControl = unsigned;  // MXCSR
constexpr FpControl kFpControl = 0x1f80;
inline FpControl fp_control() { return _mm_getcsr(); }
inline void set_fp_control(FpControl c) { _mm_setcsr(c); }
#elif defined(__aarch64__)
using FpControl = uint64_t;  // FPCR; glibc's fesetenv would keep its default-NaN and alternative-half bits
constexpr FpControl kFpControl = 0;
inline FpControl fp_control() {
  FpControl c;
  asm volatile("mrs %0, fpcr" : "=r"(c));
  return c;
}
inline void set_fp_control(FpControl c) { asm volatile("msr fpcr, %0" : : "r"(c)); }
#else
#define AERIE_NO_FP_CONTROL 1
#endif

class FpEnv {
 public:
#ifndef AERIE_NO_FP_CONTROL
  FpEnv() : saved_(fp_control()) {
    if (saved_ != kFpControl) set_fp_control(kFpControl);
  }
  ~FpEnv() {
    if (saved_ != kFpControl) set_fp_control(saved_);
  }

 private:
  FpControl saved_;
#else
  FpEnv() {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);  // feholdexcept would keep the rounding and the flush-to-zero
  }
  ~FpEnv() { std::fesetenv(&saved_); }

 private:
  std::fenv_t saved_;
#endif
};

}  // namespace aerie::kernels::cpu

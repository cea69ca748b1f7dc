// The one floating-point environment of whatever a text may hang by: round to nearest, subnormals kept, no traps.
#pragma once

#include <cfenv>
#include <cstdint>
#if defined(__x86_64__) || defined(_M_X64)
#include <xmmintrin.h>
#endif

namespace aerie::kernels {

// The control register, where it is known by name.
#if defined(__x86_64__) || defined(_M_X64)
#if defined(__MINGW32__)  // MXCSR, and x87's control word above it: exp, log and the like are x87's there
using FpControl = uint64_t;
constexpr FpControl kFpControl = 0x37fULL << 32 | 0x1f80;
inline FpControl fp_control() {
  uint16_t x87;
  asm volatile("fnstcw %0" : "=m"(x87));
  return FpControl{x87} << 32 | _mm_getcsr();
}
inline void set_fp_control(FpControl c) {
  const auto x87 = static_cast<uint16_t>(c >> 32);
  asm volatile("fldcw %0" : : "m"(x87));
  _mm_setcsr(static_cast<unsigned>(c));
}
#else
using FpControl = unsigned;  // MXCSR
constexpr FpControl kFpControl = 0x1f80;
inline FpControl fp_control() { return _mm_getcsr(); }
inline void set_fp_control(FpControl c) { _mm_setcsr(c); }
#endif
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
using FpControl = unsigned;
constexpr FpControl kFpControl = 0;
inline FpControl fp_control() { return kFpControl; }
inline void set_fp_control(FpControl) {}
#endif

// Of whatever the C library does, too: numbers in text are rounded by another register (x87's). It takes longer.
// The register by name as well: Windows' functions leave it alone.
class WholeFpEnv {
 public:
  WholeFpEnv() : control_(fp_control()) {
    std::fegetenv(&saved_);
    set_ours();
  }
  ~WholeFpEnv() { set_theirs(); }
  WholeFpEnv(const WholeFpEnv&) = delete;
  WholeFpEnv& operator=(const WholeFpEnv&) = delete;
  // The host's own once more, while a hook of its is called from within.
  class Host {
   public:
    explicit Host(const WholeFpEnv& env) { env.set_theirs(); }
    ~Host() { set_ours(); }
  };

 private:
  static void set_ours() {
    std::fesetenv(FE_DFL_ENV);  // feholdexcept would keep the rounding and the flush-to-zero
    set_fp_control(kFpControl);
  }
  void set_theirs() const {
    std::fesetenv(&saved_);
    set_fp_control(control_);
  }
  const FpControl control_;
  std::fenv_t saved_;
};

// For every step.
#ifdef AERIE_NO_FP_CONTROL
using FpEnv = WholeFpEnv;
#else
class FpEnv {
 public:
  FpEnv() : saved_(fp_control()) {
    if (saved_ != kFpControl) set_fp_control(kFpControl);
  }
  ~FpEnv() {
    if (saved_ != kFpControl) set_fp_control(saved_);
  }
  FpEnv(const FpEnv&) = delete;
  FpEnv& operator=(const FpEnv&) = delete;
  class Host {
   public:
    explicit Host(const FpEnv& env) { set_fp_control(env.saved_); }
    ~Host() { set_fp_control(kFpControl); }
  };

 private:
  FpControl saved_;
};
#endif

}  // namespace aerie::kernels

#include "kernels/cpu/fetching.h"

#include <atomic>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>

#include <cstring>
#endif

namespace aerie::kernels::cpu {
namespace {

#if defined(__x86_64__) || defined(__i386__)
// Where the first-level cache waits for so few lines that at memory's latency it is less than memory's bandwidth: AMD's family 25, of
// which only Zen 4 is asked (linear.cc), which waits for 24, and Intel's with AVX-512 (Emerald Rapids: 16). Zen 5 is slower with
// two steps by a tenth, Zen 3 as fast with either.
bool waits_for_few_lines() {
  unsigned most = 0, vendor[3] = {}, version = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(0, &most, &vendor[0], &vendor[2], &vendor[1])) return false;
  if (std::memcmp(vendor, "GenuineIntel", 12) == 0) return true;
  if (std::memcmp(vendor, "AuthenticAMD", 12) != 0 || !__get_cpuid(1, &version, &b, &c, &d)) return false;
  const unsigned base = version >> 8 & 15, extended = version >> 20 & 255;
  return base == 15 && base + extended == 25;
}
#else
bool waits_for_few_lines() { return false; }
#endif

std::atomic<bool>& two_steps() {
  static std::atomic<bool> two{waits_for_few_lines()};  // asked once: in a virtual machine each cpuid is an exit to the host
  return two;
}

}  // namespace

bool fetch_in_two_steps() { return two_steps().load(std::memory_order_relaxed); }
void set_fetch_in_two_steps(bool two) { two_steps().store(two, std::memory_order_relaxed); }

}  // namespace aerie::kernels::cpu

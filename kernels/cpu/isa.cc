#include "kernels/cpu/isa.h"

#include <algorithm>
#include <atomic>
#include <iterator>

#include "kernels/cpu/byte_dots.h"
#include "kernels/cpu/hwy_targets.h"
#include "kernels/cpu/matrix_unit.h"

// After the choice of targets.
#include <hwy/highway.h>
#include <hwy/targets.h>

namespace aerie::kernels {

namespace {

// Without memory that would have to be given back when the process ends.
struct Isas {
  Isa isa[32];
  size_t n = 0;
  void add(const Isa& one) {
    if (n < std::size(isa)) isa[n++] = one;
  }
};

// Those that need nothing from the kernel, best first.
std::span<const Isa> plain_isas() {
  static const Isas isas = [] {
    Isas all;
    for (int64_t left = hwy::SupportedTargets() & HWY_TARGETS; left != 0; left &= left - 1) {
      const int64_t target = left & -left;  // Highway numbers the best targets lowest
      if (cpu::has_byte_dots(target)) all.add({target, true});
      all.add({target, false});
    }
    return all;
  }();
  return {isas.isa, isas.n};
}

// The process's: null is the best.
constinit std::atomic<const Isa*> of_process = nullptr;
thread_local constinit const Isa* of_thread = nullptr;

bool same_name(const std::string& a, const std::string& b) {
  const auto upper = [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return upper(x) == upper(y); });
}

const Isa* with_name(std::span<const Isa> isas, const std::string& name) {
  const auto found = std::find_if(isas.begin(), isas.end(), [&](const Isa& isa) { return same_name(name, isa.name()); });
  return found == isas.end() ? nullptr : &*found;
}

}  // namespace

const char* Isa::name() const {
  if (matrix_unit) return "AMX";
  if (!byte_dots) return hwy::TargetName(target);
  return target == HWY_AVX3 ? "AVX3_VNNI" : target == HWY_AVX2 ? "AVX2_VNNI" : "NEON_DOTPROD";
}

std::span<const Isa> supported_isas() {
  static const Isas isas = [] {
    Isas all;
    if (cpu::has_matrix_unit()) all.add({HWY_AVX3_DL, false, true});
    for (const Isa& isa : plain_isas()) all.add(isa);
    return all;
  }();
  return {isas.isa, isas.n};
}

void set_isa(const Isa& isa) { of_process.store(&isa, std::memory_order_relaxed); }
void reset_isa() { of_process.store(nullptr, std::memory_order_relaxed); }

namespace cpu {

// The matrix unit is not asked for unless it is meant: a process that has it needs larger stacks for signals.
Result<const Isa*> find_isa(const std::string& name) {
  const Isa* isa = with_name(plain_isas(), name);
  if (!isa) isa = with_name(supported_isas(), name);
  if (isa) return isa;
  std::string known;
  for (const Isa& has : supported_isas()) known += std::string(known.empty() ? "" : ", ") + has.name();
  return error(Code::unsupported, "device cpu:" + name + ": this machine runs " + known);
}

const Isa& isa_of_process() {
  const Isa* isa = of_process.load(std::memory_order_relaxed);
  return isa ? *isa : supported_isas().front();
}
const Isa& isa_now() { return of_thread ? *of_thread : isa_of_process(); }

RunsIsa::RunsIsa(const Isa& isa) : before_(of_thread) { of_thread = &isa; }
RunsIsa::~RunsIsa() { of_thread = before_; }

}  // namespace cpu
}  // namespace aerie::kernels

#include "kernels/cpu/isa.h"

#include <algorithm>

#include "kernels/cpu/byte_dots.h"
#include "kernels/cpu/hwy_targets.h"
#include "kernels/cpu/matrix_unit.h"

// After the choice of targets.
#include <hwy/highway.h>
#include <hwy/targets.h>

namespace aerie::kernels {

namespace {

// Before any test has a say.
int64_t targets_of_machine() {
  static const int64_t all = hwy::SupportedTargets() & HWY_TARGETS;
  return all;
}

// fn(isa) for those that ask the kernel for nothing, best first, while it says false.
template <class Fn>
void each_plain_isa(const Fn& fn) {
  for (int64_t left = targets_of_machine(); left != 0; left &= left - 1) {
    const int64_t target = left & -left;  // Highway numbers the best targets lowest
    if (cpu::has_byte_dots(target) && fn(Isa{target, true})) return;
    if (fn(Isa{target, false})) return;
  }
}

bool same_name(const std::string& a, const std::string& b) {
  const auto upper = [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return upper(x) == upper(y); });
}

}  // namespace

const char* Isa::name() const {
  if (matrix_unit) return "AMX";
  if (!byte_dots) return hwy::TargetName(target);
  return target == HWY_AVX3 ? "AVX3_VNNI" : target == HWY_AVX2 ? "AVX2_VNNI" : "NEON_DOTPROD";
}

std::vector<Isa> supported_isas() {
  std::vector<Isa> isas;
  if (targets_of_machine(); cpu::has_matrix_unit()) isas.push_back({HWY_AVX3_DL, false, true});
  each_plain_isa([&](const Isa& isa) {
    isas.push_back(isa);
    return false;
  });
  return isas;
}

void set_isa(const Isa& isa) {
  targets_of_machine();
  hwy::SetSupportedTargetsForTest(isa.target);
  cpu::allow_byte_dots(isa.byte_dots);
  cpu::allow_matrix_unit(isa.matrix_unit);
}

void reset_isa() {
  hwy::SetSupportedTargetsForTest(0);
  cpu::allow_byte_dots(true);
  cpu::allow_matrix_unit(true);
}

namespace cpu {

// The matrix unit is not asked for unless it is meant: a process that has it needs larger stacks for signals.
Result<Isa> find_isa(const std::string& name) {
  Isa found{};
  each_plain_isa([&](const Isa& isa) {
    if (same_name(name, isa.name())) found = isa;
    return found.target != 0;
  });
  if (found.target != 0) return found;
  const std::vector<Isa> all = supported_isas();
  if (all.front().matrix_unit && same_name(name, all.front().name())) return all.front();
  std::string known;
  for (const Isa& isa : all) known += std::string(known.empty() ? "" : ", ") + isa.name();
  return error(Code::unsupported, "device cpu:" + name + ": this machine runs " + known);
}

static thread_local constinit const Isa* of_thread = nullptr;

const Isa* isa_of_thread() { return of_thread; }
RunsIsa::RunsIsa(const Isa* isa) : before_(of_thread) { of_thread = isa; }
RunsIsa::~RunsIsa() { of_thread = before_; }

}  // namespace cpu
}  // namespace aerie::kernels

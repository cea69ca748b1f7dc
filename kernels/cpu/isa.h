// Which instruction set kernels run with: that of the device whose task a thread has (CpuOptions::isa), else the process's.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "kernels/status.h"

namespace aerie::kernels {

// An instruction set that kernels are compiled for: a Highway target, whether an instruction for products of bytes is used that
// goes with it on some machines (byte_dots.h), and whether a matrix unit is (matrix_unit.h).
struct Isa {
  int64_t target = 0;
  bool byte_dots = false, matrix_unit = false;
  const char* name() const;  // "AVX3_DL", "AVX2_VNNI", ...
};
// Those of this machine, best first, for as long as the process lives. Asks the kernel for the matrix unit.
std::span<const Isa> supported_isas();
// Tests and benchmarks: the process's is this one of them; the best again.
void set_isa(const Isa& isa);
void set_isa(Isa&&) = delete;
void reset_isa();

namespace cpu {

// By its name in any case; unsupported: this machine has others.
Result<const Isa*> find_isa(const std::string& name);

const Isa& isa_of_process();
// Of this thread, now.
const Isa& isa_now();
inline bool use_byte_dots(int64_t target) { return isa_now().byte_dots && isa_now().target == target; }
inline bool use_matrix_unit() { return isa_now().matrix_unit; }

// While it lives, this thread runs that.
class RunsIsa {
 public:
  explicit RunsIsa(const Isa& isa);
  ~RunsIsa();
  RunsIsa(const RunsIsa&) = delete;
  RunsIsa& operator=(const RunsIsa&) = delete;

 private:
  const Isa* before_;
};

}  // namespace cpu
}  // namespace aerie::kernels

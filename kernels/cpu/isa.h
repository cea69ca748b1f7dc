// Which instruction set kernels are run with: that of the device whose task a thread has (CpuOptions::isa), else the process's.
#pragma once

#include <string>

#include "kernels/cpu/cpu_device.h"

namespace aerie::kernels::cpu {

// By its name in any case; unsupported: this machine has others.
Result<Isa> find_isa(const std::string& name);

// What this thread's device wants; null: nothing.
const Isa* isa_of_thread();

// While it lives, this thread runs that. isa may be null.
class RunsIsa {
 public:
  explicit RunsIsa(const Isa* isa);
  ~RunsIsa();
  RunsIsa(const RunsIsa&) = delete;
  RunsIsa& operator=(const RunsIsa&) = delete;

 private:
  const Isa* before_;
};

}  // namespace aerie::kernels::cpu

// The probe of the emulated device: no number of it means anything, but all that prints numbers can be run.
#include "tests/gpu/probe.h"

namespace aerie::gpu_bench {

double read_bandwidth() { return 1e9; }
std::string describe() { return "emulated: these numbers mean nothing"; }

}  // namespace aerie::gpu_bench

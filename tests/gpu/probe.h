// What is asked of the card directly. tests/gpu/probe.cu, or dry_probe.cc where there is none.
#pragma once

#include <string>

namespace aerie::gpu_bench {

double read_bandwidth();  // bytes a second, median of 30; 0: it could not be measured
std::string describe();   // card, driver and runtime

}  // namespace aerie::gpu_bench

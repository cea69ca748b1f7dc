// What is asked of the card directly. tests/gpu/probe.cu and cublaslt.cc, or dry_probe.cc where there is none.
#pragma once

#include <cstdint>
#include <string>

namespace aerie::gpu_bench {

double read_bandwidth();  // bytes a second, median of 30; 0: it could not be measured
std::string describe();   // card, driver and runtime
// Microseconds of (rows, k) x (n, k)^T in bf16 with f32 sums by the best algorithm cuBLASLt suggests; 0: not installed.
double cublaslt_us(int64_t n, int64_t k, int64_t rows);

}  // namespace aerie::gpu_bench

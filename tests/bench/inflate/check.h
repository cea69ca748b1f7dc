// Whether an inflated target still says what the small one says.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/status.h"

namespace aerie::inflate {

struct Comparison {
  size_t tokens = 0;  // that were compared: fewer than asked for where the model's context ends
  size_t same = 0;    // the first that differ are number `same` (from 0); `tokens` when none do
};

// Plain greedy decode of both target packages from a fixed prompt.
Result<Comparison> compare_greedy(const std::string& small, const std::string& big, int64_t n);

}  // namespace aerie::inflate

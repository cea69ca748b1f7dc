// The candidate head of a target (core/drafter/candidates.cc uses it): its LM head W (V, H) as a product of two
// thin matrices, W ~ up * down, made at conversion.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/status.h"
#include "kernels/tensor.h"

namespace aerie {

struct LowRank {
  std::vector<float> down;  // (rank, H): orthonormal rows that span the best directions
  std::vector<float> up;    // (V, rank) = W * down^T
  double kept = 0;          // |up * down|^2 / |W|^2
};

// The truncated singular value decomposition of w (rows, cols), but for a rotation among the `rank` directions,
// which the product does not see. 1 <= rank <= cols. `wanted` is asked every tenth of a second or so: false cancels.
Result<LowRank> low_rank(const std::vector<float>& w, int64_t rows, int64_t cols, int64_t rank,
                         const std::function<bool()>& wanted = {});

// Four bits would lose the little that the approximation has left.
inline kernels::DType candidate_dtype(kernels::DType model) {
  return kernels::is_nibbles(model) ? kernels::DType::int8 : model;
}

}  // namespace aerie

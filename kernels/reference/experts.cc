// Mixtures of experts: which, how much, and their sums.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/reference/reference.h"
#include "kernels/route_math.h"

namespace aerie::kernels::reference {

void run(const Route& op) {
  for (int64_t r = 0; r < op.logits.rows; ++r) route_row(op, r);
}

// Row by row: so no row can meddle with another.
void run(const ExpertLinear& op) {
  const int64_t n = op.out.cols, all = op.w.rows / n, panels_each = n / kPanel;
  const int64_t shared = op.x.rows == op.out.rows ? 1 : op.k;  // outputs that read the same row
  for (int64_t p = 0; p < op.out.rows; ++p) {
    const int64_t e = op.experts[p];
    const Tensor out = rows(op.out, p, 1);
    if (e < 0 || e >= all) std::fill_n(&at(out, 0, 0), n, 0.0f);
    else run(Linear{rows(op.x, p / shared, 1), panels(op.w, e * panels_each, panels_each), op.bias ? rows(op.bias, e, 1) : Tensor{}, {}, out});
  }
}

void run(const CombineExperts& op) {
  const int64_t k = op.weights.cols;
  for (int64_t r = 0; r < op.out.rows; ++r)
    for (int64_t c = 0; c < op.out.cols; ++c) {
      float sum = 0;
      for (int64_t i = 0; i < k; ++i) {
        const float part = at(op.weights, r, i) * at(op.x, r * k + i, c);
        sum = i == 0 ? part : sum + part;
      }
      at(op.out, r, c) = sum;
    }
}

}  // namespace aerie::kernels::reference

// LiveCost: what passes cost here and now. A first idea (a cost table's, or a quick measurement's), which real passes correct
// and which follows the context as the text grows.
#pragma once

#include <memory>

#include "core/cost/cost_grid.h"
#include "core/cost/pass_cost.h"

namespace aerie {

class LiveCost {
 public:
  // From a table, at `context`; what real passes have taught is forgotten.
  void start(std::shared_ptr<const CostGrid> table, int64_t context, double unsure = kMeasuredWell);
  // From what is told at one context; from nothing, the first real pass says what passes cost.
  void start(const PassCost& told);
  // As an earlier session has found them: false, and nothing has changed, when it went by another table.
  bool resume(const LiveCost& seen, const CostGrid* table, int64_t context);
  // The text has grown or shrunk, or other sequences have joined the passes. Corrections stay: a busy machine is busy
  // at every context. True: curve() is that of `batch` sequences of n rows each; false: of one, for nobody has measured several.
  bool at(int64_t context, int32_t batch = 1);
  void measured(int32_t rows, double ms);  // rows of all sequences

  bool known() const { return cost_.known(); }
  double ms(int32_t rows) const { return cost_.ms(rows); }
  const PassCost::Curve& curve() const { return cost_.curve(); }

 private:
  std::shared_ptr<const CostGrid> table_;
  PassCost::Curve base_{};  // the table's curve at context_
  int64_t context_ = 0;
  int32_t batch_ = 1;   // of the curve
  int32_t beside_ = 1;  // of the passes
  PassCost cost_;
};

}  // namespace aerie

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
  void start(std::shared_ptr<const CostGrid> table, int64_t context);
  // From a measurement at one context; from an unknown one, the first real pass says what passes cost.
  void start(const PassCost& measured);
  // The text has grown or shrunk. Corrections stay: a busy machine is busy at every context.
  void at(int64_t context);
  void measured(int32_t rows, double ms) { cost_.measured(rows, ms); }

  bool known() const { return cost_.known(); }
  double ms(int32_t rows) const { return cost_.ms(rows); }
  const PassCost::Curve& curve() const { return cost_.curve(); }

 private:
  std::shared_ptr<const CostGrid> table_;
  PassCost::Curve base_{};  // the table's curve at context_
  int64_t context_ = 0;
  PassCost cost_;
};

}  // namespace aerie

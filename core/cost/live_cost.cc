#include "core/cost/live_cost.h"

#include <cstdlib>

namespace aerie {

namespace {
constexpr int64_t kStep = 16;  // positions; the curve changes little in between
}

void LiveCost::start(std::shared_ptr<const CostGrid> table, int64_t context) {
  table_ = std::move(table);
  context_ = context;
  batch_ = 1;
  base_ = table_->curve(1, context);
  cost_ = PassCost{};
  for (const int32_t n : table_->row_counts()) cost_.seed(n, base_[static_cast<size_t>(n)]);
}

void LiveCost::start(const PassCost& measured) {
  table_ = nullptr;
  cost_ = measured;
}

bool LiveCost::start(const LiveCost& seen, const CostGrid* table, int64_t context) {
  if (!seen.known() || seen.table_.get() != table) return false;
  *this = seen;
  cost_.resume();
  at(context, beside_);
  return true;
}

void LiveCost::measured(int32_t rows, double ms) { cost_.measured((rows + batch_ - 1) / batch_, ms); }

bool LiveCost::at(int64_t context, int32_t batch) {
  if (batch != beside_) cost_.regroup();
  beside_ = batch;
  if (!table_) return batch == 1;
  if (std::abs(context - context_) < kStep && batch == batch_) return true;
  const auto fresh = table_->curve(batch, context);
  cost_.rebase(base_, fresh);
  base_ = fresh;
  context_ = context;
  batch_ = batch;
  return true;
}

}  // namespace aerie

#include "core/cost/live_cost.h"

#include <algorithm>
#include <cstdlib>

namespace aerie {

namespace {
constexpr int64_t kStep = 16;  // positions; the curve changes little in between
}

void LiveCost::start(std::shared_ptr<const CostGrid> table, int64_t context, double unsure) {
  table_ = std::move(table);
  context_ = context;
  batch_ = 1;
  base_ = table_->curve(1, context);
  cost_ = PassCost{};
  for (const int32_t n : table_->row_counts()) cost_.seed(n, base_[static_cast<size_t>(n)], unsure);
}

void LiveCost::start(const PassCost& told) {
  table_ = nullptr;
  cost_ = told;
}

bool LiveCost::resume(const LiveCost& seen, const CostGrid* table, int64_t context) {
  if (!seen.known() || seen.table_.get() != table) return false;
  *this = seen;
  cost_.resume();
  at(context, beside_);
  return true;
}

void LiveCost::measured(int32_t rows, double ms) {
  if (batch_ == 1) return cost_.measured(rows, ms);
  // As the table has it, a pass in which sequences have differing row counts, or some have none, goes for one of n rows of each.
  const int32_t n = std::clamp((rows + batch_ / 2) / batch_, 1, kMaxCostRows);
  const double alike = base_[static_cast<size_t>(n)];
  const auto context = static_cast<double>(context_);
  const double such = rows < batch_ ? table_->ms(rows, context, 1) : table_->ms(batch_, context, static_cast<double>(rows) / batch_);
  if (such > 0) cost_.measured(n, ms * alike / such);
}

bool LiveCost::at(int64_t context, int32_t batch) {
  const int32_t of = table_ && table_->last_batch() > 1 ? batch : 1;
  if (batch != beside_) cost_.regroup(of == batch ? 1 : batch);  // such a table knows what sequences add
  beside_ = batch;
  if (!table_) return batch == 1;
  if (std::abs(context - context_) >= kStep || of != batch_) {
    const auto fresh = table_->curve(of, context);
    cost_.rebase(base_, fresh);
    base_ = fresh;
    context_ = context;
    batch_ = of;
  }
  return of == batch;
}

}  // namespace aerie

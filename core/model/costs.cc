// What a model tells sessions about its costs: an attached table's, or a quick measurement's.
#include <algorithm>

#include "core/model/cost_key.h"
#include "core/model/measure.h"

namespace aerie {

namespace {

constexpr auto kQuick = std::chrono::milliseconds(700);
constexpr int32_t kQuickContext = 256;

// A session's first use pays for this, so it takes little time, and no KV that others may want meanwhile.
Result<PassCost> quick_costs(const Model& model) {
  MeasureOptions o;
  o.deadline = kernels::Clock::now() + kQuick;
  o.rows = {1, 2, 4, 8, 16, 32, 64, 128};
  o.contexts = {std::clamp(model.config().max_context / 2, 1, kQuickContext)};
  while (o.contexts[0] > 1 && o.contexts[0] + kMaxCostRows > model.pool()->free_positions() / 2) o.contexts[0] /= 2;
  o.least_samples = 1;
  o.most_samples = 15;  // of a small model's quick passes, which a hiccup spoils easily
  o.point_ms = 40;
  AERIE_ASSIGN(const CostGrid grid, measure_target(model, o));
  PassCost cost;
  for (const CostPoint& p : grid.points()) cost.seed(p.rows, p.ms);
  return cost;
}

}  // namespace

PassCost Model::pass_cost() const {
  const std::lock_guard<std::mutex> lock(cost_mutex_);
  if (cost_tried_) return cost_;
  cost_tried_ = true;
  if (const Result<PassCost> quick = quick_costs(*this); quick.ok()) cost_ = *quick;
  return cost_;
}

Status Model::use_costs(std::shared_ptr<const CostTable> table) {
  if (Status s = check_key(table->key, cost_key(*this)); !s.ok()) return s;
  const std::lock_guard<std::mutex> lock(cost_mutex_);
  table_ = std::move(table);
  return {};
}

std::shared_ptr<const CostGrid> Model::costs() const {
  const std::lock_guard<std::mutex> lock(cost_mutex_);
  return table_ ? std::shared_ptr<const CostGrid>(table_, &table_->target) : nullptr;
}

}  // namespace aerie

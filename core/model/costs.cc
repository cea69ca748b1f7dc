// What a model tells sessions about its costs: an attached table's, or a quick measurement's.
#include <algorithm>
#include <utility>

#include "core/model/cost_key.h"
#include "core/model/measure.h"

namespace aerie {

namespace {

constexpr auto kQuick = std::chrono::milliseconds(700);
constexpr int32_t kShortContext = 32, kLongContext = 256;

// A session's first use pays for this, so it takes little time, and no KV that others may want meanwhile.
Result<CostGrid> measure_few(const Model& model) {
  MeasureOptions o;
  o.rows = {1, 2, 4, 8, 16, 32, 64, 128};
  const int64_t room = model.pool()->free_positions() / 2;
  int32_t longest = std::clamp(model.config().max_context / 2, 1, kLongContext);
  while (longest > 1 && longest + kMaxCostRows > room) longest /= 2;
  // Weights that are only mapped come from the file with the first pass, which may take as long as all others together and says
  // nothing of them. It has a time of its own.
  MeasureOptions first = o;
  first.deadline = kernels::Clock::now() + kQuick;
  first.rows = {1};
  first.contexts = {1};
  first.least_samples = first.most_samples = 0;  // but the one to warm up
  AERIE_TRY(measure_target(model, first).status());
  o.deadline = kernels::Clock::now() + kQuick;
  o.contexts = {longest};
  if (longest > kShortContext) o.contexts.push_back(kShortContext);  // comes first: where time is short it is all there is
  o.least_samples = 1;
  o.most_samples = 15;  // of a small model's quick passes, which a hiccup spoils easily
  o.point_ms = 20;
  return measure_target(model, o);
}

}  // namespace

// No lock is held while the host's hooks are called: the one that waits may have others of its jobs run, and they may come
// here. Who comes in the meantime goes without, and learns from its passes.
std::shared_ptr<const CostGrid> Model::quick_costs() const {
  std::unique_lock<std::mutex> lock(cost_mutex_);
  if (std::exchange(quick_tried_, true)) return quick_;
  lock.unlock();
  std::shared_ptr<const CostGrid> measured;
  if (Result<CostGrid> few = measure_few(*this); few.ok()) measured = std::make_shared<const CostGrid>(std::move(few).value());
  lock.lock();
  return quick_ = std::move(measured);
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

#include "core/model/measure.h"

#include <algorithm>
#include <vector>

namespace aerie {

namespace {

constexpr int kRepeats = 3;      // after one to warm up
constexpr double kLongMs = 40;   // a pass this long is measured by its first run

Result<double> time_pass(const Model& model, Plan& plan, kernels::Queue& queue, KvSequence& kv, int64_t context, int32_t n) {
  std::vector<double> ms;
  for (int i = 0; i <= kRepeats; ++i) {  // the first one warms up
    plan.clear();
    RowsBuilder rows;
    rows.sequence(kv);
    rows.plain(0, context - 1);
    for (int32_t r = 1; r < n; ++r) {
      const int32_t slot = kv.scratch_slot(r - 1);
      rows.tree(0, context, {&slot, 1});
    }
    model.logits(plan, model.forward(plan, rows.stage(plan), {}, {}));
    const auto start = kernels::Clock::now();
    AERIE_TRY(plan.submit(queue));
    AERIE_ASSIGN(const kernels::RunState state, queue.advance(kernels::kNoDeadline));
    if (state != kernels::RunState::done) return error(Code::device, "cost measurement did not finish");
    const double took = std::chrono::duration<double, std::milli>(kernels::Clock::now() - start).count();
    if (took > kLongMs) return took;
    if (i > 0) ms.push_back(took);
  }
  std::sort(ms.begin(), ms.end());
  return ms[ms.size() / 2];
}

}  // namespace

Result<PassCost> measure_target(const Model& model, int64_t context, std::chrono::milliseconds budget) {
  const auto deadline = kernels::Clock::now() + budget;
  AERIE_ASSIGN(auto plan, Plan::create(model.device(), 1 << 20));
  AERIE_ASSIGN(auto queue, model.device()->make_queue());
  KvSequence kv(model.pool(), context + 1, kMaxCostRows);
  AERIE_TRY(kv.reserve(context));
  PassCost cost;
  double last = 0;
  for (int32_t n = 1; n <= kMaxCostRows; n *= 2) {
    // The next count may take twice as long.
    const auto expected = std::chrono::duration<double, std::milli>(2 * last * (2 * last > kLongMs ? 1 : kRepeats + 1));
    if (n > 1 && kernels::Clock::now() + std::chrono::duration_cast<kernels::Clock::duration>(expected) > deadline) break;
    AERIE_ASSIGN(last, time_pass(model, *plan, *queue, kv, context, n));
    cost.seed(n, last);
  }
  return cost;
}

PassCost Model::pass_cost() const {
  const std::lock_guard<std::mutex> lock(cost_mutex_);
  if (cost_.known()) return cost_;
  const int64_t context = std::clamp<int64_t>(config().max_context / 2, 1, 256);
  Result<PassCost> measured = measure_target(*this, context, std::chrono::milliseconds(700));
  if (measured.ok()) {
    cost_ = *measured;
  } else {  // no room to measure: a shape that real passes will correct
    cost_.seed(1, 1.0);
    cost_.seed(16, 2.0);
    cost_.seed(128, 10.0);
  }
  return cost_;
}

}  // namespace aerie

#include "core/model/pass_timer.h"

#include <algorithm>
#include <numeric>

#include "core/model/slices.h"

namespace aerie {

using kernels::Clock;

namespace {

double since(Clock::time_point start) { return std::chrono::duration<double, std::milli>(Clock::now() - start).count(); }

}  // namespace

const std::vector<int32_t>& default_row_counts() {
  static const auto& rows = *new std::vector<int32_t>{1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128};
  return rows;
}

std::vector<int32_t> default_contexts(int64_t longest) {
  std::vector<int32_t> out;
  for (int64_t c = 32; c < longest; c *= 4) out.push_back(static_cast<int32_t>(c));
  // The last step is not a tiny one.
  if (!out.empty() && longest < 2 * int64_t{out.back()}) out.pop_back();
  out.push_back(static_cast<int32_t>(std::max<int64_t>(1, longest)));
  return out;
}

int32_t measured_token(int64_t i, int32_t vocab_used) {
  int64_t step = std::max<int64_t>(1, int64_t{vocab_used} * 618 / 1000);  // the golden ratio: any few of them are far apart
  while (std::gcd(step, vocab_used) != 1) ++step;
  return static_cast<int32_t>(i * step % vocab_used);
}

Result<std::unique_ptr<PassTimer>> PassTimer::create(std::shared_ptr<kernels::Device> device, const MeasureOptions& options,
                                                     size_t index_bytes) {
  AERIE_ASSIGN(auto plan, Plan::create(device, index_bytes));
  AERIE_ASSIGN(auto queue, device->make_queue());
  queue->set_slack(kSliceSlack);
  return std::unique_ptr<PassTimer>(new PassTimer(options, std::move(plan), std::move(queue)));
}

Result<double> PassTimer::time(const std::function<Status(Plan&)>& record) {
  if (options_.keep_going && !options_.keep_going()) return error(Code::cancelled, "profile: cancelled");
  const auto start = Clock::now();
  plan_->clear();
  AERIE_TRY(record(*plan_));
  AERIE_TRY(plan_->submit(*queue_));
  for (;;) {
    Result<kernels::RunState> state = queue_->advance(std::min(options_.deadline, Clock::now() + kSlice));
    if (!state.ok()) return state.status();
    if (*state == kernels::RunState::done) return since(start);
    const bool cancelled = options_.keep_going && !options_.keep_going();
    if (!cancelled && Clock::now() < options_.deadline) continue;
    queue_->abandon();
    return cancelled ? error(Code::cancelled, "profile: cancelled") : error(Code::limit, "profile: out of time");
  }
}

Result<std::vector<CostPoint>> sample_row_counts(const kernels::Device& device, int32_t batch, int32_t context,
                                                 std::span<const int32_t> rows, const MeasureOptions& options,
                                                 const std::function<Result<double>(int32_t n)>& pass) {
  struct Row {
    int32_t n;
    double first;  // the warm-up
    int32_t wanted;
    std::vector<double> ms;
  };
  std::vector<Row> all;
  for (const int32_t n : rows) {
    Result<double> first = pass(n);
    for (int i = 1; i < device.warm_ups() && first.ok(); ++i) first = pass(n);
    if (!first.ok() && first.status().code() == Code::limit && !all.empty()) break;
    if (!first.ok()) return first.status();
    const auto wanted = static_cast<int32_t>(std::clamp<double>(options.point_ms / *first, options.least_samples, options.most_samples));
    all.push_back({n, *first, wanted, {}});
  }
  for (int32_t round = 0; round < options.most_samples; ++round)
    for (Row& row : all) {
      if (round >= row.wanted) continue;
      // What the warm-up took, it will take again.
      if (Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double, std::milli>(row.first)) > options.deadline)
        continue;
      const Result<double> ms = pass(row.n);
      if (!ms.ok() && ms.status().code() == Code::limit) continue;
      if (!ms.ok()) return ms.status();
      row.ms.push_back(*ms);
      if (round + 1 == row.wanted && options.passed) options.passed();
    }
  std::vector<CostPoint> points;
  for (Row& row : all) {
    if (row.ms.empty()) row.ms.push_back(row.first);
    std::sort(row.ms.begin(), row.ms.end());
    const size_t n = row.ms.size();
    const double median = n % 2 ? row.ms[n / 2] : (row.ms[n / 2 - 1] + row.ms[n / 2]) / 2;
    points.push_back({batch, context, row.n, median, row.ms.front(), row.ms.back(), static_cast<int32_t>(n)});
  }
  return points;
}

}  // namespace aerie

// Timing passes as sessions run them: recorded, submitted and run in slices, on a queue of their own.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/cost/cost_grid.h"
#include "core/model/plan.h"

namespace aerie {

struct MeasureOptions {
  std::vector<int32_t> batches = {1};
  std::vector<int32_t> contexts;  // empty: 32, 128, 512, ... and the longest that fits
  std::vector<int32_t> rows;      // empty: where the kernels change their tiles, to 128
  int32_t least_samples = 3, most_samples = 9;  // of a point, after one pass to warm up
  double point_ms = 300;                        // as many as fit into this
  kernels::Clock::time_point deadline = kernels::kNoDeadline;  // what does not fit before it is left out
  std::function<bool()> keep_going;                            // asked every few milliseconds; null: yes
  std::function<void()> passed;                                // called after every point; may be null
};

const std::vector<int32_t>& default_row_counts();   // 1 .. 128
std::vector<int32_t> default_contexts(int64_t longest);  // ascending; never empty
// What row i of a measured pass is of: no token twice as long as there are others, spread over the vocabulary, always the same ones.
// Equal rows would all take the same experts of a mixture, and cost hardly more than one.
int32_t measured_token(int64_t i, int32_t vocab_used);

class PassTimer {
 public:
  static Result<std::unique_ptr<PassTimer>> create(std::shared_ptr<kernels::Device> device, const MeasureOptions& options,
                                                   size_t index_bytes);
  // Milliseconds of recording and running. Code::limit: the deadline came first. Code::cancelled.
  Result<double> time(const std::function<Status(Plan&)>& record);

 private:
  PassTimer(const MeasureOptions& options, std::unique_ptr<Plan> plan, std::unique_ptr<kernels::Queue> queue)
      : options_(options), plan_(std::move(plan)), queue_(std::move(queue)) {}
  const MeasureOptions& options_;
  std::unique_ptr<Plan> plan_;
  std::unique_ptr<kernels::Queue> queue_;
};

// Points of one batch and context: medians for each row count, the samples taken in turns so that all row counts see the
// same weather, after the device's warm-ups of each. A deadline leaves out row counts from the largest down; not even one:
// Code::limit.
Result<std::vector<CostPoint>> sample_row_counts(const kernels::Device& device, int32_t batch, int32_t context,
                                                 std::span<const int32_t> rows, const MeasureOptions& options,
                                                 const std::function<Result<double>(int32_t n)>& pass);

}  // namespace aerie

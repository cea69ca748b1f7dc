// A quick measurement of the target's passes on this device, for policies that weigh costs.
#pragma once

#include <chrono>

#include "core/cost/pass_cost.h"
#include "core/model/model.h"

namespace aerie {

// Times passes of 1, 2, 4, ... 128 rows behind `context` positions, the median of a few each (long passes once), and stops
// before `budget` is overspent: a pass of one row is always timed, counts that were not are extrapolated. The model's KV pool must have room for
// the context and 128 rows; what they hold does not matter.
Result<PassCost> measure_target(const Model& model, int64_t context, std::chrono::milliseconds budget);

}  // namespace aerie

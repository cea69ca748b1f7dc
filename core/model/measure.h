// What a target's passes cost on this device.
#pragma once

#include "core/model/model.h"
#include "core/model/pass_timer.h"

namespace aerie {

// A verify pass over rows of one or several sequences, as `options` says. The model's KV pool must have room for the
// contexts and 128 rows of each sequence, and all of the contexts is written. Contexts that find no room are left out (the first
// one of the first batch: Code::limit), and so are row counts and contexts that the deadline cuts off.
Result<CostGrid> measure_target(const Model& model, const MeasureOptions& options);

}  // namespace aerie

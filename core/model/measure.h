// What a target's passes cost on this device.
#pragma once

#include "core/model/model.h"
#include "core/model/pass_timer.h"

namespace aerie {

// A verify pass over rows of one or several sequences, as `options` says. The model's KV pool must have room for the
// contexts and 128 rows of each sequence, and all of the contexts is written. Contexts that find no room are left out (the first
// one of the first batch: Code::limit), and so are row counts and contexts that the deadline cuts off.
Result<CostGrid> measure_target(const Model& model, const MeasureOptions& options);

// Zeros for positions [0, context), at least one, of sequences that have room for them. Memory that nobody has written yet may be no memory
// at all, and is then read in no time.
Status fill_context(const Model& model, const std::vector<std::unique_ptr<KvSequence>>& sequences, int32_t context, PassTimer& timer);

}  // namespace aerie

// What a drafter's passes cost on this device, and the table of a target and its drafters.
#pragma once

#include <memory>
#include <span>

#include "core/drafter/drafter.h"
#include "core/model/pass_timer.h"

namespace aerie {

DrafterKey drafter_key(Drafter& drafter);

// Takes one of the drafter's sequences meanwhile. The batches of `options` do not matter: batch 1.
Result<DrafterCosts> measure_drafter(const std::shared_ptr<Drafter>& drafter, const MeasureOptions& options);

// What drafter->costs() are where no table is attached: measured at the first call, in about `share`, which other callers wait
// for; null when that fails, which the log is told, and for a drafter on the host, whose proposals cost no pass. [any thread]
std::shared_ptr<const DrafterCosts> quick_costs(const std::shared_ptr<Drafter>& drafter, std::chrono::milliseconds share);

// All of it. Each drafter was opened for `model`. share: the time that the target, and each drafter, should take; 0: any.
// progress: points measured and points in all.
Result<CostTable> measure_costs(const Model& model, std::span<const std::shared_ptr<Drafter>> drafters,
                                const MeasureOptions& options, std::chrono::milliseconds share,
                                const std::function<void(uint64_t done, uint64_t total)>& progress);

}  // namespace aerie

// Writes inflated packages: a trained model (and its drafters) inside a larger Llama shape, its function unchanged, so
// that real acceptance is measured at real cost. Everything that is multiplied by zero is random, never zero.
#pragma once

#include <memory>

#include "core/package/package.h"
#include "core/package/writer.h"
#include "matrix.h"

namespace aerie::inflate {

struct Job {
  std::shared_ptr<const Package> small;  // what is inflated
  Shape big;
  uint64_t seed = 1;
  std::string output;
};

// The fingerprint of the target that `job` writes.
std::string inflated_fingerprint(const Job& job);

Status inflate_target(const Job& job);

// `target`: the job that wrote the drafter's target. A draft model (a target package) is scaled by the same ratios and
// gets its target's vocabulary size; another drafter gets its target's width, heads and feed-forward size.
Status inflate_drafter(const Job& job, const Job& target);

}  // namespace aerie::inflate

// The services a plugin can ask its host for.
#pragma once

#include "core/drafter/resources.h"

namespace aerie {

// A service table by id, or null (services.cc). host->context is the drafter's DrafterResources.
const void* drafter_service(const aerie_drafter_host* host, const char* id);

const aerie_service_compute* compute_service();  // compute_service.cc

// Poison the plan and return AERIE_D_INVALID.
int32_t compute_fail(aerie_plan* plan, const std::string& what);
// Top-k of logits (rows * levels, V) into `out`; vocab_map (i32, device) may be null.
int32_t record_candidates(aerie_plan* plan, const kernels::Tensor& logits, const kernels::Tensor& vocab_map,
                          aerie_candidates* out);

}  // namespace aerie

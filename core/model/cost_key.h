// What a model's costs are keyed by.
#pragma once

#include "core/cost/cost_table.h"
#include "core/model/model.h"

namespace aerie {

CostKey cost_key(const Model& model);
// Dtypes of a package's matrices, "int4+int8"; empty without a package.
std::string weight_dtypes(const Package* package);

}  // namespace aerie

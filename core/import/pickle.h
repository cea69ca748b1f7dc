#pragma once

#include <string>
#include <vector>

#include "kernels/status.h"

namespace aerie {

// The error for PyTorch pickles, with the command that makes a model.safetensors of them, beside the first.
Status refuse_pickles(const std::vector<std::string>& files);

// Those of a directory that hold weights; empty: there are none.
Result<std::vector<std::string>> find_pickles(const std::string& directory);

}  // namespace aerie

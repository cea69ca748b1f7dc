// Two ways to a text that `aerie verify` compares with plain decode's: saved and restored on the way, and in the smallest
// slices there are.
#pragma once

#include <random>

#include "common.h"

namespace cli {

// Saved at random places, in mid-cycle too; what was restored goes on, now and then without the drafter. Counts saves.
std::vector<int32_t> saved_tokens(aerie_model* model, const aerie_session_options& options, const std::vector<int32_t>& prompt,
                                  int length, std::mt19937_64& random, uint64_t* saves);
// Every step has a budget of one microsecond, those that read the prompt included. Counts steps.
std::vector<int32_t> sliced_tokens(aerie_model* model, const aerie_session_options& options, const std::vector<int32_t>& prompt,
                                   int length, uint64_t* steps);

}  // namespace cli

// How a pass runs where no budget says when to be back: in slices, after each of which somebody may call it off.
#pragma once

#include <chrono>

namespace aerie {

constexpr auto kSlice = std::chrono::milliseconds(2);
// What an op may add to that (kernels::Queue::set_slack): its weights then arrive in one go. By the estimate for a fast machine; a
// slow one takes several times as long.
constexpr auto kSliceSlack = std::chrono::microseconds(500);

}  // namespace aerie

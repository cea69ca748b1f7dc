// RowHabit: how many rows a target's pass is given for a tree whose size only the device will know. A power of two, as
// devices work for; a tree that wants more is cut to it, and the next one has twice the room. Rows without a node are not for
// nothing (on an H100 a pass of 128 takes three times as long as one of 16), so one tree is enough to know better than 128.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace aerie {

class RowHabit {
 public:
  int32_t room() const { return room_; }
  // rows: those that a tree came to in that room, the root one of them.
  void came(int32_t rows) {
    last_[at_++ % last_.size()] = rows;
    const int32_t most = *std::max_element(last_.begin(), last_.end()), wanted = most + most / 2;
    room_ = rows >= room_ ? 2 * room_ : std::min(room_, static_cast<int32_t>(std::bit_ceil(static_cast<uint32_t>(wanted))));
    room_ = std::clamp(room_, kLeast, kMost);
  }

 private:
  static constexpr int32_t kMost = 128, kLeast = 4;
  std::array<int32_t, 8> last_{};
  size_t at_ = 0;
  int32_t room_ = kMost;
};

}  // namespace aerie

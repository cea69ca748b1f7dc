// RowHabit: how many rows a target's pass is given for a tree whose size only the device will know. A power of two, as
// devices work for; a tree that wants more is cut to it, and the next one has twice the room.
#pragma once

#include <algorithm>
#include <cstdint>

namespace aerie {

class RowHabit {
 public:
  int32_t room() const { return room_; }
  // rows: those that a tree came to in that room, the root one of them.
  void came(int32_t rows) {
    small_ = 2 * rows <= room_ ? small_ + 1 : 0;
    if (rows >= room_) room_ = std::min(2 * room_, kMost);
    else if (small_ >= kSmall && room_ > kLeast) room_ /= 2, small_ = 0;
  }

 private:
  static constexpr int32_t kMost = 128, kLeast = 4, kSmall = 16;  // so many trees in a row would have fitted in half of it
  int32_t room_ = kMost, small_ = 0;
};

}  // namespace aerie

// Rotary positions as a config.json describes them.
#pragma once

#include "core/import/json.h"
#include "core/package/config.h"

namespace aerie {

struct HfRope {
  float theta = 10000;
  RopeScaling scaling;
  float partial = 1;            // of a head's elements, the first so many are rotated
  std::vector<float> divisors;  // LongRoPE: of each frequency
  int32_t context = 0;          // positions that it is for, if it says so; 0: not
  std::string note;             // what a user should know
  int32_t rotated(int32_t head_dim) const { return static_cast<int32_t>(static_cast<float>(head_dim) * partial); }
  bool plain() const { return partial == 1 && divisors.empty(); }  // theta and scaling say it all
};

// `layer_type`: where the file describes those of several types of layers, this one. `reads`: what max_position_embeddings says;
// `wanted`: the longest text that is asked for, 0: any. Messages are "KEY: what".
Status read_rope(const ConfigReader& j, const char* layer_type, int32_t reads, int32_t wanted, HfRope* out);

// A row of rope.frequencies: head_dim / 2 of them, in the order of partly_rotated_order() (rotary_order.h), and the scale.
std::vector<float> listed_frequencies(const HfRope& rope, int32_t head_dim);

}  // namespace aerie

// The larger Llama shape a trained model is put into, and how the small one's parts lie in it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/package/config.h"
#include "kernels/status.h"

namespace aerie::inflate {

struct Shape {
  int32_t hidden = 0, layers = 0, heads = 0, kv_heads = 0, ffn = 0, vocab = 0;
  int32_t head_dim = 0;  // 0: the model's, which is the only one that is possible
  // In place of each MLP so many experts, of which a random router chooses. Each is the model's whole MLP and has the width ffn; what
  // those chosen say is the same, and their shares add up to 1 but for rounding.
  int32_t experts = 0, experts_used = 0;
};

// "110m", "1b", "8b" with as many heads of `head_dim` as make their widths of queries and keys, or
// "dim=768,layers=18,heads=12,kv_heads=4,ffn=2048,vocab=8192", perhaps with "experts=32,experts_used=4".
Result<Shape> parse_shape(const std::string& text, int32_t head_dim);
Status check_shape(const LlamaConfig& small, const Shape& big);

// Rows of a big matrix: a row of the small one, or
constexpr int32_t kNoise = -1;   // random: whatever comes out is ignored or multiplied by zero
constexpr int32_t kSilent = -2;  // nothing may come out
// Columns, in units: a unit of the small one, or
constexpr int32_t kQuiet = -1;   // what comes in is zero: the weight may be random
constexpr int32_t kHot = -2;     // what comes in is not zero and must not pass

using Map = std::vector<int32_t>;

// Of the parts of the small tensor that `m` shows, the last + 1; 0 when it shows none.
int32_t shown(const Map& m);

// Widths are whole units (32 elements for quantised weights: blocks share a scale).
struct Maps {
  int32_t unit = 32;
  Map rows_from(int32_t small, int32_t big, int32_t rest) const;         // [0, small) live, then `rest`
  Map columns(int32_t small, int32_t big, int32_t groups = 1) const;     // `groups` times small of big, rest quiet
};

// Which small head each big one plays. Idle KV groups are -1; a query head beyond those of a live group repeats the
// group's first one, so that the row's largest value stays what it was, and is marked as such.
struct Heads {
  Map kv;                  // big KV head -> small one, -1 idle
  Map query;               // big query head -> small one, -1 idle
  std::vector<bool> repeated;
};
Result<Heads> place_heads(int32_t heads, int32_t kv_heads, int32_t big_heads, int32_t big_kv_heads);

// Big layer -> small layer, -1: one that adds nothing. first_of[i]: the big layer that plays small layer i.
Map place_layers(int32_t small, int32_t big, Map* first_of);

// sqrt(d / D), exact in floating point when D / d is a power of four: then nothing changes, bit for bit.
float norm_factor(int32_t small, int32_t big);
// eps * d / D, rounded once: exact whenever the factor is.
float scaled_eps(double eps, int32_t small, int32_t big);
bool exact_ratio(int32_t small, int32_t big);

}  // namespace aerie::inflate

// Penalties: logits of tokens that the text has already are made smaller (CTRL, arXiv 1909.05858, section 4.1; presence and
// frequency as OpenAI's API has them).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace aerie {

struct PenaltyOptions {
  float repetition = 1;              // of all tokens: a logit above 0 is divided by it, any other multiplied
  float presence = 0, frequency = 0;  // of generated ones: taken once; taken as often as it came
  int32_t window = 0;                // the newest tokens alone; 0: all
  bool any() const { return repetition != 1 || presence != 0 || frequency != 0; }
};

class Penalties {
 public:
  void set(const PenaltyOptions& options) { options_ = options; }
  bool any() const { return options_.any(); }
  // A text, of which [generated_from, ...) was generated. Ids are below `vocab`.
  void begin(std::span<const int32_t> text, size_t generated_from, int32_t vocab);
  void push(int32_t token);  // the next one, generated
  void apply(std::span<float> logits) const;

 private:
  struct Count {
    int32_t seen, generated;
    bool listed;
  };
  void count(size_t i, int32_t by);

  PenaltyOptions options_;
  std::vector<int32_t> window_;  // from first_ on
  size_t first_ = 0, generated_ = 0;  // where the generated ones begin
  std::vector<Count> counts_;    // by id
  std::vector<int32_t> ids_;     // those counted since begin(), each once
};

}  // namespace aerie

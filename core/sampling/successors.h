// Successors: what has come behind a token lately, where a constraint had its say. Punctuation and white space of a form a model
// writes the same way each time, though the form leaves it a choice. Guesses, which cost a row of a pass each.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

namespace aerie {

// Of a model, whose sessions learn together, on any threads.
class Successors {
 public:
  static constexpr size_t kKept = 4;
  struct Guess {
    int32_t token = -1;
    float weight = 0;  // how often, and the longer ago the less; 0: none
  };
  using Guesses = std::array<Guess, kKept>;  // best first

  void prepare();  // all memory is taken here; before, nothing is learned
  void learn(int32_t token, int32_t next) noexcept;
  Guesses after(int32_t token) const;

 private:
  static constexpr size_t kPlaces = 4096;  // tokens that are kept, of those that share one the usual one
  struct Place {
    int32_t token = -1;
    Guesses guesses{};
  };
  static size_t place_of(int32_t token) { return static_cast<uint32_t>(token) * 2654435761u >> 20; }

  mutable std::mutex mutex_;
  std::vector<Place> places_;
};

}  // namespace aerie

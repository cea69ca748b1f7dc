// Two drafters that guess from the text itself: "ngram" (prompt lookup) and "ngram-suffix" (suffix automaton).
#pragma once

#include <vector>

#include "aerie/drafter.hpp"
#include "suffix_automaton.h"

namespace ngram {

constexpr int32_t kMaxPath = 10;  // tokens proposed after a match (PLD's published default)

// Confidence that a match of n tokens goes on as it did before: longer matches are better. Behind i tokens that came true it is one
// of n + i.
inline float confidence(int32_t n) {
  return n >= 16 ? 0.97f : n >= 8 ? 0.93f : n >= 4 ? 0.85f : n == 3 ? 0.65f : n == 2 ? 0.5f : 0.25f;
}

// What both are to the host: they read tokens, and need no package.
constexpr uint32_t kFlags = AERIE_DRAFTER_HOST_TOKENS | AERIE_DRAFTER_NO_PACKAGE;

// ngram.cc
struct Lookup : aerie::Drafter {
  static constexpr aerie::DrafterAbout about = {"ngram", "Prompt lookup (PLD)", "0.1.0", kFlags, 0};
  int32_t open(const aerie_drafter_open_info* info, aerie_drafter_needs* needs, aerie_drafter_error* err);
  int32_t propose_host(const aerie_host_context* context, aerie_host_candidates* out);
};

// suffix.cc
struct Suffix : aerie::Drafter {
  static constexpr aerie::DrafterAbout about = {"ngram-suffix", "Suffix automaton over the text", "0.1.0", kFlags, 0};
  int32_t open(const aerie_drafter_open_info* info, aerie_drafter_needs* needs, aerie_drafter_error* err);
  int32_t begin(int32_t seq);
  int32_t propose_host(const aerie_host_context* context, aerie_host_candidates* out);

 private:
  struct Text {
    std::vector<int32_t> tokens;  // what the automaton has read: context tokens [first, first + size)
    int32_t first = 0;
    SuffixAutomaton automaton;

    void follow(const int32_t* t, int32_t n);
    void restart(int32_t from);
  };
  std::vector<Text> texts_;  // by sequence
  std::vector<SuffixAutomaton::Match> matches_;
  void propose(const aerie_host_context& context, aerie_host_candidates* out);
};

}  // namespace ngram

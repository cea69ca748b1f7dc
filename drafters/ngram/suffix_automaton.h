// An online suffix automaton: after every token, the longest suffix of the text that occurred before, and where.
// A text of n tokens has at most 2 n states and 3 n edges (Blumer et al. 1985); about 100 bytes a token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ngram {

class SuffixAutomaton {
 public:
  struct Match {
    int32_t length = 0;  // tokens of the suffix
    int32_t follow = 0;  // index in the text of the token after its latest earlier occurrence that was noted
  };

  SuffixAutomaton() { clear(); }
  void clear();
  void append(int32_t token);
  int32_t size() const { return size_; }
  // Suffixes of the text that occurred before, longest first, at most `most`; each follows a different set of places.
  void matches(int32_t most, std::vector<Match>* out) const;

 private:
  struct State {
    int32_t length = 0;
    int32_t link = -1;        // the longest suffix in another class
    int32_t first_edge = -1;
    int32_t recent = -1;      // end (index of its last token) of the latest occurrence noted
    int32_t before = -1;      // `recent` as it was before the newest token
  };
  struct Edge {
    int32_t state, token, target;
    int32_t next_of_state, next_in_bucket;
  };
  // Occurrences are noted on this many states of the suffix path: shorter suffixes are seldom asked for.
  static constexpr int32_t kNoted = 24;

  int32_t* find(int32_t state, int32_t token);  // the edge's target, null: none
  void add_edge(int32_t state, int32_t token, int32_t target);
  std::size_t bucket(int32_t state, int32_t token) const;
  void grow_buckets();

  std::vector<State> states_;
  std::vector<Edge> edges_;
  std::vector<int32_t> buckets_;
  std::vector<int32_t> noted_;
  int32_t last_ = 0, size_ = 0;
};

}  // namespace ngram

#include "suffix_automaton.h"

namespace ngram {

void SuffixAutomaton::clear() {
  states_.assign(1, State{});
  edges_.clear();
  buckets_.assign(1024, -1);
  noted_.clear();
  last_ = size_ = 0;
}

size_t SuffixAutomaton::bucket(int32_t state, int32_t token) const {
  const uint64_t key = static_cast<uint64_t>(static_cast<uint32_t>(state)) << 32 | static_cast<uint32_t>(token);
  return static_cast<size_t>(key * 0x9E3779B97F4A7C15u >> 32) & (buckets_.size() - 1);
}

int32_t* SuffixAutomaton::find(int32_t state, int32_t token) {
  for (int32_t e = buckets_[bucket(state, token)]; e >= 0; e = edges_[static_cast<size_t>(e)].next_in_bucket) {
    Edge& edge = edges_[static_cast<size_t>(e)];
    if (edge.state == state && edge.token == token) return &edge.target;
  }
  return nullptr;
}

void SuffixAutomaton::grow_buckets() {
  buckets_.assign(buckets_.size() * 2, -1);
  for (size_t e = 0; e < edges_.size(); ++e) {
    int32_t& head = buckets_[bucket(edges_[e].state, edges_[e].token)];
    edges_[e].next_in_bucket = head;
    head = static_cast<int32_t>(e);
  }
}

void SuffixAutomaton::add_edge(int32_t state, int32_t token, int32_t target) {
  if (edges_.size() >= buckets_.size()) grow_buckets();
  State& s = states_[static_cast<size_t>(state)];
  int32_t& head = buckets_[bucket(state, token)];
  edges_.push_back({state, token, target, s.first_edge, head});
  head = s.first_edge = static_cast<int32_t>(edges_.size()) - 1;
}

void SuffixAutomaton::append(int32_t token) {
  const auto at = [&](int32_t s) -> State& { return states_[static_cast<size_t>(s)]; };
  const auto added = static_cast<int32_t>(states_.size());
  states_.push_back({at(last_).length + 1, 0, -1, size_, -1});
  int32_t p = last_;
  while (p >= 0 && !find(p, token)) {
    add_edge(p, token, added);
    p = at(p).link;
  }
  if (p >= 0) {
    const int32_t q = *find(p, token);
    if (at(q).length == at(p).length + 1) {
      at(added).link = q;
    } else {  // the suffix is shorter than its class: it gets one of its own
      const auto clone = static_cast<int32_t>(states_.size());
      states_.push_back({at(p).length + 1, at(q).link, -1, at(q).recent, at(q).before});
      for (int32_t e = at(q).first_edge; e >= 0; e = edges_[static_cast<size_t>(e)].next_of_state)
        add_edge(clone, edges_[static_cast<size_t>(e)].token, edges_[static_cast<size_t>(e)].target);
      for (int32_t* t; p >= 0 && (t = find(p, token)) && *t == q; p = at(p).link) *t = clone;
      at(q).link = at(added).link = clone;
    }
  }
  last_ = added;
  // Suffixes of the text end here now; where they ended before is what a match asks for.
  noted_.clear();
  int32_t n = 0;
  for (int32_t s = at(added).link; s > 0 && n < kNoted; s = at(s).link, ++n) {
    at(s).before = at(s).recent;
    at(s).recent = size_;
    noted_.push_back(s);
  }
  ++size_;
}

void SuffixAutomaton::matches(int32_t most, std::vector<Match>* out) const {
  out->clear();
  for (const int32_t s : noted_) {
    if (static_cast<int32_t>(out->size()) == most) return;
    const State& state = states_[static_cast<size_t>(s)];
    if (state.before >= 0) out->push_back({state.length, state.before + 1});
  }
}

}  // namespace ngram

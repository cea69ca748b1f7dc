// Suffix-automaton drafter: the longest suffix of the text that occurred before proposes what followed it, shorter
// suffixes propose alternatives, each from its latest earlier occurrence. Any length of match, found in constant
// time a token (prompt lookup scans the text and looks no further than four tokens).
#include <algorithm>
#include <new>

#include "ngram.h"

namespace ngram {
namespace {

// Tokens proposed after a match: what is copied is copied for long.
constexpr int32_t kLongestPath = 48;
// Tokens of a text that are remembered; beyond, the older half is forgotten.
constexpr int32_t kMemory = 1 << 20;

// The node below `parent` with this token; -1: none yet.
int32_t child(const aerie_host_candidates& out, int32_t parent, int32_t token) {
  for (int32_t i = 0; i < out.count; ++i)
    if (out.parent[i] == parent && out.token[i] == token) return i;
  return -1;
}

}  // namespace

// Rewound or replaced texts are read anew; otherwise only what is new.
void Suffix::Text::follow(const int32_t* t, int32_t n) {
  const auto known = static_cast<int32_t>(tokens.size());
  if (first + known > n || !std::equal(tokens.begin(), tokens.end(), t + first)) restart(std::max(0, n - kMemory));
  else if (n - first > kMemory) restart(n - kMemory / 2);
  for (auto i = first + static_cast<int32_t>(tokens.size()); i < n; ++i) {
    automaton.append(t[i]);
    tokens.push_back(t[i]);
  }
}

void Suffix::Text::restart(int32_t from) {
  automaton.clear();
  tokens.clear();
  first = from;
}

int32_t Suffix::open(const aerie_drafter_open_info* info, aerie_drafter_needs* needs, aerie_drafter_error*) {
  texts_.resize(static_cast<size_t>(info->max_seqs));
  needs->max_depth = kLongestPath;
  return AERIE_D_OK;
}

int32_t Suffix::begin(int32_t seq) {
  texts_[static_cast<size_t>(seq)].restart(0);
  return AERIE_D_OK;
}

void Suffix::propose(const aerie_host_context& c, aerie_host_candidates* out) {
  Text& text = texts_[static_cast<size_t>(c.seq)];
  text.follow(c.tokens, c.n_tokens);
  text.automaton.matches(std::max(1, c.width), &matches_);
  const auto size = static_cast<int32_t>(text.tokens.size());
  bool first_match = true;
  for (const auto& m : matches_) {
    // The longest match alone may fill the depth; alternatives are kept short.
    const int32_t depth = std::min({first_match ? std::min(kLongestPath, 2 * m.length) : std::min(4, m.length), c.max_depth,
                                    size - m.follow});
    first_match = false;
    int32_t parent = -1;
    for (int32_t i = 0; i < depth; ++i) {
      const int32_t token = text.tokens[static_cast<size_t>(m.follow + i)];
      int32_t node = child(*out, parent, token);
      if (node < 0) {
        if (out->count == out->capacity) return;
        node = out->count++;
        out->token[node] = token;
        out->parent[node] = parent;
        out->confidence[node] = confidence(m.length + i);
      }
      parent = node;
    }
  }
}

int32_t Suffix::propose_host(const aerie_host_context* context, aerie_host_candidates* out) {
  out->count = 0;
  try {
    propose(*context, out);
    return AERIE_D_OK;
  } catch (const std::bad_alloc&) {
    (void)begin(context->seq);  // half read: the next call reads it all
    return AERIE_D_NO_MEMORY;
  }
}

}  // namespace ngram

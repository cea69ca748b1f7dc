// Lookahead decoding (Fu et al. 2024): a two-dimensional Jacobi window runs beside the verification in the target's own
// pass and collects n-grams; those that begin with the newest token are verified in the next cycles.
//
//   window: N - 1 levels of W columns. Level 0 is a guess at the next W tokens, one path below the newest token; row
//   (l, c) stands below (l - 1, c). What the target picks after the last level closes an n-gram of column c, and every
//   level moves up by one: a Jacobi iteration in each column.
//
// The window's rows go through the extension extra_rows; the pool also takes the n-grams of the text itself. Unlike the authors'
// code: column 0 begins at a guess of the next token and not at the newest one; levels begin full of the text's tokens and are not
// filled one a step; at temperature > 0 the window takes draws, with the noise that verification will use, for the likeliest.
#include <algorithm>
#include <cstring>
#include <new>
#include <unordered_map>
#include <vector>

#include "aerie/drafter.hpp"

namespace {

constexpr int32_t kW = 5, kN = 4, kGuesses = 5;  // columns, n-gram length, n-grams kept of one first token
constexpr int32_t kLevels = kN - 1, kRows = kW * kLevels;
constexpr size_t kMaxKeys = 1 << 16;  // first tokens in a pool; a fuller one is emptied

struct Gram {
  int32_t token[kN - 1];  // what follows the key
};

struct Text {
  std::unordered_map<int32_t, std::vector<Gram>> pool;  // newest last
  std::vector<int32_t> seen;                            // tokens whose n-grams are in the pool
  int32_t window[kLevels][kW];
  bool has_window = false;

  void add(int32_t key, const Gram& gram) {
    if (pool.size() >= kMaxKeys) pool.clear();
    std::vector<Gram>& list = pool[key];
    const auto same = [&](const Gram& g) { return std::memcmp(g.token, gram.token, sizeof g.token) == 0; };
    list.erase(std::remove_if(list.begin(), list.end(), same), list.end());
    if (list.size() >= static_cast<size_t>(kGuesses)) list.erase(list.begin());
    list.push_back(gram);
  }
  void add(const int32_t* t) {  // the n-gram t[0 .. N)
    Gram gram;
    std::copy(t + 1, t + kN, gram.token);
    add(t[0], gram);
  }
  // N-grams of the text that are new since the last call; a rewound text is compared, not trusted.
  void follow(const int32_t* t, int32_t n) {
    size_t same = 0;
    while (same < seen.size() && same < static_cast<size_t>(n) && seen[same] == t[same]) ++same;
    seen.resize(same);
    for (auto i = static_cast<int32_t>(same); i < n; ++i) {
      seen.push_back(t[i]);
      if (i + 1 >= kN) add(t + i + 1 - kN);
    }
  }
  // A first window: tokens of the text, scattered by a fixed rule.
  void guess() {
    uint32_t state = 12345;
    for (auto& level : window)
      for (int32_t& token : level) {
        state = state * 1664525u + 1013904223u;
        token = seen[(state >> 8) % seen.size()];
      }
    has_window = true;
  }
};

struct Lookahead : aerie::Drafter {
  static constexpr aerie::DrafterAbout about = {"lookahead", "Lookahead: Jacobi window and n-gram pool", "0.1.0",
                                                AERIE_DRAFTER_HOST_TOKENS | AERIE_DRAFTER_NO_PACKAGE, 0};
  int32_t open(const aerie_drafter_open_info* info, aerie_drafter_needs* needs, aerie_drafter_error* err);
  int32_t begin(int32_t seq);
  void end(int32_t seq) { text(seq) = Text{}; }  // a pool may hold megabytes
  int32_t propose_host(const aerie_host_context* c, aerie_host_candidates* out);
  const void* get_extension(const char* id);

  Text& text(int32_t seq) { return texts[static_cast<size_t>(seq)]; }
  std::vector<Text> texts;  // by sequence
};

Text& text_of(void* self, int32_t seq) { return static_cast<Lookahead*>(self)->text(seq); }

int32_t Lookahead::open(const aerie_drafter_open_info* info, aerie_drafter_needs* needs, aerie_drafter_error*) {
  texts.resize(static_cast<size_t>(info->max_seqs));
  needs->max_depth = kN - 1;
  return AERIE_D_OK;
}

int32_t Lookahead::begin(int32_t seq) {
  Text& t = text(seq);
  t.pool.clear();
  t.seen.clear();
  t.has_window = false;
  return AERIE_D_OK;
}

// The pool's n-grams of the newest token as a tree, newest first.
int32_t Lookahead::propose_host(const aerie_host_context* c, aerie_host_candidates* out) {
  Text& text = texts[static_cast<size_t>(c->seq)];
  out->count = 0;
  try {
    text.follow(c->tokens, c->n_tokens);
  } catch (const std::bad_alloc&) {
    (void)begin(c->seq);
    return AERIE_D_NO_MEMORY;
  }
  const auto found = text.pool.find(c->tokens[c->n_tokens - 1]);
  if (found == text.pool.end()) return AERIE_D_OK;
  int32_t paths = 0;
  for (auto gram = found->second.rbegin(); gram != found->second.rend() && paths < std::max(1, c->width); ++gram, ++paths) {
    int32_t parent = -1;
    for (int32_t i = 0; i < std::min(kN - 1, c->max_depth); ++i) {
      int32_t node = 0;
      while (node < out->count && (out->parent[node] != parent || out->token[node] != gram->token[i])) ++node;
      if (node == out->count) {
        if (out->count == out->capacity) return AERIE_D_OK;
        out->token[node] = gram->token[i];
        out->parent[node] = parent;
        out->confidence[node] = i == 0 ? 0.5f / static_cast<float>(paths + 1) : 0.8f;
        ++out->count;
      }
      parent = node;
    }
  }
  return AERIE_D_OK;
}

int32_t window_rows(void* self, int32_t seq, int32_t capacity, int32_t* token, int32_t* parent, int32_t* count) {
  Text& text = text_of(self, seq);
  *count = 0;
  if (capacity < kRows || text.seen.empty()) return AERIE_D_OK;
  if (!text.has_window) text.guess();
  for (int32_t l = 0; l < kLevels; ++l)
    for (int32_t c = 0; c < kW; ++c) {
      token[*count] = text.window[l][c];
      parent[*count] = l == 0 ? c - 1 : (l - 1) * kW + c;
      ++*count;
    }
  return AERIE_D_OK;
}

int32_t chosen(void* self, int32_t seq, int32_t n, const int32_t* choice) {
  if (n != kRows) return AERIE_D_OK;
  Text& text = text_of(self, seq);
  for (int32_t c = 0; c < kW; ++c) {
    int32_t gram[kN];
    for (int32_t l = 0; l < kLevels; ++l) gram[l] = text.window[l][c];
    gram[kN - 1] = choice[(kLevels - 1) * kW + c];
    if (gram[kN - 1] < 0) continue;
    try {
      text.add(gram);
    } catch (const std::bad_alloc&) {
      return AERIE_D_NO_MEMORY;
    }
    for (int32_t l = 0; l < kLevels; ++l) text.window[l][c] = gram[l + 1];
  }
  return AERIE_D_OK;
}

int32_t fork_text(void* self, int32_t from, int32_t to) {
  try {
    text_of(self, to) = text_of(self, from);
    return AERIE_D_OK;
  } catch (const std::bad_alloc&) {
    return AERIE_D_NO_MEMORY;
  }
}

const void* Lookahead::get_extension(const char* id) {
  static const aerie_extension_extra_rows rows = {sizeof rows, kRows, window_rows, chosen};
  static const aerie_extension_fork forks = {sizeof forks, 0, fork_text};
  if (!std::strcmp(id, AERIE_EXTENSION_EXTRA_ROWS)) return &rows;
  return std::strcmp(id, AERIE_EXTENSION_FORK) ? nullptr : &forks;
}

}  // namespace

AERIE_DRAFTER_PLUGIN(Lookahead)

// Saved sessions in memory, for tests.
#pragma once

#include <random>

#include "core/session/snapshot.h"
#include "tests/support/models.h"

namespace aerie::test {

using Bytes = std::vector<uint8_t>;

inline const std::vector<int32_t> kSavedPrompt = {26, 106, 150, 108, 115, 45, 37, 77, 51, 70, 119, 95, 26, 106, 150, 108,
                                                  26, 106, 33,  7,   9,   45, 37, 77, 51, 70, 119, 95, 12, 106, 150, 108,
                                                  5,  61,  88,  90,  26, 106, 150, 108};

inline Bytes saved(Session& s) {
  size_t size = 0;
  must(s.save({}, &size));
  Bytes bytes(size);
  must(s.save(bytes, &size));
  EXPECT_EQ(size, bytes.size());
  return bytes;
}

// The prompt in pieces, some of them read in part before the next one comes and the text is cut to where it ends.
inline void append_in_pieces(Session& s, std::mt19937& random) {
  for (size_t at = 0; at < kSavedPrompt.size();) {
    const size_t n = std::min<size_t>(1 + random() % 9, kSavedPrompt.size() - at);
    must(s.append({kSavedPrompt.data() + at, n}));
    at += n;
    StepResult r;
    if (at < kSavedPrompt.size()) must(s.step(0, std::chrono::microseconds(1), &r));
    must(s.rewind(at));
  }
}

// n tokens, a slice of work at a time.
inline std::vector<int32_t> generate_in_slices(Session& s, size_t n) {
  std::vector<int32_t> got;
  while (got.size() < n) {
    StepResult r;
    must(s.step(static_cast<int32_t>(n - got.size()), std::chrono::microseconds(1), &r));
    for (const EmittedToken& t : r.tokens) got.push_back(t.id);
  }
  return got;
}

// The tokens of each of `n` cycles: where a drafter's state differs, so do their lengths.
using Cycles = std::vector<std::vector<int32_t>>;
inline void add_cycle(const StepResult& r, Cycles* out) {
  if (r.tokens.empty()) return;
  out->emplace_back();
  for (const EmittedToken& t : r.tokens) out->back().push_back(t.id);
}
inline void run_cycles(Session& s, size_t n, Cycles* out) {
  while (out->size() < n) {
    StepResult r;
    must(s.step(0, std::chrono::microseconds(0), &r));
    add_cycle(r, out);
    if (r.state == StepState::done) break;
  }
}

}  // namespace aerie::test

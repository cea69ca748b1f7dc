// What sessions that step together draft and verify. All of them wait for a pass that one asks for, so they decide together: a
// draft pass that is worth it to none of them alone may be to all, and one that is worth it to few may not; and rows go to
// whose nodes are worth most, as many as the pass is best filled with.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "kernels/worth.h"

namespace aerie {

// Of one session: the nodes that it would ask about, the tokens that the level is expected to bring by that, the speed in tokens a
// millisecond that these have to keep up with, 0: whatever it costs, and what a pass takes that all sessions ask for like this one.
struct LevelOffer {
  double tokens = 1, aim = 0, ms = 0;
  int32_t rows = 1;
  bool explore = false;  // to see what it would bring, though it does not seem to pay
  bool pays() const { return explore || kernels::pays(tokens, ms, aim); }
  double worth() const { return aim > 0 ? tokens / aim : std::numeric_limits<double>::infinity(); }  // in milliseconds
};

struct LevelVote {
  size_t taken = 0;   // so many of the offers, best first
  int32_t rows = 0;   // of these
  double ms = 0;      // of their pass
};

// Which of the offers to take, when `sessions` wait for the pass and one over n rows takes pass_ms(n): those worth most for
// each of their rows, as far as all of them together are worth most above its cost; or none. `best_first`: their places.
template <class PassMs>
LevelVote decide_level(std::span<const LevelOffer> offers, int32_t sessions, const PassMs& pass_ms, std::vector<size_t>* best_first) {
  best_first->resize(offers.size());
  std::iota(best_first->begin(), best_first->end(), size_t{0});
  if (sessions <= 1 && offers.size() == 1) return offers[0].pays() ? LevelVote{1, offers[0].rows, offers[0].ms} : LevelVote{};
  std::sort(best_first->begin(), best_first->end(), [&](size_t a, size_t b) {
    const double x = offers[a].worth() / offers[a].rows, y = offers[b].worth() / offers[b].rows;
    return x != y ? x > y : a < b;
  });
  const bool explore = std::any_of(offers.begin(), offers.end(), [](const LevelOffer& o) { return o.explore; });
  LevelVote vote;
  size_t count = 0;
  int32_t rows = 0;
  double worth = 0, best = 0, paid = 0;  // paid: by those who ask whatever it costs
  for (const size_t i : *best_first) {
    const LevelOffer& o = offers[i];
    rows += o.rows;
    ++count;
    const double ms = sessions * pass_ms(rows);
    if (o.aim > 0) worth += o.worth();
    else paid = ms;
    const bool all = explore && count == offers.size() && vote.taken == 0;
    if (o.aim > 0 && worth - (ms - paid) < best && !all) continue;
    best = worth - (ms - paid);
    vote = {count, rows, ms / sessions};
  }
  return vote;
}

// Which nodes to verify, of all that these sessions would: `worth` of each in milliseconds, best first. Each is a row beside `rows`
// that come anyway.
struct RowVote {
  size_t taken = 0;
  double node_ms = 0;  // what each of them adds to the pass, counted once for every session that waits
};
template <class PassMs>
RowVote decide_rows(std::span<const double> worth, int32_t rows, int32_t sessions, const PassMs& pass_ms) {
  const double none = sessions * pass_ms(rows);
  RowVote vote;
  double sum = 0, best = 0;
  for (size_t n = 1; n <= worth.size(); ++n) {
    sum += worth[n - 1];
    const double added = sessions * pass_ms(rows + static_cast<int32_t>(n)) - none;
    if (sum - added < best) continue;
    best = sum - added;
    vote = {n, added / static_cast<double>(n)};
  }
  return vote;
}

}  // namespace aerie

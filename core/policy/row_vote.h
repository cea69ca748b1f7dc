// What sessions that step together verify: rows go to whose nodes are worth most, as many as the pass is best filled with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace aerie {

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

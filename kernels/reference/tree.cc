#include "kernels/tree_math.h"

#include <algorithm>
#include <vector>

#include "kernels/reference/reference.h"

namespace aerie::kernels::reference {
namespace {

// The best n of the nodes at places [from, to) that may be chosen, by their value or worth, best first.
template <class May>
std::vector<int32_t> ranked(const TreePlace* places, int32_t from, int32_t to, int32_t n, float TreePlace::*by, const May& may) {
  std::vector<int32_t> best;
  for (int32_t p = from; p < to; ++p)
    if (may(p)) best.push_back(p);
  const auto before = [&](int32_t a, int32_t b) {
    return places[a].*by != places[b].*by ? places[a].*by > places[b].*by : a < b;
  };
  std::sort(best.begin(), best.end(), before);
  best.resize(std::min(best.size(), static_cast<size_t>(n)));
  return best;
}
auto nodes(const TreePlace* places) {
  return [=](int32_t p) { return places[p].token >= 0; };
}

// By value, in the order of places.
std::vector<int32_t> best_of(const TreePlace* places, int32_t from, int32_t to, int32_t n) {
  std::vector<int32_t> best = ranked(places, from, to, n, &TreePlace::value, nodes(places));
  std::sort(best.begin(), best.end());
  return best;
}

}  // namespace

void run(const ExpandTree& op) {
  bool bad = op.level > 0 && op.out->status != 0;
  const int32_t end = op.first + op.rows * op.width;
  for (int32_t r = 0; r < op.rows; ++r)
    for (int32_t i = 0; i < op.width; ++i) op.places[op.first + r * op.width + i] = tree_child(op, r, i, &bad);
  op.out->status = bad;
  if (op.level == 0) op.out->levels = 1, op.out->declined = 0;
  std::vector<int32_t> next;
  if (op.slots) {
    for (int32_t r = 0; r < op.next_rows; ++r) next.push_back(slot_place(op.places, op.slots[r], op.width));
  } else if (op.weigh.on) {
    next = ranked(op.places, op.first, end, op.next_rows, &TreePlace::worth, nodes(op.places));
    for (const int32_t p : next) op.places[p].row = -1;
    const auto worth = [&](int32_t k) { return op.places[next[static_cast<size_t>(k)]].worth; };
    next.resize(static_cast<size_t>(to_expand(op, static_cast<int32_t>(next.size()), worth)));
    std::sort(next.begin(), next.end());
  } else if (op.keep > 0) {
    next = best_of(op.places, op.first, end, op.next_rows);
    const std::vector<int32_t> best = best_of(op.places, 0, end, op.keep);
    std::erase_if(next, [&](int32_t p) { return !std::binary_search(best.begin(), best.end(), p); });
  } else {
    for (int32_t p = op.first; p < end && next.empty(); ++p)
      if (op.places[p].token >= 0) next.push_back(p);
  }
  if (!op.next) return;
  next.resize(static_cast<size_t>(op.next_rows), -1);
  std::copy(next.begin(), next.end(), op.next);
  note_level(op, std::any_of(next.begin(), next.end(), [](int32_t place) { return place >= 0; }));
  for (int32_t r = 0; r < op.next_rows && op.draft.token; ++r) fill_draft_row(op, r);
}

void run(const SelectTree& op) {
  const int32_t keep = op.out->status == 0 ? op.keep : 0;
  std::vector<int32_t> chosen;
  if (op.slots) {
    for (int32_t i = 0; i < keep; ++i) chosen.push_back(slot_place(op.places, op.slots[i], op.width));
    std::erase(chosen, -1);
  } else {
    const std::vector<int32_t> among = best_of(op.places, 0, op.n_places, op.among);
    const auto in_among = [&](int32_t p) { return std::binary_search(among.begin(), among.end(), p); };
    chosen = ranked(op.places, 0, op.n_places, keep, &TreePlace::worth, [&](int32_t p) { return eligible(op, p, in_among); });
    std::sort(chosen.begin(), chosen.end());
  }
  const auto count = static_cast<int32_t>(chosen.size());
  op.out->rows = count + 1;
  op.out->proposed = static_cast<int32_t>(
      std::count_if(op.places, op.places + op.n_places, [](const TreePlace& p) { return p.token >= 0; }));
  for (int32_t i = 0; i < op.rows; ++i) fill_tree_row(op, chosen.data(), count, i);
}

void run(const PathSlots& op) {
  for (int32_t i = 0; i < op.n; ++i) op.src[i] = path_slot(op, i);
}

}  // namespace aerie::kernels::reference

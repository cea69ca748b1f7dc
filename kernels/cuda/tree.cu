// The tree ops: one block for each tree, which is a few hundred nodes.
#include "kernels/cuda/enqueue.h"
#include "kernels/cuda/select.h"
#include "kernels/tree_math.h"

namespace aerie::kernels::cuda {
namespace {

constexpr int kTreeThreads = 256;

struct TreeMemory {  // shared
  BestMemory best;
  int32_t place[kMaxTopK];
  float floats[32];
  int32_t ints[32];
  int32_t expanded;
};

__device__ uint64_t value_key(const TreePlace* places, int64_t p) {
  return places[p].token < 0 ? kNoKey : key_of(places[p].value, static_cast<int32_t>(p));
}
// The key from which on nodes are the best n of those before place `end`, by value.
__device__ uint64_t best_by_value(const TreePlace* places, int32_t end, int32_t n, TreeMemory& m) {
  return select_from(end, static_cast<uint64_t>(n), [&](int64_t p) { return value_key(places, p); }, one_each, m.best.select);
}

// m.best.best, such as are at least `from`, as places in ascending order in m.place. Returns how many.
__device__ int32_t in_order(uint64_t from, TreeMemory& m) {
  const auto me = static_cast<int>(threadIdx.x);
  const auto counts = [&](int i) { return m.best.best[i] != kNoKey && m.best.best[i] >= from; };
  const int32_t mine = me < kMaxTopK && counts(me) ? id_of(m.best.best[me]) : -1;
  int32_t before = 0, count = 0;
  for (int i = 0; i < kMaxTopK; ++i) {
    if (!counts(i)) continue;
    ++count;
    before += id_of(m.best.best[i]) < mine;
  }
  if (mine >= 0) m.place[before] = mine;
  sync_block();
  return count;
}

// Those of a tree's slots that there are, in their order, in m.place. Returns how many.
__device__ int32_t in_slots(const SelectTree& op, TreeMemory& m) {
  const auto me = static_cast<int>(threadIdx.x);
  const int32_t mine = me < op.keep ? slot_place(op.places, op.slots[me], op.width) : -1;
  if (me < kMaxTopK) m.best.best[me] = mine < 0 ? kNoKey : 1;
  sync_block();
  int32_t before = 0, count = 0;
  for (int i = 0; i < op.keep; ++i) {
    if (m.best.best[i] == kNoKey) continue;
    before += i < me;
    ++count;
  }
  if (mine >= 0) m.place[before] = mine;
  sync_block();
  return count;
}

__device__ void expand_tree(const ExpandTree& op) {
  TreeMemory& m = *shared_memory<TreeMemory>();
  const auto me = static_cast<int32_t>(threadIdx.x);
  const int32_t n = op.rows * op.width;
  bool bad = op.level > 0 && op.out->status != 0;
  for (int32_t i = me; i < n; i += kTreeThreads) op.places[op.first + i] = tree_child(op, i / op.width, i % op.width, &bad);
  const float any = block_max(bad ? 1.0f : 0.0f, m.floats);  // the places are there for all threads
  if (me == 0) op.out->status = any != 0.0f;
  if (me == 0 && op.level == 0) op.out->levels = 1, op.out->declined = 0;
  if (op.next_rows == 0) return;
  if (op.slots) {
    bool some = false;
    for (int32_t r = me; r < op.next_rows; r += kTreeThreads) {
      op.next[r] = slot_place(op.places, op.slots[r], op.width);
      some = some || op.next[r] >= 0;
      if (op.draft.token) fill_draft_row(op, r);
    }
    some = block_max(some ? 1.0f : 0.0f, m.floats) != 0.0f;
    if (me == 0) note_level(op, some);
    return;
  }
  // With keep 0 the node of the lowest place wins.
  const auto new_key = [&](int64_t i) {
    const TreePlace& p = op.places[op.first + i];
    return p.token < 0 ? kNoKey : key_of(op.weigh.on ? p.worth : op.keep > 0 ? p.value : 0.0f, op.first + static_cast<int32_t>(i));
  };
  uint64_t from = 1;
  if (op.keep > 0 && !op.weigh.on) from = best_by_value(op.places, op.first + n, op.keep, m);
  select_best(n, op.next_rows, new_key, m.best);
  int32_t count = in_order(from, m);
  if (op.weigh.on) {
    if (me < count) op.places[m.place[me]].row = -1;
    if (me == 0) m.expanded = to_expand(op, count, [&](int32_t k) { return score_of(m.best.best[k]); });
    sync_block();
    if (m.expanded < count && m.expanded > 0) from = m.best.best[m.expanded - 1], in_order(from, m);
    count = m.expanded;
    if (!op.next) return;
  }
  if (me == 0) note_level(op, count > 0);
  for (int32_t r = me; r < op.next_rows; r += kTreeThreads) {
    op.next[r] = r < count ? m.place[r] : -1;
    if (op.draft.token) fill_draft_row(op, r);
  }
}

__device__ void select_tree(const SelectTree& op) {
  TreeMemory& m = *shared_memory<TreeMemory>();
  const auto me = static_cast<int32_t>(threadIdx.x);
  int32_t proposed = 0;
  for (int32_t p = me; p < op.n_places; p += kTreeThreads) proposed += op.places[p].token >= 0;
  proposed = block_sum(proposed, m.ints);
  int32_t count = 0;
  if (op.out->status == 0 && op.slots) {
    count = in_slots(op, m);
  } else if (op.out->status == 0 && op.keep > 0) {
    const uint64_t among = op.among > 0 ? best_by_value(op.places, op.n_places, op.among, m) : kNoKey;
    const auto in_among = [&](int32_t p) { return value_key(op.places, p) >= among && op.places[p].token >= 0; };
    const auto key = [&](int64_t i) {
      const auto p = static_cast<int32_t>(i);
      return eligible(op, p, in_among) ? key_of(op.places[p].worth, p) : kNoKey;
    };
    select_best(op.n_places, op.keep, key, m.best);
    count = in_order(1, m);
  }
  for (int32_t i = me; i < op.rows; i += kTreeThreads) fill_tree_row(op, m.place, count, i);
  if (me == 0) op.out->rows = count + 1, op.out->proposed = proposed;
}

__device__ void path_slots(const PathSlots& op) {
  const auto i = static_cast<int32_t>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < op.n) op.src[i] = path_slot(op, i);
}

}  // namespace

template <>
const char* refuse(const ExpandTree& op) {
  return op.next_rows > kMaxTreeRows ? "a level of more than 128 nodes" : nullptr;
}
template <>
const char* refuse(const SelectTree& op) {
  return op.rows > kMaxTreeRows || op.keep >= op.rows ? "a tree of more rows than 128, or than it has" : nullptr;
}

void enqueue(const ExpandTree& op, const Place& p) { launch<expand_tree>(p, {1}, kTreeThreads, sizeof(TreeMemory), op); }
void enqueue(const SelectTree& op, const Place& p) { launch<select_tree>(p, {1}, kTreeThreads, sizeof(TreeMemory), op); }
void enqueue(const PathSlots& op, const Place& p) { launch<path_slots>(p, {bucket((op.n + 63) / 64)}, 64, 0, op); }

}  // namespace aerie::kernels::cuda

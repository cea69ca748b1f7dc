// Finding the best of many by a block: keys are 64 bits that order as (score, then lower id), so no two are equal, and
// the best k are those from some key on. That key is found digit by digit from histograms of integers, whose sums do not
// depend on the order of threads. So is the end of a nucleus, with weights as integers.
#pragma once

#include "kernels/cuda/warp.h"

namespace aerie::kernels::cuda {

constexpr uint64_t kNoKey = 0;

// -inf is no candidate. -0 and +0 are equal.
__device__ inline uint64_t key_of(float score, int32_t id) {
  if (score == -kInf || score != score) return kNoKey;
  const auto u = std::bit_cast<uint32_t>(score + 0.0f);
  const uint32_t ordered = u ^ (u >> 31 ? 0xffffffffu : 0x80000000u);
  return static_cast<uint64_t>(ordered) << 32 | (0xffffffffu - static_cast<uint32_t>(id));
}
__device__ inline float score_of(uint64_t key) {
  const auto ordered = static_cast<uint32_t>(key >> 32);
  return std::bit_cast<float>(ordered ^ (ordered >> 31 ? 0x80000000u : 0xffffffffu));
}
__device__ inline int32_t id_of(uint64_t key) { return static_cast<int32_t>(0xffffffffu - static_cast<uint32_t>(key)); }

struct SelectMemory {  // shared
  uint64_t histogram[256];
  uint64_t before, total;
  int digit;
};

// What a warp's lanes have for one digit, added up before it is added to the block's: of the first digit, sign and exponent,
// there are a few for thousands of keys, and what is added to one place is added one after another. -1: nothing.
__device__ inline void add_together(uint64_t* histogram, int digit, uint64_t weight) {
  for (uint32_t left = ballot(digit >= 0); left != 0;) {
    const int leader = lowest_lane(left), wanted = shuffle(digit, leader);
    const uint64_t sum = warp_sum(digit == wanted ? weight : uint64_t{0});
    if (static_cast<int>(threadIdx.x % 32) == leader) atomic_add(&histogram[wanted], sum);
    left &= ~ballot(digit == wanted);
  }
}

// The key from which on the weights of the best first reach `goal` (at least 1); 1 if all of them do not. All threads of
// the block get it.
template <class KeyAt, class WeightOf>
__device__ uint64_t select_from(int64_t n, uint64_t goal, const KeyAt& key_at, const WeightOf& weight_of, SelectMemory& m) {
  constexpr int kHeld = 8;
  uint64_t prefix = 0;
  for (int shift = 56; shift >= 0; shift -= 8) {
    for (int i = static_cast<int>(threadIdx.x); i < 256; i += static_cast<int>(blockDim.x)) m.histogram[i] = 0;
    sync_block();
    for (int64_t first = 0; first < n; first += kHeld * int64_t{blockDim.x}) {
      uint64_t keys[kHeld];  // read before the first is added, for nothing is read past that
#pragma unroll
      for (int h = 0; h < kHeld; ++h) {
        const int64_t i = first + h * int64_t{blockDim.x} + threadIdx.x;
        keys[h] = i < n ? key_at(i) : kNoKey;
      }
#pragma unroll
      for (int h = 0; h < kHeld; ++h) {
        const uint64_t key = keys[h];
        const int digit = static_cast<int>(key >> shift & 255);
        if (shift == 56)
          add_together(m.histogram, key == kNoKey ? -1 : digit, key == kNoKey ? 0 : weight_of(key));
        else if (key != kNoKey && key >> (shift + 8) == prefix)
          atomic_add(&m.histogram[digit], weight_of(key));
      }
    }
    sync_block();
    if (threadIdx.x < 32) {
      // Lane l has digits 255 - 8 l and the 7 below.
      const int lane = static_cast<int>(threadIdx.x);
      uint64_t own = 0, before = 0;
      for (int i = 0; i < 8; ++i) own += m.histogram[255 - 8 * lane - i];
      for (int l = 0; l < 32; ++l) {
        const uint64_t other = shuffle(own, l);
        if (l < lane) before += other;
      }
      if (lane == 0) m.digit = -1;
      sync_warp();
      if (before < goal && before + own >= goal)
        for (int i = 0; i < 8; ++i) {
          const int digit = 255 - 8 * lane - i;
          if (before + m.histogram[digit] >= goal) {
            m.digit = digit, m.before = before, m.total = m.histogram[digit];
            break;
          }
          before += m.histogram[digit];
        }
    }
    sync_block();
    const int digit = m.digit;
    const uint64_t before = m.before, total = m.total;
    if (digit < 0) return 1;  // only at the first digit
    prefix = prefix << 8 | static_cast<uint64_t>(digit);
    goal -= before;
    if (goal == total) return prefix << shift;  // all that begin so
  }
  return prefix;
}

__device__ inline uint64_t one_each(uint64_t) { return 1; }

// The k best of n keys, best first, into `best` (shared, room for kMaxTopK); kNoKey behind them. Blocks of at least
// kMaxTopK threads.
struct BestMemory {  // shared
  SelectMemory select;
  uint64_t found[kMaxTopK], best[kMaxTopK];
  uint32_t count;
};
template <class KeyAt>
__device__ void select_best(int64_t n, int k, const KeyAt& key_at, BestMemory& m) {
  const uint64_t from = select_from(n, static_cast<uint64_t>(k), key_at, one_each, m.select);
  const auto me = static_cast<int>(threadIdx.x);
  if (me == 0) m.count = 0;
  if (me < kMaxTopK) m.found[me] = m.best[me] = kNoKey;
  sync_block();
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
    if (const uint64_t key = key_at(i); key >= from && key != kNoKey) m.found[atomic_add(&m.count, 1u)] = key;
  sync_block();
  if (me < kMaxTopK && m.found[me] != kNoKey) {
    int place = 0;
    for (int i = 0; i < k; ++i) place += m.found[i] > m.found[me];
    m.best[place] = m.found[me];
  }
  sync_block();
}

// The same of lists that are each in order, if they and k are few: no list has one of the best whose first is not among the k
// best firsts. By one warp, in registers, without a barrier; a block would go through all keys for each digit.
constexpr int kFewBest = 16, kFewLists = 1024;

// The best of a warp's keys, which goes; `taken` is where it was, -1 on all lanes but one.
template <int n>
__device__ uint64_t take_best(uint64_t (&keys)[n], int* taken) {
  uint64_t mine = kNoKey;
#pragma unroll
  for (int i = 0; i < n; ++i) mine = keys[i] > mine ? keys[i] : mine;
  const uint64_t best = warp_max(mine);
  *taken = -1;
#pragma unroll
  for (int i = 0; i < n; ++i)
    if (best != kNoKey && keys[i] == best) keys[i] = kNoKey, *taken = i;
  return best;
}

// key_at(list, i): the i-th of k of a list. `best`: shared, room for k; `chosen`: for kFewBest.
template <class KeyAt>
__device__ void best_of_lists(int64_t lists, int k, const KeyAt& key_at, uint64_t* best, int32_t* chosen) {
  const auto lane = static_cast<int>(threadIdx.x % 32);
  int taken, lists_taken = 0;
  uint64_t firsts[kFewLists / 32];
#pragma unroll
  for (int i = 0; i < kFewLists / 32; ++i) firsts[i] = lane + 32 * i < lists ? key_at(lane + 32 * i, 0) : kNoKey;
  for (; lists_taken < k; ++lists_taken) {
    if (take_best(firsts, &taken) == kNoKey) break;
    if (taken >= 0) chosen[lists_taken] = lane + 32 * taken;
  }
  sync_warp();
  uint64_t keys[kFewBest * kFewBest / 32];
#pragma unroll
  for (int i = 0; i < kFewBest * kFewBest / 32; ++i) {
    const int at = lane + 32 * i;
    keys[i] = at < lists_taken * k ? key_at(chosen[at / k], at % k) : kNoKey;
  }
  for (int i = 0; i < k; ++i) {
    const uint64_t next = take_best(keys, &taken);
    if (lane == 0) best[i] = next;
  }
}

}  // namespace aerie::kernels::cuda

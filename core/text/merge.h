// The heart of BPE: join the best adjacent pair, leftmost first, until none is left.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace aerie::text {

struct Merge {
  int32_t id = -1;  // -1: this pair does not join
  double cost = 0;  // the lowest joins first (a rank, or minus a score); never NaN
};

// Memory kept between pieces of one encode.
class MergeScratch {
 public:
  struct Symbol {
    int32_t id, previous, next;
    uint32_t begin, end;  // bytes of the text, for vocabularies that look pairs up by spelling
  };
  std::vector<Symbol> symbols;

  void add(int32_t id, uint32_t begin, uint32_t end) {
    const auto i = static_cast<int32_t>(symbols.size());
    symbols.push_back({id, i - 1, i + 1, begin, end});
  }

  // `find(left, right)` gives the Merge of two Symbols. Appends the resulting ids to *out and clears.
  // A heap keeps a long run of letters at n log n; its order (cost, then position) is that of the
  // plain scan for the cheapest pair, so the result is too. An entry is stale when either symbol has
  // changed since: symbols only ever grow, so comparing the ids is enough.
  template <class Find>
  void run(const Find& find, std::vector<int32_t>* out) {
    const auto n = static_cast<int32_t>(symbols.size());
    if (n > 0) symbols.back().next = -1;
    heap_.clear();
    const auto consider = [&](int32_t left) {
      const int32_t right = symbols[left].next;
      if (right < 0) return;
      const Merge merge = find(symbols[left], symbols[right]);
      if (merge.id < 0) return;
      heap_.push_back({merge.cost, left, right, symbols[left].id, symbols[right].id, merge.id});
      std::push_heap(heap_.begin(), heap_.end(), later);
    };
    for (int32_t i = 0; i < n; ++i) consider(i);
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), later);
      const Entry e = heap_.back();
      heap_.pop_back();
      Symbol& left = symbols[e.left];
      Symbol& right = symbols[e.right];
      if (left.id != e.left_id || right.id != e.right_id || left.next != e.right) continue;
      left.id = e.merged;
      left.end = right.end;
      left.next = right.next;
      right.id = -1;
      if (left.next >= 0) symbols[left.next].previous = e.left;
      if (left.previous >= 0) consider(left.previous);
      consider(e.left);
    }
    for (int32_t i = n > 0 ? 0 : -1; i >= 0; i = symbols[i].next) out->push_back(symbols[i].id);
    symbols.clear();
  }

 private:
  struct Entry {
    double cost;
    int32_t left, right, left_id, right_id, merged;
  };
  static bool later(const Entry& a, const Entry& b) { return a.cost != b.cost ? a.cost > b.cost : a.left > b.left; }
  std::vector<Entry> heap_;
};

}  // namespace aerie::text

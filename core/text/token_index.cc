#include "core/text/token_index.h"

#include <algorithm>

namespace aerie::text {

// The first byte uppermost, so that numbers are ordered as the bytes are.
uint64_t TokenIndex::head_of(std::string_view bytes) {
  uint64_t head = 0;
  for (size_t i = 0; i < 8; ++i) head = head << 8 | (i < bytes.size() ? static_cast<uint8_t>(bytes[i]) : 0);
  return head;
}

void TokenIndex::build() {
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
    if (a.head != b.head) return a.head < b.head;
    const int order = a.bytes->compare(*b.bytes);
    return order != 0 ? order < 0 : a.id < b.id;
  });
}

int32_t TokenIndex::find(std::string_view bytes) const {
  const uint64_t head = head_of(bytes);
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), bytes, [head](const Entry& e, std::string_view b) {
    return e.head != head ? e.head < head : *e.bytes < b;
  });
  return at != entries_.end() && at->head == head && *at->bytes == bytes ? at->id : -1;
}

bool TokenIndex::twins(int32_t* a, int32_t* b) const {
  const auto at = std::adjacent_find(entries_.begin(), entries_.end(), [](const Entry& x, const Entry& y) { return *x.bytes == *y.bytes; });
  if (at == entries_.end()) return false;
  *a = at->id;
  *b = at[1].id;
  return true;
}

}  // namespace aerie::text

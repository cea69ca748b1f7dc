// Tokens by what they spell.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace aerie::text {

// Sorted, each with its first eight bytes beside it: these nearly always decide, without a look at the token itself.
class TokenIndex {
 public:
  void add(const std::string* bytes, int32_t id) { entries_.push_back({head_of(*bytes), bytes, id}); }  // which must stay where they are
  void build();                                // after the last add
  int32_t find(std::string_view bytes) const;  // the lowest of those that spell it, or -1
  // Two that spell the same; false: there are none.
  bool twins(int32_t* a, int32_t* b) const;

 private:
  struct Entry {
    uint64_t head;
    const std::string* bytes;
    int32_t id;
  };
  static uint64_t head_of(std::string_view bytes);
  std::vector<Entry> entries_;
};

}  // namespace aerie::text

// Tokens that are found in the text before BPE sees it ("<|endoftext|>", runs of spaces, ...).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace aerie::text {

// Each byte of a text may be compared with all of a token.
inline constexpr size_t kMaxAddedBytes = 1024;

struct AddedToken {
  std::string content;
  int32_t id = -1;
  bool special = false;  // found only when the caller asks for it
  bool lstrip = false;   // swallows the white space before it
  bool rstrip = false;   // and after it
};

// A part of the text: a token that was found, or text still to encode.
struct Segment {
  int32_t id;  // -1: text
  std::string_view text;
};

class AddedTokenMatcher {
 public:
  void add(AddedToken token);
  void build();  // after the last add
  bool empty() const { return tokens_.empty(); }
  // Leftmost first, then longest, as Hugging Face does it: a special token that is not asked for still
  // hides shorter tokens inside it. Appends to *out, which views `text`.
  void split(std::string_view text, bool parse_special, std::vector<Segment>* out) const;

 private:
  const AddedToken* longest_at(std::string_view text) const;
  std::vector<AddedToken> tokens_;  // sorted by content
  std::array<bool, 256> starts_{};  // the bytes that one of them begins with
};

}  // namespace aerie::text

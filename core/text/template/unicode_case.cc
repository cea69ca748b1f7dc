// Upper and lower case, and what repr prints as it is, for all characters of Unicode 14.
#include <algorithm>
#include <cstdint>
#include <iterator>

#include "core/platform/utf8.h"
#include "core/text/template/python_text.h"

namespace aerie::text::chat {
namespace {

struct Run {  // first, first + step, ..., last: each is `difference` from its counterpart
  uint32_t first, last;
  uint8_t step;
  int32_t difference;
};
struct Range {
  uint32_t first, last;
};
struct Special {  // becomes several
  uint32_t c;
  const char* text;
};

#include "core/text/template/unicode_case.inc"

template <size_t N>
const Run* run_of(const Run (&runs)[N], uint32_t c) {
  // A run that begins later may end earlier where they interlace, by as much as their steps.
  const Run* at = std::upper_bound(std::begin(runs), std::end(runs), c, [](uint32_t v, const Run& r) { return v < r.first; });
  for (int back = 0; back < 4 && at != std::begin(runs); ++back) {
    --at;
    if (c <= at->last && (c - at->first) % at->step == 0) return at;
  }
  return nullptr;
}

template <size_t N>
bool in(const Range (&ranges)[N], uint32_t c) {
  const Range* at = std::upper_bound(std::begin(ranges), std::end(ranges), c, [](uint32_t v, const Range& r) { return v < r.first; });
  return at != std::begin(ranges) && c <= (at - 1)->last;
}

template <size_t N, size_t M>
void append(const Special (&specials)[M], const Run (&runs)[N], uint32_t c, std::string* out) {
  const Special* s = std::lower_bound(std::begin(specials), std::end(specials), c, [](const Special& a, uint32_t v) { return a.c < v; });
  if (s != std::end(specials) && s->c == c) {
    *out += s->text;
    return;
  }
  const Run* run = run_of(runs, c);
  utf8_append(run != nullptr ? c + static_cast<uint32_t>(run->difference) : c, out);
}

bool ascii_letter(uint32_t c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

void append_upper(uint32_t c, std::string* out) {
  if (c < 0x80) out->push_back(static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c));
  else append(kUpperSpecial, kUpper, c, out);
}
void append_title(uint32_t c, std::string* out) {
  if (c < 0x80) return append_upper(c, out);
  const Special* s =
      std::lower_bound(std::begin(kTitleSpecial), std::end(kTitleSpecial), c, [](const Special& a, uint32_t v) { return a.c < v; });
  if (s != std::end(kTitleSpecial) && s->c == c) *out += s->text;
  else if (const Run* run = run_of(kTitle, c)) utf8_append(c + static_cast<uint32_t>(run->difference), out);
  else append_upper(c, out);
}

bool cased(uint32_t c) { return c < 0x80 ? ascii_letter(c) : in(kCased, c); }
bool ignorable(uint32_t c) {  // '.', ':' and the like
  return c < 0x80 ? c == '\'' || c == '.' || c == ':' || c == '^' || c == '`' : in(kIgnorable, c);
}

// A capital sigma at the end of a word has a form of its own.
bool ends_word(std::string_view text, size_t at) {
  size_t before = at;
  bool letter = false;
  while (before > 0) {
    do --before;
    while (continues(text[before]));
    const uint32_t c = character_at(text, before);
    if (ignorable(c)) continue;
    letter = cased(c);
    break;
  }
  if (!letter) return false;
  for (size_t next = at + 2; next < text.size(); next += character_size(text[next])) {
    const uint32_t c = character_at(text, next);
    if (!ignorable(c)) return !cased(c);
  }
  return true;
}

void append_lower(std::string_view text, size_t at, std::string* out) {
  const uint32_t c = character_at(text, at);
  if (c < 0x80) out->push_back(static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c));
  else if (c == 0x3A3) *out += ends_word(text, at) ? "\u03c2" : "\u03c3";
  else append(kLowerSpecial, kLower, c, out);
}

}  // namespace

std::string upper_case(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size(); at += character_size(text[at])) append_upper(character_at(text, at), &out);
  return out;
}

std::string lower_case(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size(); at += character_size(text[at])) append_lower(text, at, &out);
  return out;
}

std::string capitalized(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size(); at += character_size(text[at])) {
    if (at == 0) append_title(character_at(text, at), &out);
    else append_lower(text, at, &out);
  }
  return out;
}

std::string title_case(std::string_view text) {
  std::string out;
  bool within = false;
  for (size_t at = 0; at < text.size(); at += character_size(text[at])) {
    const uint32_t c = character_at(text, at);
    if (within) append_lower(text, at, &out);
    else append_title(c, &out);
    within = cased(c);
  }
  return out;
}

bool is_printable(uint32_t c) { return c < 0x80 ? c >= 0x20 && c < 0x7F : !in(kNotPrintable, c); }

}  // namespace aerie::text::chat

#include "core/text/added_tokens.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "core/platform/utf8.h"

namespace aerie::text {
namespace {

size_t white_space_at_start(std::string_view s) {
  size_t i = 0;
  while (i < s.size()) {
    const Utf8Step step = utf8_step(s.substr(i));
    if (step.kind != Utf8Kind::complete || !is_white_space(step.codepoint)) break;
    i += step.length;
  }
  return i;
}

// Where the white space at the end of `s` begins.
size_t white_space_at_end(std::string_view s) {
  size_t end = s.size();
  while (end > 0) {
    size_t i = end - 1;
    while (i > 0 && end - i < 4 && (static_cast<uint8_t>(s[i]) & 0xC0) == 0x80) --i;
    const Utf8Step step = utf8_step(s.substr(i, end - i));
    if (step.kind != Utf8Kind::complete || step.length != end - i || !is_white_space(step.codepoint)) break;
    end = i;
  }
  return end;
}

}  // namespace

void AddedTokenMatcher::add(AddedToken token) { tokens_.push_back(std::move(token)); }

void AddedTokenMatcher::build() {
  std::sort(tokens_.begin(), tokens_.end(), [](const AddedToken& a, const AddedToken& b) {
    return std::tie(a.content, a.id) < std::tie(b.content, b.id);
  });
  // Two tokens may become one text under NFC: the lower id stays.
  tokens_.erase(std::unique(tokens_.begin(), tokens_.end(),
                            [](const AddedToken& a, const AddedToken& b) { return a.content == b.content; }),
                tokens_.end());
  for (const AddedToken& t : tokens_) starts_[static_cast<uint8_t>(t.content[0])] = true;
}

const AddedToken* AddedTokenMatcher::longest_at(std::string_view text) const {
  const AddedToken* best = nullptr;
  auto low = tokens_.begin(), high = tokens_.end();
  // Narrow the sorted tokens byte by byte to those that agree with the text so far.
  for (size_t depth = 0; depth < text.size() && low != high; ++depth) {
    const auto byte = static_cast<uint8_t>(text[depth]);
    const auto at = [depth](const AddedToken& t) { return static_cast<int>(static_cast<uint8_t>(t.content[depth])); };
    if (low->content.size() == depth) ++low;  // already noted as best
    low = std::partition_point(low, high, [&](const AddedToken& t) { return at(t) < byte; });
    high = std::partition_point(low, high, [&](const AddedToken& t) { return at(t) == byte; });
    if (low != high && low->content.size() == depth + 1) best = &*low;
  }
  return best;
}

void AddedTokenMatcher::split(std::string_view text, bool parse_special, std::vector<Segment>* out) const {
  size_t done = 0;  // all before is in *out
  const auto emit_text = [&](size_t end) {
    if (end > done) out->push_back({-1, text.substr(done, end - done)});
  };
  for (size_t i = 0; i < text.size();) {
    const AddedToken* token = starts_[static_cast<uint8_t>(text[i])] ? longest_at(text.substr(i)) : nullptr;
    if (token == nullptr) {
      ++i;
      continue;
    }
    size_t begin = i, end = i + token->content.size();
    i = end;
    if (token->special && !parse_special) continue;
    if (token->lstrip) begin = white_space_at_end(text.substr(0, begin));
    if (token->rstrip) end += white_space_at_start(text.substr(end));
    begin = std::max(begin, done);
    end = std::max(end, begin);
    emit_text(begin);
    out->push_back({token->id, text.substr(begin, end - begin)});
    done = end;
  }
  emit_text(text.size());
}

}  // namespace aerie::text

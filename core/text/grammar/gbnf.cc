// GBNF, the notation of llama.cpp's grammars.
#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/platform/utf8.h"
#include "core/text/grammar/digits.h"
#include "core/text/grammar/grammar.h"
#include "core/text/grammar/rule_builder.h"

namespace aerie::text::grammar {
namespace {

constexpr int kMaxGroups = 64;  // of parentheses in one another: each costs stack

class GbnfReader {
 public:
  explicit GbnfReader(std::string_view text) : text_(text) {}

  Result<Program> read() {
    if (const size_t good = utf8_valid_prefix(text_); good != text_.size()) return fail("not UTF-8", good);
    (void)take("\xEF\xBB\xBF");  // a byte order mark, as some editors write
    for (skip(true); at_ < text_.size(); skip(true)) {
      const Status status = rule();
      AERIE_TRY(builder_.size_status());  // it left out what came after
      AERIE_TRY(status);
    }
    for (const Name& name : names_)
      if (!name.defined) return fail("rule " + quoted(name.name) + " is not defined", name.used_at);
    const auto root = by_name_.find("root");
    if (root == by_name_.end()) return error(Code::bad_format, "grammar: there is no rule \"root\", with which a text begins");
    return builder_.compile(names_[root->second].rule, true);
  }

 private:
  struct Name {
    std::string name;
    uint32_t rule;
    size_t used_at;  // first
    bool defined;
  };

  static std::string quoted(std::string_view name) {
    std::string out(1, '"');
    out += name;
    return out += '"';
  }
  Status fail(const std::string& what, size_t at, Code code = Code::bad_format) const {
    const auto line =
        1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(std::min(at, text_.size())), '\n');
    return error(code, "grammar, line " + std::to_string(line) + ": " + what);
  }
  Status fail(const std::string& what) const { return fail(what, at_); }
  // "expected ..., found ...".
  Status expected(const std::string& what) const {
    std::string found = "the end";
    if (at_ < text_.size()) {
      const std::string_view rest = text_.substr(at_);
      found = peek() == '\n' || peek() == '\r' ? "the end of the line" : quoted(rest.substr(0, utf8_step(rest).length));
    }
    return fail("expected " + what + ", found " + found);
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(std::string_view token) {
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  void skip(bool newlines) {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == ' ' || c == '\t' || (newlines && (c == '\n' || c == '\r'))) {
        ++at_;
      } else {
        break;
      }
    }
  }
  static bool is_name_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  }
  std::string_view name() {
    const size_t begin = at_;
    while (is_name_char(peek())) ++at_;
    return text_.substr(begin, at_ - begin);
  }
  Name& named(std::string_view name, size_t at) {
    const auto [found, is_new] = by_name_.try_emplace(std::string(name), names_.size());
    if (is_new) names_.push_back({std::string(name), builder_.declare(std::string(name)), at, false});
    return names_[found->second];
  }

  Status rule() {
    const size_t begin = at_;
    const std::string_view rule_name = name();
    if (rule_name.empty()) return expected("the name of a rule");
    skip(false);
    if (!take("::=")) return expected("\"::=\" behind the name " + quoted(rule_name));
    Name& entry = named(rule_name, begin);
    if (entry.defined) return fail("rule " + quoted(rule_name) + " is defined twice", begin);
    entry.defined = true;
    const uint32_t rule = entry.rule;
    builder_.begin(rule);
    skip(true);
    std::vector<Sequence> alternatives;
    AERIE_TRY(read_alternatives(0, &alternatives));
    builder_.define(rule, std::move(alternatives));
    if (at_ < text_.size() && peek() != '\n' && peek() != '\r') return expected("the end of rule " + quoted(rule_name));
    return {};
  }

  Status read_alternatives(int depth, std::vector<Sequence>* out) {
    while (true) {
      AERIE_TRY(read_sequence(depth, &out->emplace_back()));
      const size_t end = at_;
      skip(true);  // a line that begins with | goes on with the rule
      if (!take("|")) {
        if (depth == 0) at_ = end;
        return {};
      }
      skip(true);
    }
  }

  Status read_sequence(int depth, Sequence* out) {
    size_t item = SIZE_MAX;  // where the last one begins: what is repeated
    for (; at_ < text_.size(); skip(depth > 0)) {
      const char c = peek();
      if (c == '*' || c == '+' || c == '?' || c == '{') {
        if (item == SIZE_MAX) return fail(std::string("there is nothing in front of \"") + c + "\" to repeat");
        uint32_t min = 0, max = 0;
        AERIE_TRY(repetition(&min, &max));
        const Sequence repeated(out->begin() + static_cast<std::ptrdiff_t>(item), out->end());
        out->resize(item);
        builder_.repeat(repeated, min, max, out);
        continue;
      }
      const size_t begin = out->size();
      if (c == '"') {
        AERIE_TRY(read_literal(out));
      } else if (c == '[') {
        AERIE_TRY(read_class(out));
      } else if (c == '.') {
        ++at_;
        out->push_back(builder_.code_points({{0, kMaxCodePoint}}));
      } else if (c == '(') {
        if (depth == kMaxGroups) return fail("groups are nested above " + std::to_string(kMaxGroups) + " deep", at_, Code::limit);
        const size_t open = at_++;
        skip(true);
        std::vector<Sequence> alternatives;
        AERIE_TRY(read_alternatives(depth + 1, &alternatives));
        if (!take(")")) return at_ < text_.size() ? expected("\")\"") : fail("this \"(\" is not closed", open);
        if (alternatives.size() == 1) out->insert(out->end(), alternatives[0].begin(), alternatives[0].end());
        else out->push_back(builder_.choice(std::move(alternatives)));
      } else if (is_name_char(c)) {
        const size_t at = at_;
        const std::string_view used = name();
        out->push_back(element(ElementKind::rule, named(used, at).rule));
      } else if (c == '<' || c == '!') {
        return fail("tokens, as in <think> or !<think>, are not supported", at_, Code::unsupported);
      } else {
        return {};
      }
      item = begin;
      if (builder_.too_large()) return {};
    }
    return {};
  }

  Status number(uint32_t* out) {
    return take_number(text_, &at_, kNoMaximum - 1, out) ? Status() : expected("a number");
  }
  Status repetition(uint32_t* min, uint32_t* max) {
    const size_t begin = at_;
    const char c = text_[at_++];
    *min = c == '+' ? 1 : 0;
    *max = c == '?' ? 1 : kNoMaximum;
    if (c != '{') return {};
    skip(true);
    AERIE_TRY(number(min));
    *max = *min;
    skip(true);
    if (take(",")) {
      skip(true);
      *max = kNoMaximum;
      if (peek() != '}') AERIE_TRY(number(max));
      skip(true);
    }
    if (!take("}")) return expected("\"}\"");
    if (*max < *min)
      return fail("a repetition of at least " + std::to_string(*min) + " and at most " + std::to_string(*max), begin);
    if (*min > kMaxRepetition || (*max != kNoMaximum && *max > kMaxRepetition))
      return fail("a repetition above " + std::to_string(kMaxRepetition), begin, Code::limit);
    return {};
  }

  // One of a literal or a class, escapes undone.
  Status character(uint32_t* out) {
    const size_t begin = at_;
    if (!take("\\")) {
      const Utf8Step step = utf8_step(text_.substr(at_));
      at_ += step.length;
      *out = step.codepoint;
      return {};
    }
    const char c = peek();
    ++at_;
    size_t digits = 0;
    switch (c) {
      case 'n': *out = '\n'; return {};
      case 'r': *out = '\r'; return {};
      case 't': *out = '\t'; return {};
      case '\\': case '"': case '[': case ']': case '-': case '^': *out = static_cast<uint8_t>(c); return {};
      case 'x': digits = 2; break;
      case 'u': digits = 4; break;
      case 'U': digits = 8; break;
      default: return fail("an unknown escape: \"\\\" with something other than n r t \\ \" [ ] - ^ x u U behind it", begin);
    }
    uint64_t value = 0;
    for (size_t i = 0; i < digits; ++i, ++at_) {
      const int digit = hex_value(peek());
      if (digit < 0) return fail(std::string("\"\\") + c + "\" without " + std::to_string(digits) + " hexadecimal digits", begin);
      value = 16 * value + static_cast<uint64_t>(digit);
    }
    if (value > kMaxCodePoint) return fail("a character above U+10FFFF", begin);
    *out = static_cast<uint32_t>(value);
    return {};
  }

  Status read_literal(Sequence* out) {
    const size_t begin = at_++;
    std::string bytes;
    while (!take("\"")) {
      if (at_ >= text_.size()) return fail("this '\"' is not closed", begin);
      const size_t at = at_;
      uint32_t c = 0;
      AERIE_TRY(character(&c));
      if (is_surrogate(c)) return fail("U+D800 to U+DFFF are no characters", at);
      utf8_append(c, &bytes);
    }
    builder_.literal(bytes, out);
    return {};
  }

  Status read_class(Sequence* out) {
    const size_t begin = at_++;
    const bool other = take("^");
    CodePoints ranges;
    while (!take("]")) {
      if (at_ >= text_.size()) return fail("this \"[\" is not closed", begin);
      const size_t at = at_;
      CodePointRange range{};
      AERIE_TRY(character(&range.low));
      range.high = range.low;
      if (peek() == '-' && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        AERIE_TRY(character(&range.high));
      }
      if (range.high < range.low) return fail("a range whose end comes before its beginning", at);
      ranges.push_back(range);
    }
    ranges = normalized(std::move(ranges));
    if (other) ranges = complement(ranges);
    if (ranges.empty()) return fail("a class that no character is in", begin);
    out->push_back(builder_.code_points(std::move(ranges)));
    return {};
  }

  std::string_view text_;
  size_t at_ = 0;
  RuleBuilder builder_{"grammar"};
  std::vector<Name> names_;
  std::unordered_map<std::string, size_t> by_name_;
};

}  // namespace

Result<Program> program_of_gbnf(std::string_view gbnf) { return GbnfReader(gbnf).read(); }

}  // namespace aerie::text::grammar

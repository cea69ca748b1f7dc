#include "core/text/regex_dialect.h"

#include <utility>
#include <vector>

#include "core/platform/utf8.h"

namespace aerie::text {
namespace {

constexpr size_t kMaxPattern = 4096;
constexpr uint32_t kMaxRepeat = 1000;

// \s spelled out: PCRE2's own contains U+180E, which Unicode took out of White_Space.
constexpr std::string_view kWhiteSpace =
    R"(\x09-\x0d\x20\x85\xa0\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";

constexpr std::pair<std::string_view, std::string_view> kCategories[] = {
#include "core/text/unicode_additions.inc"
};

bool ascii_alnum(uint32_t c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }
bool ascii_letter(uint32_t c) { return ascii_alnum(c) && c > '9'; }

class Translator {
 public:
  explicit Translator(std::string_view in) : in_(in) {}

  Result<std::string> run() {
    if (in_.empty() || in_.size() > kMaxPattern) return refuse("its length");
    if (utf8_valid_prefix(in_) != in_.size()) return refuse("invalid UTF-8");
    while (at_ < in_.size()) AERIE_TRY(item());
    if (!caseless_.empty()) return refuse("an unclosed group");
    return std::move(out_);
  }

 private:
  Status refuse(std::string_view what) const {
    return error(Code::unsupported, "pre-tokenizer pattern \"" + std::string(in_) + "\" uses " + std::string(what) +
                                        ", which is not known");
  }
  bool take(std::string_view s) {
    if (in_.substr(at_, s.size()) != s) return false;
    at_ += s.size();
    return true;
  }
  char peek() const { return at_ < in_.size() ? in_[at_] : '\0'; }
  bool caseless() const { return !caseless_.empty() && caseless_.back(); }

  void literal(uint32_t c) {
    if (c < 0x80 && !ascii_alnum(c)) {
      static constexpr char kHex[] = "0123456789abcdef";
      out_ += "\\x";
      out_ += kHex[c >> 4];
      out_ += kHex[c & 15];
    } else {
      utf8_append(c, &out_);
    }
  }

  Status item() {
    const bool quantifiable = std::exchange(quantifiable_, false);
    const uint32_t before = std::exchange(previous_letter_, 0);
    if (take("(?!")) return open("(?!", false);
    if (take("(?=")) return open("(?=", false);
    if (take("(?:")) return open("(?:", caseless());
    if (take("(?i:")) return open("(?i:", true);
    if (take("(?")) return refuse("the group (?" + std::string(1, peek()));
    if (take("(")) return open("(?:", caseless());
    if (take(")")) {
      if (caseless_.empty()) return refuse("an unopened group");
      caseless_.pop_back();
      out_ += ')';
      quantifiable_ = true;
      return {};
    }
    if (take("|")) {
      out_ += '|';
      return {};
    }
    for (const char c : {'*', '+', '?'}) {
      if (peek() != c) continue;
      if (!quantifiable) return refuse(std::string("a stray ") + c);
      ++at_;
      out_ += c;
      if (take("?")) {
        out_ += '?';
      } else if (take("+")) {
        out_ += '+';
      }
      return {};
    }
    if (take("{")) return quantifiable ? repeat() : refuse("a stray {");
    if (take("[")) {
      quantifiable_ = true;
      return character_class();
    }
    for (const char c : {'^', '$', '.', ']', '}'}) {
      if (peek() == c) return refuse(std::string("a bare ") + c);
    }
    quantifiable_ = true;
    if (take("\\")) return escape(false);
    const uint32_t c = next();
    if (caseless()) {
      if (c >= 0x80) return refuse("a caseless character outside ASCII");
      // Oniguruma lets these pairs match a ligature or a sharp s; PCRE2 does not.
      const std::string pair{static_cast<char>(before | 0x20), static_cast<char>(c | 0x20)};
      for (const char* fold : {"ss", "ff", "fi", "fl", "st"}) {
        if (pair == fold) return refuse("caseless \"" + pair + "\"");
      }
      previous_letter_ = c;
    }
    literal(c);
    return {};
  }

  Status open(std::string_view how, bool is_caseless) {
    if (caseless_.size() >= 32) return refuse("deep nesting");
    out_ += how;
    caseless_.push_back(is_caseless);
    return {};
  }

  uint32_t next() {
    const Utf8Step step = utf8_step(in_.substr(at_));
    at_ += step.length;
    return step.codepoint;
  }

  bool number(uint32_t* value) {
    const size_t begin = at_;
    for (*value = 0; peek() >= '0' && peek() <= '9' && *value <= kMaxRepeat; ++at_) {
      *value = *value * 10 + static_cast<uint32_t>(peek() - '0');
    }
    return at_ > begin && *value <= kMaxRepeat;
  }

  Status repeat() {
    const size_t begin = at_ - 1;
    uint32_t low = 0, high = 0;
    if (!number(&low)) return refuse("this {");
    if (take(",") && peek() != '}' && (!number(&high) || high < low)) return refuse("this {");
    if (!take("}")) return refuse("this {");
    // Ruby reads {n}? and {n}+ in its own way.
    if (peek() == '?' || peek() == '+') return refuse("a modified {n}");
    out_ += in_.substr(begin, at_ - begin);
    return {};
  }

  // After a backslash; inside a class what it stands for is spliced in.
  Status escape(bool in_class) {
    const uint32_t c = at_ < in_.size() ? next() : 0;
    for (const char* control : {"r\\x0d", "n\\x0a", "t\\x09", "f\\x0c", "v\\x0b"}) {
      if (c == static_cast<uint32_t>(control[0])) {
        out_ += control + 1;
        return {};
      }
    }
    if (c == 's') return set(kWhiteSpace, "", false, in_class);
    if (c == 'S' && !in_class) return set(kWhiteSpace, "", true, false);
    if (c == 'd') return category("Nd", false, in_class);
    if ((c == 'p' || c == 'P') && take("{")) {
      const bool caret = take("^");
      const size_t end = in_.find('}', at_);
      if (end == std::string_view::npos) return refuse("an unclosed \\p{");
      const std::string_view name = in_.substr(at_, end - at_);
      at_ = end + 1;
      const bool negated = (c == 'P') != caret;
      if (negated && in_class) return refuse("a negated property inside a class");
      return category(name, negated, in_class);
    }
    if (c > 0x20 && c < 0x7F && !ascii_alnum(c)) {
      literal(c);
      return {};
    }
    std::string name = "\\";
    if (c != 0) utf8_append(c, &name);
    return refuse(name);
  }

  Status category(std::string_view name, bool negated, bool in_class) {
    if (caseless()) return refuse("a property under (?i:");
    for (const auto& [known, additions] : kCategories) {
      if (name == known) return set("\\p{" + std::string(name) + "}", additions, negated, in_class);
    }
    return refuse("\\p{" + std::string(name) + "}");
  }

  Status set(std::string_view content, std::string_view additions, bool negated, bool in_class) {
    if (!in_class) out_ += negated ? "[^" : "[";
    out_.append(content).append(additions);
    if (!in_class) out_ += ']';
    return {};
  }

  Status character_class() {
    out_ += '[';
    if (take("^")) {
      if (caseless()) return refuse("a negated class under (?i:");
      out_ += '^';
    }
    if (peek() == ']') return refuse("] first in a class");
    for (bool first = true; !take("]"); first = false) {
      if (at_ >= in_.size()) return refuse("an unclosed class");
      if (peek() == '[') return refuse("a nested class");
      if (take("&&")) return refuse("a class intersection");
      if (take("\\")) {
        AERIE_TRY(escape(true));
        // The left end of a range would be the whole of what was spliced in.
        if (peek() == '-' && in_.substr(at_, 2) != "-]") return refuse("a range from an escape");
        continue;
      }
      if (peek() == '-' && !first && in_.substr(at_, 2) != "-]") return refuse("a bare - inside a class");
      const uint32_t low = next();
      if (caseless() && low >= 0x80) return refuse("a caseless character outside ASCII");
      literal(low);
      if (peek() != '-' || in_.substr(at_, 2) == "-]") continue;
      ++at_;
      const char c = peek();
      if (c == '\0' || c == '\\' || c == '[' || c == '-') return refuse("a range to that");
      const uint32_t high = next();
      if (high < low || (caseless() && !(ascii_letter(low) && ascii_letter(high)))) return refuse("that range");
      out_ += '-';
      literal(high);
    }
    out_ += ']';
    return {};
  }

  std::string_view in_;
  size_t at_ = 0;
  std::string out_;
  std::vector<bool> caseless_;  // one per open group
  bool quantifiable_ = false;
  uint32_t previous_letter_ = 0;
};

}  // namespace

Result<std::string> to_pcre2(std::string_view oniguruma) { return Translator(oniguruma).run(); }

#define UPPER R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define LOWER R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"
#define TAIL R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
bool covers_all_text(std::string_view pattern) {
  bool letters = false, capitals = false, small = false, numbers = false, spaces = false, others = false;
  int group = 0;
  bool in_class = false;
  size_t begin = 0;
  for (size_t i = 0; i <= pattern.size(); ++i) {
    const char c = i < pattern.size() ? pattern[i] : '|';
    if (c == '\\') {
      ++i;
    } else if (in_class) {
      in_class = c != ']';
    } else if (c == '[') {
      in_class = true;
    } else if (c == '(' || c == ')') {
      group += c == '(' ? 1 : -1;
    } else if (c == '|' && group == 0) {
      const std::string_view one = pattern.substr(begin, i - begin);
      const auto is = [one](auto... forms) { return ((one == forms) || ...); };
      letters |= is(R"(\p{L}+)", R"( ?\p{L}+)", R"([^\r\n\p{L}\p{N}]?\p{L}+)", R"([^\r\n\p{L}\p{N}]?+\p{L}+)");
      // GPT-4o's two: words that have a small letter, or a capital one.
      capitals |= is(UPPER "+" LOWER "*" TAIL);
      small |= is(UPPER "*" LOWER "+" TAIL);
      numbers |= is(R"(\p{N})", R"(\p{N}+)", R"( ?\p{N}+)", R"(\p{N}{1,3})");
      spaces |= is(R"(\s)", R"(\s+)");
      others |= is(R"( ?[^\s\p{L}\p{N}]+)", R"( ?[^\s\p{L}\p{N}]+[\r\n]*)", R"( ?[^\s\p{L}\p{N}]++[\r\n]*)",
                   R"( ?[^\s\p{L}\p{N}]+[\r\n/]*)");
      begin = i + 1;
    }
  }
  return (letters || (capitals && small)) && numbers && spaces && others;
}
#undef UPPER
#undef LOWER
#undef TAIL

}  // namespace aerie::text

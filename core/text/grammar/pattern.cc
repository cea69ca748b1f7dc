#include "core/text/grammar/pattern.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/platform/utf8.h"
#include "core/text/grammar/digits.h"

namespace aerie::text::grammar {
namespace {

constexpr int kMaxPatternGroups = 64;  // in one another: each costs stack

CodePoints digit_points() { return {{'0', '9'}}; }
CodePoints word_points() { return {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}; }
CodePoints space_points() {
  return {{0x9, 0xD},       {0x20, 0x20},     {0xA0, 0xA0},     {0x1680, 0x1680}, {0x2000, 0x200A},
          {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
}

// ECMAScript's syntax, but for what looks around or back, and names of properties.
class PatternReader {
 public:
  PatternReader(std::string_view text, RuleBuilder* builder, JsonRules* json) : text_(text), builder_(builder), json_(json) {}

  Status read(Sequence* out) {
    std::vector<Sequence> alternatives;
    AERIE_TRY(read_alternatives(0, &alternatives));
    if (at_ < text_.size()) return refuse("a \")\" too many");
    out->push_back(builder_->choice(std::move(alternatives)));
    return {};
  }

 private:
  static Status refuse(const std::string& what) { return error(Code::unsupported, what + " is not supported"); }
  bool more() const { return at_ < text_.size(); }
  char peek() const { return more() ? text_[at_] : '\0'; }
  bool take(std::string_view token) {
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }

  Status read_alternatives(int depth, std::vector<Sequence>* out) {
    do {
      Sequence& s = out->emplace_back();
      if (depth == 0 && !take("^")) builder_->repeat({json_->character()}, 0, kNoMaximum, &s);
      bool ended = false;
      while (more() && peek() != '|' && peek() != ')' && !builder_->too_large()) {
        if (depth == 0 && take("$")) {
          ended = true;
          break;
        }
        AERIE_TRY(read_item(depth, &s));
      }
      if (ended && more() && peek() != '|') return refuse("\"$\" but at the end");
      if (depth == 0 && !ended) builder_->repeat({json_->character()}, 0, kNoMaximum, &s);
    } while (take("|"));
    return {};
  }

  Status read_item(int depth, Sequence* out) {
    Sequence item;
    const char c = peek();
    if (c == '^' || c == '$') return refuse(std::string("\"") + c + "\" but at the beginning or the end");
    if (c == '*' || c == '+' || c == '?' || c == '{')
      return refuse(std::string("\"") + c + "\" with nothing in front of it to repeat");
    if (c == '(') {
      AERIE_TRY(read_group(depth, &item));
    } else {
      CodePoints points;
      if (c == '[') AERIE_TRY(read_class(&points));
      else if (take(".")) points = complement({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}});
      else AERIE_TRY(read_character(&points));
      item.push_back(spelled(points));
    }
    uint32_t min = 1, max = 1;
    AERIE_TRY(read_repetition(&min, &max));
    builder_->repeat(item, min, max, out);
    return {};
  }

  Status read_group(int depth, Sequence* out) {
    ++at_;
    if (depth == kMaxPatternGroups) return refuse("such deep nesting");
    if (take("?") && !take(":")) {
      if (!take("<") || peek() == '=' || peek() == '!') return refuse("what looks ahead or back");
      at_ = std::min(text_.find('>', at_), text_.size() - 1) + 1;  // a name, of which nobody asks here
    }
    std::vector<Sequence> alternatives;
    AERIE_TRY(read_alternatives(depth + 1, &alternatives));
    if (!take(")")) return refuse("a \"(\" that is not closed");
    out->push_back(builder_->choice(std::move(alternatives)));
    return {};
  }

  Status read_repetition(uint32_t* min, uint32_t* max) {
    if (take("*")) *min = 0, *max = kNoMaximum;
    else if (take("+")) *max = kNoMaximum;
    else if (take("?")) *min = 0;
    else if (take("{")) {
      AERIE_TRY(read_number(min));
      *max = *min;
      if (take(",")) {
        *max = kNoMaximum;
        if (peek() != '}') AERIE_TRY(read_number(max));
      }
      if (!take("}") || *max < *min) return refuse("a \"{\" that is no repetition");
    } else {
      return {};
    }
    (void)take("?");  // the same texts, found in another order
    if (peek() == '*' || peek() == '+' || peek() == '?' || peek() == '{') return refuse("a repetition of a repetition");
    return {};
  }
  Status read_number(uint32_t* out) {
    return take_number(text_, &at_, kNoMaximum - 1, out) ? Status() : refuse("a \"{\" that is no repetition");
  }

  // One character, or what an escape stands for.
  Status read_character(CodePoints* out) {
    if (!take("\\")) {
      const Utf8Step step = utf8_step(text_.substr(at_));
      at_ += step.length;
      *out = {{step.codepoint, step.codepoint}};
      return {};
    }
    const char c = peek();
    ++at_;
    const auto one = [&](uint32_t point) { return *out = {{point, point}}, Status(); };
    switch (c) {
      case 'd': *out = digit_points(); return {};
      case 'D': *out = complement(digit_points()); return {};
      case 'w': *out = word_points(); return {};
      case 'W': *out = complement(word_points()); return {};
      case 's': *out = space_points(); return {};
      case 'S': *out = complement(space_points()); return {};
      case 'n': return one('\n');
      case 'r': return one('\r');
      case 't': return one('\t');
      case 'f': return one('\f');
      case 'v': return one('\v');
      case 'x': return read_hex(2, out);
      case 'u': return read_hex(4, out);
      default: break;
    }
    const bool punctuation = c > ' ' && c < 0x7F && !(c >= '0' && c <= '9') && !(c >= 'A' && c <= 'Z') && !(c >= 'a' && c <= 'z');
    if (!punctuation) return refuse("this escape, \"\\" + std::string(c > ' ' ? 1 : 0, c) + "\",");
    return one(static_cast<uint8_t>(c));
  }
  Status read_hex(size_t digits, CodePoints* out) {
    uint32_t value = 0;
    for (size_t i = 0; i < digits; ++i, ++at_) {
      const int digit = hex_value(peek());
      if (digit < 0) return refuse("\"\\x\" or \"\\u\" without its digits");
      value = 16 * value + static_cast<uint32_t>(digit);
    }
    if (is_surrogate(value)) return refuse("half of a pair of surrogates");
    *out = {{value, value}};
    return {};
  }

  Status read_class(CodePoints* out) {
    ++at_;
    const bool other = take("^");
    CodePoints points;
    while (!take("]")) {
      if (!more()) return refuse("a \"[\" that is not closed");
      CodePoints low, high;
      AERIE_TRY(read_character(&low));
      const bool single = low.size() == 1 && low[0].low == low[0].high;
      if (peek() == '-' && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        AERIE_TRY(read_character(&high));
        if (!single || high.size() != 1 || high[0].low != high[0].high || high[0].low < low[0].low)
          return refuse("a range such as this");
        low[0].high = high[0].high;
      }
      points.insert(points.end(), low.begin(), low.end());
    }
    points = normalized(std::move(points));
    *out = other ? complement(points) : std::move(points);
    return {};
  }

  // One of these as a JSON string spells it.
  Element spelled(const CodePoints& points) {
    const CodePoints set = normalized(points);
    const CodePoints escaped = {{0, 0x1F}, {'"', '"'}, {'\\', '\\'}};
    CodePoints rest = complement(set);
    rest.insert(rest.end(), escaped.begin(), escaped.end());
    const CodePoints plain = complement(normalized(std::move(rest)));
    std::vector<Sequence> alternatives;
    if (!plain.empty()) alternatives.push_back({builder_->code_points(plain)});
    for (const CodePointRange range : escaped) {
      for (uint32_t c = range.low; c <= range.high; ++c) {
        if (std::none_of(set.begin(), set.end(), [&](CodePointRange r) { return r.low <= c && c <= r.high; })) continue;
        const char byte = static_cast<char>(c);
        const std::string quoted = json_quoted(std::string_view(&byte, 1));
        builder_->literal(std::string_view(quoted).substr(1, quoted.size() - 2), &alternatives.emplace_back());
      }
    }
    return builder_->choice(std::move(alternatives));
  }

  std::string_view text_;
  size_t at_ = 0;
  RuleBuilder* builder_;
  JsonRules* json_;
};

#define AERIE_DATE                                                                                                                 \
  "(?:\\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)|02-(?:0[1-9]|1\\d|2[0-8]))|"           \
  "(?:\\d\\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)"
#define AERIE_TIME "(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d{1,9})?(?:Z|[+-](?:[01]\\d|2[0-3]):[0-5]\\d)"
#define AERIE_OCTET "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)"
constexpr std::pair<std::string_view, const char*> kFormats[] = {
    {"date", "^" AERIE_DATE "$"},
    {"time", "^" AERIE_TIME "$"},
    {"date-time", "^" AERIE_DATE "T" AERIE_TIME "$"},
    {"uuid", "^[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$"},
    {"ipv4", "^" AERIE_OCTET "(?:\\." AERIE_OCTET "){3}$"},
};
#undef AERIE_DATE
#undef AERIE_TIME
#undef AERIE_OCTET

}  // namespace

Status pattern_rules(std::string_view pattern, RuleBuilder* builder, JsonRules* json, Sequence* out) {
  return PatternReader(pattern, builder, json).read(out);
}

const char* pattern_of_format(std::string_view format) {
  for (const auto& [name, pattern] : kFormats)
    if (name == format) return pattern;
  return nullptr;
}

}  // namespace aerie::text::grammar

#include "core/text/grammar/json_rules.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/platform/utf8.h"

namespace aerie::text::grammar {
namespace {

constexpr uint32_t kMaxIndent = 20;
constexpr uint32_t kMaxFraction = 15;
constexpr uint32_t kMaxExponent = 2;  // with three, parsers refuse what no double holds

// What a string has to spell by an escape.
bool needs_escape(uint32_t c) { return c < 0x20 || c == '"' || c == '\\'; }

}  // namespace

std::string json_quoted(std::string_view text) {
  static constexpr std::string_view kShort = "b\bf\fn\nr\rt\t\"\"\\\\";  // pairs: what is behind the backslash, and what it means
  std::string out = "\"";
  for (const char c : text) {
    if (!needs_escape(static_cast<uint8_t>(c))) {
      out += c;
      continue;
    }
    size_t i = 1;
    while (i < kShort.size() && kShort[i] != c) i += 2;
    out += '\\';
    if (i < kShort.size()) out += kShort[i - 1];
    else out += std::string("u00") + (c < 16 ? '0' : '1') + "0123456789abcdef"[c % 16];
  }
  return out += '"';
}

Element JsonRules::byte_set(std::string_view bytes) {
  ByteSet set;
  for (const char c : bytes) set.add(static_cast<uint8_t>(c), static_cast<uint8_t>(c));
  return builder_->set(set);
}

Element JsonRules::digits(char low, char high) {
  ByteSet set;
  set.add(static_cast<uint8_t>(low), static_cast<uint8_t>(high));
  return builder_->set(set);
}

Element JsonRules::optional(Sequence s) { return builder_->choice({std::move(s), {}}); }

Element JsonRules::plain_character() {
  return builder_->code_points(complement({{0, 0x1F}, {'"', '"'}, {'\\', '\\'}}));
}

Element JsonRules::character() {
  if (character_ != kEnd) return character_;
  const Element hex = byte_set("0123456789abcdefABCDEF"), d = byte_set("dD"), backslash = element(ElementKind::byte, '\\'),
                u = element(ElementKind::byte, 'u');
  return character_ = builder_->choice({
             {plain_character()},
             {backslash, byte_set("\"\\/bfnrt")},
             {backslash, u, byte_set("0123456789abcABCefEF"), hex, hex, hex},
             {backslash, u, d, byte_set("01234567"), hex, hex},
             // A pair of surrogates is one character; one alone is none.
             {backslash, u, d, byte_set("89abAB"), hex, hex, backslash, u, d, byte_set("cdefCDEF"), hex, hex},
         });
}

Element JsonRules::any_string() {
  if (string_ != kEnd) return string_;
  Sequence s = {element(ElementKind::byte, '"')};
  builder_->repeat({character()}, 0, kNoMaximum, &s);
  s.push_back(element(ElementKind::byte, '"'));
  return string_ = builder_->choice({std::move(s)});
}

Element JsonRules::gap() {
  if (gap_ != kEnd) return gap_;
  if (layout_ != JsonLayout::free) return gap_ = builder_->choice({{}});
  Sequence line = {element(ElementKind::byte, '\n')};
  builder_->repeat({byte_set(" \t")}, 0, kMaxIndent, &line);
  return gap_ = builder_->choice({{}, {element(ElementKind::byte, ' ')}, std::move(line)});
}

Element JsonRules::comma() {
  if (comma_ != kEnd) return comma_;
  Sequence s = {element(ElementKind::byte, ',')};
  if (layout_ == JsonLayout::free) s.push_back(gap());
  if (layout_ == JsonLayout::one_line) s.push_back(element(ElementKind::byte, ' '));
  return comma_ = builder_->choice({std::move(s)});
}

void JsonRules::member(Element key, Element value, Sequence* out) {
  const Element space = element(ElementKind::byte, ' ');
  out->insert(out->end(), {key, element(ElementKind::byte, ':')});
  if (layout_ != JsonLayout::compact) out->push_back(layout_ == JsonLayout::free ? optional({space}) : space);
  out->push_back(value);
}

void JsonRules::list_of(Element item, Sequence* out) {
  builder_->repeat({comma(), item}, 0, kNoMaximum, out);
}

Element JsonRules::any_object() {
  (void)value();
  return object_;
}

Element JsonRules::any_array() {
  (void)value();
  return array_;
}

Element JsonRules::value() {
  if (value_ != kEnd) return value_;
  const uint32_t rule = builder_->declare("any JSON value");
  value_ = element(ElementKind::rule, rule);
  Sequence pair;
  member(any_string(), value_, &pair);
  const Element item = builder_->choice({std::move(pair)});
  const auto enclosed = [&](char open, Element inside, char close) {
    Sequence full = {element(ElementKind::byte, static_cast<uint8_t>(open)), gap(), inside};
    list_of(inside, &full);
    full.insert(full.end(), {gap(), element(ElementKind::byte, static_cast<uint8_t>(close))});
    return builder_->choice({std::move(full), {element(ElementKind::byte, static_cast<uint8_t>(open)), gap(),
                                               element(ElementKind::byte, static_cast<uint8_t>(close))}});
  };
  object_ = enclosed('{', item, '}');
  array_ = enclosed('[', value_, ']');
  builder_->define(rule, {{object_}, {array_}, {any_string()}, {any_number()}, {one_of({"true", "false", "null"})}});
  return value_;
}

Element JsonRules::any_integer() {
  if (integer_ != kEnd) return integer_;
  Sequence digits_behind = {digits('1', '9')};
  builder_->repeat({digits('0', '9')}, 0, 14, &digits_behind);
  return integer_ = builder_->choice({{optional({element(ElementKind::byte, '-')}),
                                       builder_->choice({{element(ElementKind::byte, '0')}, std::move(digits_behind)})}});
}

Element JsonRules::fraction() {
  Sequence s = {element(ElementKind::byte, '.')};
  builder_->repeat({digits('0', '9')}, 1, kMaxFraction, &s);
  return optional(std::move(s));
}

Element JsonRules::any_number() {
  if (number_ != kEnd) return number_;
  Sequence exponent = {byte_set("eE"), optional({byte_set("+-")})};
  builder_->repeat({digits('0', '9')}, 1, kMaxExponent, &exponent);
  return number_ = builder_->choice({{any_integer(), fraction(), optional(std::move(exponent))}});
}

// Texts with a common beginning go on together. No recursion: each text may be another's beginning.
Element JsonRules::one_of(std::vector<std::string> texts) {
  std::sort(texts.begin(), texts.end());
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  struct Group {  // of texts that are the same up to `at`
    size_t next, last, at;
    std::vector<Sequence> alternatives = {};
  };
  std::vector<Group> open = {{0, texts.size(), 0}};
  for (;;) {
    Group& group = open.back();
    if (group.next == group.last) {
      const Element made = builder_->choice(std::move(group.alternatives));
      open.pop_back();
      if (open.empty()) return made;
      open.back().alternatives.back().push_back(made);
      continue;
    }
    const size_t first = group.next, at = group.at;
    Sequence& s = group.alternatives.emplace_back();
    size_t end = first + 1;
    if (texts[first].size() > at) {
      while (end < group.last && texts[end][at] == texts[first][at]) ++end;
    }
    group.next = end;
    size_t common = at;  // the first and the last of what is sorted have what all of it has
    while (common < std::min(texts[first].size(), texts[end - 1].size()) && texts[first][common] == texts[end - 1][common]) ++common;
    builder_->literal(std::string_view(texts[first]).substr(at, common - at), &s);
    if (end > first + 1) open.push_back({first, end, common});
  }
}

Element JsonRules::other_key(const std::vector<std::string>& names) {
  if (names.empty()) return any_string();
  struct Node {
    std::map<uint32_t, size_t> next;
    bool is_name = false;
  };
  std::vector<Node> nodes(1);
  for (const std::string& name : names) {
    size_t at = 0;
    bool spelled_plainly = true;  // else it is none of the keys that are made here
    for (std::string_view rest = name; !rest.empty() && spelled_plainly;) {
      const Utf8Step step = utf8_step(rest);
      rest.remove_prefix(step.length);
      spelled_plainly = !needs_escape(step.codepoint);
      if (!spelled_plainly) break;
      const auto [found, is_new] = nodes[at].next.try_emplace(step.codepoint, nodes.size());
      const size_t to = found->second;
      if (is_new) nodes.emplace_back();
      at = to;
    }
    if (spelled_plainly) nodes[at].is_name = true;
    if (nodes.size() > kMaxElements) break;  // too large in any case
  }
  const Element quote = element(ElementKind::byte, '"');
  std::vector<Element> made(nodes.size());
  for (size_t i = nodes.size(); i-- > 0 && !builder_->too_large();) {  // what is below comes behind
    std::vector<Sequence> alternatives;
    CodePoints taken = {{0, 0x1F}, {'"', '"'}, {'\\', '\\'}};
    for (const auto& [c, to] : nodes[i].next) {
      taken.push_back({c, c});
      std::string bytes;
      utf8_append(c, &bytes);
      Sequence& s = alternatives.emplace_back();
      builder_->literal(bytes, &s);
      s.push_back(made[to]);
    }
    Sequence& other = alternatives.emplace_back();
    other.push_back(builder_->code_points(complement(normalized(std::move(taken)))));
    builder_->repeat({plain_character()}, 0, kNoMaximum, &other);
    other.push_back(quote);
    if (!nodes[i].is_name) alternatives.push_back({quote});
    made[i] = builder_->choice(std::move(alternatives));
  }
  return builder_->choice({{quote, made[0]}});
}

Sequence JsonRules::from_digits(std::string_view low) {
  if (low.empty()) return {};
  Sequence same = {element(ElementKind::byte, static_cast<uint8_t>(low[0]))};
  const Sequence rest = from_digits(low.substr(1));
  same.insert(same.end(), rest.begin(), rest.end());
  if (low[0] == '9') return same;
  Sequence above = {digits(static_cast<char>(low[0] + 1), '9')};
  builder_->repeat({digits('0', '9')}, static_cast<uint32_t>(low.size() - 1), static_cast<uint32_t>(low.size() - 1), &above);
  return {builder_->choice({std::move(same), std::move(above)})};
}

Sequence JsonRules::up_to_digits(std::string_view high) {
  if (high.empty()) return {};
  Sequence same = {element(ElementKind::byte, static_cast<uint8_t>(high[0]))};
  const Sequence rest = up_to_digits(high.substr(1));
  same.insert(same.end(), rest.begin(), rest.end());
  if (high[0] == '0') return same;
  Sequence below = {digits('0', static_cast<char>(high[0] - 1))};
  builder_->repeat({digits('0', '9')}, static_cast<uint32_t>(high.size() - 1), static_cast<uint32_t>(high.size() - 1), &below);
  return {builder_->choice({std::move(same), std::move(below)})};
}

Sequence JsonRules::same_length(std::string_view low, std::string_view high) {
  Sequence out;
  size_t i = 0;
  for (; i < low.size() && low[i] == high[i]; ++i) out.push_back(element(ElementKind::byte, static_cast<uint8_t>(low[i])));
  if (i == low.size()) return out;
  const auto tail = static_cast<uint32_t>(low.size() - i - 1);
  std::vector<Sequence> alternatives(2);
  alternatives[0] = {element(ElementKind::byte, static_cast<uint8_t>(low[i]))};
  alternatives[1] = {element(ElementKind::byte, static_cast<uint8_t>(high[i]))};
  const Sequence from = from_digits(low.substr(i + 1)), to = up_to_digits(high.substr(i + 1));
  alternatives[0].insert(alternatives[0].end(), from.begin(), from.end());
  alternatives[1].insert(alternatives[1].end(), to.begin(), to.end());
  if (high[i] - low[i] > 1) {
    Sequence& between = alternatives.emplace_back();
    between.push_back(digits(static_cast<char>(low[i] + 1), static_cast<char>(high[i] - 1)));
    builder_->repeat({digits('0', '9')}, tail, tail, &between);
  }
  out.push_back(builder_->choice(std::move(alternatives)));
  return out;
}

void JsonRules::magnitudes(int64_t low, int64_t high, const Sequence& before, const Sequence& behind,
                           std::vector<Sequence>* out) {
  for (int64_t first = low; first <= high;) {  // numbers of equally many digits
    const std::string from = std::to_string(first);
    const int64_t last = std::min<int64_t>(high, std::stoll(std::string(from.size(), '9')));
    Sequence& s = out->emplace_back(before);
    const Sequence number = same_length(from, std::to_string(last));
    s.insert(s.end(), number.begin(), number.end());
    s.insert(s.end(), behind.begin(), behind.end());
    first = last + 1;
  }
}

std::vector<Sequence> JsonRules::integers(int64_t low, int64_t high) {
  std::vector<Sequence> out;
  if (low < 0) magnitudes(std::max<int64_t>(1, -high), -low, {element(ElementKind::byte, '-')}, {}, &out);
  magnitudes(std::max<int64_t>(0, low), high, {}, {}, &out);
  return out;
}

std::vector<Sequence> JsonRules::numbers(std::optional<NumberBound> low, std::optional<NumberBound> high) {
  const Element dot = element(ElementKind::byte, '.'), zero = element(ElementKind::byte, '0');
  Sequence zeros = {dot}, more = {dot};
  builder_->repeat({zero}, 1, kMaxFraction, &zeros);
  builder_->repeat({zero}, 0, kMaxFraction - 1, &more);
  more.push_back(digits('1', '9'));
  builder_->repeat({digits('0', '9')}, 0, kMaxFraction - 1, &more);
  const Sequence any = {fraction()}, none = {optional(std::move(zeros))};
  std::vector<Sequence> out;
  // The magnitude alone, from one whole number to another.
  const auto between = [&](NumberBound from, std::optional<NumberBound> to, const Sequence& sign) {
    const int64_t last = to ? to->value - 1 : kMaxJsonInteger;  // with any fraction
    int64_t first = from.value;
    if (from.exclusive) {
      if (first <= last) magnitudes(first, first, sign, more, &out);
      ++first;
    }
    magnitudes(first, last, sign, any, &out);
    if (to && !to->exclusive && to->value >= first) magnitudes(to->value, to->value, sign, none, &out);
  };
  const auto negated = [](NumberBound b) { return NumberBound{-b.value, b.exclusive}; };
  if (!low || low->value < 0) {
    const bool ends_below = high && (high->value < 0 || (high->value == 0 && high->exclusive));
    between(ends_below ? negated(*high) : NumberBound{0, false}, low ? std::optional(negated(*low)) : std::nullopt,
            {element(ElementKind::byte, '-')});
  }
  if (!high || high->value >= 0) between(low && low->value >= 0 ? *low : NumberBound{0, false}, high, {});
  return out;
}

}  // namespace aerie::text::grammar

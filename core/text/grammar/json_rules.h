// The rules of JSON itself. As models write it there is no white space but a space, or a line break with its indentation, where
// such may be; another layout leaves them no choice. Numbers are of a bounded length, so that a model cannot go on for ever with what says nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/grammar/grammar.h"
#include "core/text/grammar/rule_builder.h"

namespace aerie::text::grammar {

inline constexpr int64_t kMaxJsonInteger = 999'999'999'999'999;  // 15 digits, which a double holds, too

struct NumberBound {
  int64_t value;
  bool exclusive;
};

// A string as JSON spells it, in its shortest form.
std::string json_quoted(std::string_view text);

class JsonRules {
 public:
  JsonRules(RuleBuilder* builder, JsonLayout layout) : builder_(builder), layout_(layout) {}

  Element value();
  Element any_string();
  Element any_object();
  Element any_array();
  Element any_integer();
  Element any_number();

  Element character();                      // one of a string, however it is spelled
  Element gap();                            // behind { and [, and before } and ]
  Element comma();                          // with what is behind it
  void member(Element key, Element value, Sequence* out);  // key: value
  void list_of(Element item, Sequence* out);               // ("," item)*
  // Within its quotes: a key that is none of these.
  Element other_key(const std::vector<std::string>& names);
  // One of these texts.
  Element one_of(std::vector<std::string> texts);
  // Whole numbers from low to high, both at most kMaxJsonInteger from 0.
  std::vector<Sequence> integers(int64_t low, int64_t high);
  // All numbers between two whole ones, without exponents; nothing: no bound.
  std::vector<Sequence> numbers(std::optional<NumberBound> low, std::optional<NumberBound> high);

 private:
  Element byte_set(std::string_view bytes);
  Element digits(char low, char high);
  Element optional(Sequence s);
  Element plain_character();
  Element fraction();
  // Numbers of as many digits as both have, from the one to the other.
  Sequence same_length(std::string_view low, std::string_view high);
  Sequence from_digits(std::string_view low);
  Sequence up_to_digits(std::string_view high);
  void magnitudes(int64_t low, int64_t high, const Sequence& before, const Sequence& behind, std::vector<Sequence>* out);

  RuleBuilder* builder_;
  const JsonLayout layout_;
  // kEnd: not yet made.
  Element value_ = kEnd, string_ = kEnd, object_ = kEnd, array_ = kEnd;
  Element integer_ = kEnd, number_ = kEnd, character_ = kEnd, gap_ = kEnd, comma_ = kEnd;
};

}  // namespace aerie::text::grammar

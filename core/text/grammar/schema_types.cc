// JSON Schema: strings and numbers.
#include <algorithm>
#include <cmath>
#include <optional>

#include "core/text/grammar/pattern.h"
#include "core/text/grammar/schema_reader.h"

namespace aerie::text::grammar {
namespace {

struct NumberBounds {
  std::optional<NumberBound> low, high;  // nothing: there is none, or none that a number without exponent comes to
  bool any = false;
};

// What generators of schemas call the integers of a size.
constexpr struct {
  std::string_view name;
  int64_t low, high;
} kIntegerFormats[] = {
    {"int8", INT8_MIN, INT8_MAX},   {"uint8", 0, UINT8_MAX},         {"int16", INT16_MIN, INT16_MAX},
    {"uint16", 0, UINT16_MAX},      {"int32", INT32_MIN, INT32_MAX}, {"uint32", 0, UINT32_MAX},
    {"uint64", 0, kMaxJsonInteger}, {"uint", 0, kMaxJsonInteger},
};

Status number_bounds(const SchemaValue& s, const std::string& path, bool of_integers, NumberBounds* out) {
  constexpr auto kMost = static_cast<double>(kMaxJsonInteger);
  for (const char* key : {"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"}) {
    const SchemaValue* bound = s.find(key);
    if (bound == nullptr) continue;
    const std::string at = child_path(path, key);
    if (!bound->is_number()) return schema_error(Code::bad_format, at, "is not a number");
    out->any = true;
    const bool is_low = std::string_view(key).ends_with("inimum");
    const double value = bound->number;
    if (is_low ? value < -kMost : value > kMost) continue;
    if (std::abs(value) > kMost) return schema_error(Code::unsupported, at, "is not supported above 15 digits");
    const bool whole = value == std::floor(value);
    if (!of_integers && !whole)
      return schema_error(Code::unsupported, at,
                          "is supported only if it is a whole number, or its type is \"integer\"");
    const NumberBound read{static_cast<int64_t>(is_low ? std::ceil(value) : std::floor(value)), whole && key[0] == 'e'};
    std::optional<NumberBound>& known = is_low ? out->low : out->high;
    const bool tighter = !known || (is_low ? read.value > known->value : read.value < known->value) ||
                         (read.value == known->value && read.exclusive);
    if (tighter) known = read;
  }
  return {};
}

}  // namespace

Status SchemaReader::counts(const SchemaValue& s, const std::string& path, const char* min_key, const char* max_key,
                            uint32_t* min, uint32_t* max) {
  *min = 0;
  *max = kNoMaximum;
  for (const char* key : {min_key, max_key}) {
    const SchemaValue* count = s.find(key);
    if (count == nullptr) continue;
    const std::string at = child_path(path, key);
    if (!count->is_number() || count->number < 0 || count->number != std::floor(count->number))
      return schema_error(Code::bad_format, at, "is not a whole number from 0 on");
    if (count->number > kMaxRepetition) return schema_error(Code::limit, at, "is above " + std::to_string(kMaxRepetition));
    *(key == min_key ? min : max) = static_cast<uint32_t>(count->number);
  }
  if (*min > *max) return schema_error(Code::bad_format, path, std::string(min_key) + " is above " + max_key);
  return {};
}

Status SchemaReader::string(const SchemaValue& s, const std::string& path, Alternatives* out) {
  const SchemaValue *pattern = s.find("pattern"), *format = s.find("format");
  if (pattern != nullptr || format != nullptr) return patterned_string(s, path, out);
  uint32_t min = 0, max = 0;
  AERIE_TRY(counts(s, path, "minLength", "maxLength", &min, &max));
  Sequence text = {element(ElementKind::byte, '"')};
  builder_.repeat({json_.character()}, min, max, &text);
  text.push_back(element(ElementKind::byte, '"'));
  out->push_back(std::move(text));
  return {};
}

Status SchemaReader::patterned_string(const SchemaValue& s, const std::string& path, Alternatives* out) {
  const bool is_pattern = s.find("pattern") != nullptr;
  const std::string key = is_pattern ? "pattern" : "format", at = child_path(path, key);
  const SchemaValue& value = *s.find(key);
  if (!value.is(SchemaValue::Kind::string)) return schema_error(Code::bad_format, at, "is not a text");
  for (const char* other : {"format", "minLength", "maxLength"})  // a text would have to be of both
    if (other != key && s.find(other) != nullptr)
      return schema_error(Code::unsupported, child_path(path, other), "is not supported beside \"" + key + "\"");
  const char* known = is_pattern ? value.text.c_str() : pattern_of_format(value.text);
  if (known == nullptr) return schema_error(Code::unsupported, at, "this format is not supported");
  Sequence text = {element(ElementKind::byte, '"')};
  if (const Status status = pattern_rules(is_pattern ? std::string_view(value.text) : known, &builder_, &json_, &text);
      !status.ok())
    return schema_error(status.code(), at, status.message());
  text.push_back(element(ElementKind::byte, '"'));
  out->push_back(std::move(text));
  return {};
}

Status SchemaReader::integer(const SchemaValue& s, const std::string& path, Alternatives* out) {
  NumberBounds bounds;
  AERIE_TRY(number_bounds(s, path, true, &bounds));
  const SchemaValue* format = s.find("format");
  const auto sized = std::find_if(std::begin(kIntegerFormats), std::end(kIntegerFormats),
                                  [&](const auto& f) { return format != nullptr && format->text == f.name; });
  if (sized == std::end(kIntegerFormats) && !bounds.low && !bounds.high) {
    out->push_back({json_.any_integer()});
    return {};
  }
  int64_t low = bounds.low ? bounds.low->value + bounds.low->exclusive : -kMaxJsonInteger;
  int64_t high = bounds.high ? bounds.high->value - bounds.high->exclusive : kMaxJsonInteger;
  if (sized != std::end(kIntegerFormats)) low = std::max(low, sized->low), high = std::min(high, sized->high);
  if (low > high) return schema_error(Code::bad_format, path, "no number is between its bounds");
  for (Sequence& digits : json_.integers(low, high)) out->push_back(std::move(digits));
  return {};
}

Status SchemaReader::number(const SchemaValue& s, const std::string& path, Alternatives* out) {
  NumberBounds bounds;
  AERIE_TRY(number_bounds(s, path, false, &bounds));
  if (!bounds.any) {
    out->push_back({json_.any_number()});
    return {};
  }
  std::vector<Sequence> numbers = json_.numbers(bounds.low, bounds.high);
  if (numbers.empty()) return schema_error(Code::bad_format, path, "no number is between its bounds");
  for (Sequence& digits : numbers) out->push_back(std::move(digits));
  return {};
}

}  // namespace aerie::text::grammar

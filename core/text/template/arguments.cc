#include <algorithm>

#include "core/text/template/builtins.h"

namespace aerie::text::chat {

const Value* Arguments::find(std::string_view wanted) const {
  for (size_t i = 0; i < named(); ++i)
    if (name(i) == wanted) return &named_value(i);
  return nullptr;
}

Status Arguments::bind(std::string_view what, std::initializer_list<std::string_view> parameters, size_t required, Value* out) const {
  const std::string who(what);
  if (plain > parameters.size())
    return type_error(who + " takes " + std::to_string(parameters.size()) + " arguments, not " + std::to_string(plain));
  std::copy(values, values + plain, out);
  for (size_t i = 0; i < named(); ++i) {
    const auto at = std::find(parameters.begin(), parameters.end(), name(i));
    if (at == parameters.end()) return error(Code::unsupported, who + " has no argument '" + std::string(name(i)) + "'");
    Value& place = out[at - parameters.begin()];
    if (place.given()) return type_error(who + ": '" + std::string(name(i)) + "' is given twice");
    place = named_value(i);
  }
  for (size_t i = 0; i < required; ++i)
    if (!out[i].given()) return type_error(who + " wants '" + std::string(*(parameters.begin() + i)) + "'");
  return {};
}

Status whole_number(std::string_view what, const Value& v, int64_t* out) {
  if (v.is_undefined()) return undefined_error(v);
  if (!v.is_whole()) return type_error(std::string(what) + ": wants a whole number, not a " + v.type_name());
  *out = v.as_integer();
  return {};
}

Status as_text(std::string_view what, const Value& v, std::string_view* out) {
  if (v.is_undefined()) return undefined_error(v);
  if (!v.is_string()) return type_error(std::string(what) + ": wants a text, not a " + v.type_name());
  *out = v.text();
  return {};
}

}  // namespace aerie::text::chat

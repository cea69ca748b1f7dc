// Values as texts: str, repr and JSON.
#pragma once

#include <string>

#include "core/text/template/value.h"

namespace aerie::text::chat {

// What {{ }} prints.
Status append_text(const Value& v, std::string* out);
// The same as a value that shares what is a text already; no longer marked.
Result<Value> text_of(Heap* heap, const Value& v);
std::string number_text(double d);

struct JsonForm {
  std::string indent;
  bool lines = false;  // indent is given
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool ascii = false;
  bool sorted = false;
};
Status append_json(const Value& v, const JsonForm& form, std::string* out);

}  // namespace aerie::text::chat

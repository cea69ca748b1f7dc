// JSON as the values of a template.
#pragma once

#include <string>
#include <string_view>

#include "core/text/template/value.h"

namespace aerie::text::chat {

// `what` names it in errors: "messages".
Result<Value> read_json(Heap* heap, const char* what, std::string_view json);

}  // namespace aerie::text::chat

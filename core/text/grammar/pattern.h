// The regular expressions of JSON Schema's "pattern", as rules of a JSON string's inside.
#pragma once

#include <string_view>

#include "core/text/grammar/json_rules.h"
#include "kernels/status.h"

namespace aerie::text::grammar {

// What the expression finds, with anything before and behind it unless ^ and $ say otherwise. Messages say what is not
// supported, without a place.
Status pattern_rules(std::string_view pattern, RuleBuilder* builder, JsonRules* json, Sequence* out);

// The expression of a "format"; null: none that is known.
const char* pattern_of_format(std::string_view format);

}  // namespace aerie::text::grammar

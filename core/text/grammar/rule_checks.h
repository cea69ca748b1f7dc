// What must be known of a grammar's rules before they are run.
#pragma once

#include <cstdint>
#include <vector>

#include "core/text/grammar/rule_builder.h"

namespace aerie::text::grammar {

using Rules = std::vector<RuleBuilder::Rule>;

// Which rules describe some finite text.
std::vector<bool> ending_rules(const Rules& rules, const std::vector<ByteSet>& sets);
// Which rules describe the empty text.
std::vector<bool> nullable_rules(const Rules& rules, const std::vector<ByteSet>& sets);
// A rule that may begin with itself, of which a matcher would never come to an end; -1: there is none.
int64_t left_recursive_rule(const Rules& rules, const std::vector<bool>& nullable);

}  // namespace aerie::text::grammar

#include "core/text/grammar/grammar.h"

namespace aerie::text::grammar {
Result<Program> program_of_json_schema(std::string_view) { return error(Code::unsupported, "JSON Schema: not yet"); }
}  // namespace aerie::text::grammar

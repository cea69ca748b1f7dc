// Filters, a file for those of texts, of lists and of numbers.
#pragma once

#include "core/text/template/builtins.h"

namespace aerie::text::chat {

using FilterFunction = Status (*)(Context&, const Value& self, const Arguments&, Value* out);
struct FilterEntry {
  std::string_view name;
  FilterFunction call;
};

#define AERIE_CHAT_FILTER(name) Status name([[maybe_unused]] Context& c, const Value& v, const Arguments& a, Value* out)
AERIE_CHAT_FILTER(filter_trim);
AERIE_CHAT_FILTER(filter_upper);
AERIE_CHAT_FILTER(filter_lower);
AERIE_CHAT_FILTER(filter_title);
AERIE_CHAT_FILTER(filter_capitalize);
AERIE_CHAT_FILTER(filter_replace);
AERIE_CHAT_FILTER(filter_indent);
AERIE_CHAT_FILTER(filter_tojson);
AERIE_CHAT_FILTER(filter_string);
AERIE_CHAT_FILTER(filter_format);
AERIE_CHAT_FILTER(filter_join);
AERIE_CHAT_FILTER(filter_length);
AERIE_CHAT_FILTER(filter_first);
AERIE_CHAT_FILTER(filter_last);
AERIE_CHAT_FILTER(filter_list);
AERIE_CHAT_FILTER(filter_reverse);
AERIE_CHAT_FILTER(filter_items);
AERIE_CHAT_FILTER(filter_batch);
AERIE_CHAT_FILTER(filter_map);
AERIE_CHAT_FILTER(filter_sort);
AERIE_CHAT_FILTER(filter_dictsort);
AERIE_CHAT_FILTER(filter_unique);
AERIE_CHAT_FILTER(filter_sum);
AERIE_CHAT_FILTER(filter_abs);
AERIE_CHAT_FILTER(filter_int);
AERIE_CHAT_FILTER(filter_float);
AERIE_CHAT_FILTER(filter_round);
Status filter_select(Context& c, const Value& v, const Arguments& a, Value* out, bool by_attribute, bool wanted);
Status filter_extreme(Context& c, const Value& v, const Arguments& a, Value* out, bool largest);

// "a.b.0" of a value, as the filters' attribute=. [] is what is used, so that a key goes before a method.
// A default takes the place of what is not there.
Status path_of(Context& c, const Value& v, const Value& path, Value* out, const Value& otherwise = Value());

}  // namespace aerie::text::chat

// Methods of texts, lists and dicts.
#pragma once

#include "core/text/template/builtins.h"

namespace aerie::text::chat {

inline constexpr int kNoMethod = -1;
inline constexpr int kChangesValue = -2;       // of Python's, refused by the sandbox
inline constexpr int kUnsupportedMethod = -3;  // of Python's
int method_id(Kind kind, std::string_view name);

using MethodFunction = Status (*)(Context&, const Value& self, const Arguments&, Value* out);
struct MethodEntry {
  Kind kind;
  std::string_view name;
  MethodFunction call;
};

// In methods_text.cc.
Status text_case(Context&, const Value&, const Arguments&, Value*, std::string (*f)(std::string_view));
Status text_strip(Context&, const Value&, const Arguments&, Value*, bool left, bool right);
Status text_split(Context&, const Value&, const Arguments&, Value*, bool right);
Status text_find(Context&, const Value&, const Arguments&, Value*, bool right, bool must);
Status text_affix(Context&, const Value&, const Arguments&, Value*, bool end);
Status text_cut(Context&, const Value&, const Arguments&, Value*, bool end);
Status text_partition(Context&, const Value&, const Arguments&, Value*, bool right);
Status text_splitlines(Context&, const Value&, const Arguments&, Value*);
Status text_replace(Context&, const Value&, const Arguments&, Value*);
Status text_join(Context&, const Value&, const Arguments&, Value*);
Status text_count(Context&, const Value&, const Arguments&, Value*);
Status text_isspace(Context&, const Value&, const Arguments&, Value*);
Status text_isdigit(Context&, const Value&, const Arguments&, Value*);
Status replaced(Context&, std::string_view text, std::string_view old, std::string_view by, int64_t count, Value* out);
// str(d).join(...) of what they are as texts, or of texts alone.
Status joined_items(Context&, std::string_view between, const List& items, bool any, Value* out);

}  // namespace aerie::text::chat

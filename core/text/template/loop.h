// The variable "loop" of a for loop.
#pragma once

#include "core/text/template/builtins.h"

namespace aerie::text::chat {

struct Loop final : Object {
  Loop(Heap* heap, Ref<List> l) : Object(heap), list(std::move(l)) {}
  uint32_t depth() const override { return list->depth() + 1; }
  Ref<List> list;
  size_t next = 0;      // of the list; the current one is in front of it
  Ref<List> collected;  // what a condition keeps
};

Status loop_attribute(Context& context, const Value& loop, std::string_view name, Value* out, bool* found);

}  // namespace aerie::text::chat

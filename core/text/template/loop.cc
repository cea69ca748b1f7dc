#include "core/text/template/loop.h"

#include "core/text/template/methods.h"

namespace aerie::text::chat {

Status loop_attribute(Context& c, const Value& v, std::string_view name, Value* out, bool* found) {
  const auto& loop = static_cast<const Loop&>(*v.object());
  const auto& items = loop.list->items;
  const auto at = static_cast<int64_t>(loop.next) - 1, n = static_cast<int64_t>(items.size());
  *found = true;
  if (name == "index") *out = Value::integer(at + 1);
  else if (name == "index0") *out = Value::integer(at);
  else if (name == "first") *out = Value::boolean(at == 0);
  else if (name == "last") *out = Value::boolean(at + 1 == n);
  else if (name == "length") *out = Value::integer(n);
  else if (name == "revindex") *out = Value::integer(n - at);
  else if (name == "revindex0") *out = Value::integer(n - at - 1);
  else if (name == "depth") *out = Value::integer(1);
  else if (name == "depth0") *out = Value::integer(0);
  else if (name == "previtem") *out = at > 0 ? items[static_cast<size_t>(at - 1)] : Value::undefined("there is no previous item");
  else if (name == "nextitem") *out = at + 1 < n ? items[static_cast<size_t>(at + 1)] : Value::undefined("there is no next item");
  else if (const int id = method_id(Kind::loop, name); id >= 0)
    *out = Value::of(Kind::method, Ref<Object>(make<Method>(c.heap, v, static_cast<uint32_t>(id)).get()));
  else if (method_id(Kind::loop, name) == kUnsupportedMethod)
    return error(Code::unsupported, "loop." + std::string(name) + " is not supported");
  else *found = false;
  return {};
}

}  // namespace aerie::text::chat

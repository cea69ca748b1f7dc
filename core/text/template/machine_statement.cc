// Statements: what changes scopes, loops and where texts go.
#include "core/text/template/machine.h"

namespace aerie::text::chat {

Status Machine::statement(const Instruction& i) {
  switch (i.op) {
    case Op::store_attribute: return store_attribute(i);
    case Op::unpack: return unpack(i.n);
    case Op::scope_begin: scope_ = make<Scope>(heap_, scope_); return {};
    case Op::scope_end: scope_ = Ref<Scope>(scope_->parent); return {};
    case Op::capture_begin: captures_.emplace_back(); return {};
    case Op::capture_end: {
      push(Value::string(heap_, std::move(captures_.back())));
      captures_.pop_back();
      return {};
    }
    case Op::macro: {
      const MacroCode& code = program_.macros[static_cast<size_t>(i.a)];
      scopes_.push_back(scope_);
      push(Value::of(Kind::macro, Ref<Object>(make<Macro>(heap_, &code, scope_).get())));
      return {};
    }
    case Op::end_macro: return leave_macro();
    default: return loop_step(i);
  }
}

Status Machine::loop_step(const Instruction& i) {
  switch (i.op) {
    case Op::loop_begin: {
      const Value v = pop();
      AERIE_ASSIGN(Ref<List> list, iterate(heap_, v));
      loops_.push_back(Value::of(Kind::loop, Ref<Object>(make<Loop>(heap_, std::move(list)).get())));
      return {};
    }
    case Op::loop_next: {
      Loop& l = loop();
      if (l.next == l.list->items.size()) jump(i);
      else push(l.list->items[l.next++]);
      return {};
    }
    case Op::loop_end: loops_.pop_back(); return {};
    case Op::loop_empty: push(Value::boolean(loop().next == 0)); return {};
    case Op::collect: {
      Loop& l = loop();
      if (!l.collected) l.collected = make<List>(heap_);
      l.collected->add(l.list->items[l.next - 1]);
      return {};
    }
    case Op::collect_end: {
      Ref<List> list = loop().collected;
      if (!list) list = make<List>(heap_);
      loops_.pop_back();
      push(list_value(Kind::list, std::move(list)));
      return {};
    }
    case Op::bind_loop: scope_->set(static_cast<uint32_t>(i.a), loops_.back()); return {};
    default: return error(Code::internal, "an unknown instruction");
  }
}

Status Machine::store_attribute(const Instruction& i) {
  const Value to = load(static_cast<uint32_t>(i.a));
  const std::string_view name = program_.names[i.b];
  if (to.is_undefined()) return undefined_error(to);
  if (!to.is(Kind::space))
    return type_error("only a namespace's attributes can be set, not those of a '" + std::string(to.type_name()) + "'");
  if (name.starts_with('_')) return type_error("a namespace has no attributes that begin with \"_\"");
  Value v = pop();
  if (v.depth() + 1 > kMaxValueDepth) return error(Code::limit, "values are nested above " + std::to_string(kMaxValueDepth) + " deep");
  static_cast<Space&>(*to.object()).attributes->set(Value::string(name), std::move(v));
  return {};
}

Status Machine::unpack(uint16_t n) {
  const Value v = pop();
  AERIE_ASSIGN(const Ref<List> items, iterate(heap_, v));
  if (items->items.size() != n)
    return type_error("there are " + std::to_string(n) + " names for " + std::to_string(items->items.size()) + " values");
  for (size_t k = n; k > 0; --k) push(items->items[k - 1]);
  return {};
}

}  // namespace aerie::text::chat

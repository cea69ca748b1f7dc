// Calls: of functions, methods, filters, tests, and of the template's own macros.
#include "core/text/template/machine.h"

namespace aerie::text::chat {

Arguments Machine::arguments_of(const Instruction& i) {
  Arguments a;
  a.context = &context_;
  a.names = i.a >= 0 ? &program_.name_lists[static_cast<size_t>(i.a)] : nullptr;
  a.plain = i.n;
  a.values = stack_.data() + stack_.size() - a.plain - a.named();
  return a;
}

// f(a, *more): those of the list to the others.
Status Machine::spread(Arguments* arguments) {
  const Value more = pop();
  AERIE_ASSIGN(const Ref<List> items, iterate(heap_, more));
  for (const Value& item : items->items) push(item);
  arguments->plain += items->items.size() - 1;
  arguments->values = stack_.data() + stack_.size() - arguments->plain;
  return {};
}

Status Machine::call(const Instruction& i) {
  Arguments arguments = arguments_of(i);
  if (i.op == Op::call && i.id != 0) AERIE_TRY(spread(&arguments));
  const size_t n = arguments.plain + arguments.named();
  Value& callee = top(n);
  Value out;
  if (i.op == Op::filter) {
    AERIE_TRY(apply_filter(context_, i.id, callee, arguments, &out));
  } else if (i.op == Op::test) {
    bool holds = false;
    AERIE_TRY(apply_test(context_, i.id, callee, arguments, &holds));
    out = Value::boolean(holds);
  } else if (callee.is(Kind::macro)) {
    const Ref<Object> macro = callee.object();
    AERIE_TRY(enter_macro(static_cast<const Macro&>(*macro), arguments));
    drop(n + 1);
    return {};
  } else if (callee.is(Kind::method)) {
    AERIE_TRY(call_method(context_, static_cast<const Method&>(*callee.object()), arguments, &out));
  } else if (callee.is(Kind::function)) {
    AERIE_TRY(call_function(context_, callee.as_integer(), arguments, &out));
    if (out.is(Kind::space)) spaces_.emplace_back(static_cast<Space*>(out.object().get()));
  } else if (callee.is_undefined()) {
    return undefined_error(callee);
  } else {
    return type_error(std::string("a '") + callee.type_name() + "' cannot be called");
  }
  // Lists and dicts get deeper one call at a time; what is too deep is not kept.
  if (out.depth() > kMaxValueDepth) return error(Code::limit, "values are nested above " + std::to_string(kMaxValueDepth) + " deep");
  drop(n);
  top() = std::move(out);
  return {};
}

Status Machine::enter_macro(const Macro& macro, const Arguments& arguments) {
  const MacroCode& code = *macro.code;
  const std::string who = "macro '" + std::string(code.name) + "'";
  if (frames_.size() == kMaxFrames) return error(Code::limit, "macros call one another above " + std::to_string(kMaxFrames) + " deep");
  const Ref<Scope> scope = make<Scope>(heap_, macro.scope);
  const auto id_of = [&](std::string_view name) { return program_.name_ids.at(name); };
  for (size_t k = 0; k < code.arguments.size(); ++k)
    scope->set(code.arguments[k], k < arguments.plain ? arguments.values[k] : Value());
  Ref<List> more = make<List>(heap_);
  for (size_t k = code.arguments.size(); k < arguments.plain; ++k) more->add(arguments.values[k]);
  if (!more->items.empty() && !code.takes_more)
    return type_error(who + " takes not more than " + std::to_string(code.arguments.size()) + " arguments");
  Ref<Dict> named = make<Dict>(heap_);
  Value caller = Value::undefined("caller");
  for (size_t k = 0; k < arguments.named(); ++k) {
    const uint32_t id = (*arguments.names)[k];
    const std::string_view name = arguments.name(k);
    size_t at = 0;
    while (at < code.arguments.size() && code.arguments[at] != id) ++at;
    if (at < arguments.plain && at < code.arguments.size()) return type_error(who + ": '" + std::string(name) + "' is given twice");
    if (at < code.arguments.size()) scope->set(id, arguments.named_value(k));
    else if (name == "caller" && code.takes_caller) caller = arguments.named_value(k);
    else if (code.takes_named) named->set(Value::string(name), arguments.named_value(k));
    else return type_error(who + " takes no argument '" + std::string(name) + "'");
  }
  if (code.takes_caller) scope->set(id_of("caller"), std::move(caller));
  if (code.takes_more) scope->set(id_of("varargs"), list_value(Kind::tuple, std::move(more)));
  if (code.takes_named) scope->set(id_of("kwargs"), dict_value(std::move(named)));
  frames_.push_back({at_, scope_, loops_.size()});
  scope_ = scope;
  captures_.emplace_back();
  at_ = code.begin;
  return {};
}

Status Machine::leave_macro() {
  push(Value::string(heap_, std::move(captures_.back())));
  captures_.pop_back();
  at_ = frames_.back().back;
  scope_ = frames_.back().scope;
  loops_.resize(frames_.back().loops);
  frames_.pop_back();
  return {};
}

}  // namespace aerie::text::chat

#include "core/text/template/machine.h"

#include "core/text/template/lexer.h"
#include "core/text/template/print.h"

namespace aerie::text::chat {

void Scope::set(uint32_t name, Value value) {
  if (Value* old = find(name)) {
    *old = std::move(value);
    return;
  }
  charge(sizeof(values[0]));
  values.emplace_back(name, std::move(value));
}

Machine::Machine(const Program& program, Heap* heap, const std::tm& now)
    : program_(program), heap_(heap), context_{heap, program, now}, inputs_(program.names.size()), functions_(program.names.size()) {
  for (size_t i = 0; i < program.names.size(); ++i)
    if (const int id = function_id(program.names[i]); id >= 0) functions_[i] = Value::function(id);
}

// Namespaces and macros may hold one another in rings, which counting would not end.
Machine::~Machine() {
  for (const Ref<Space>& space : spaces_) space->attributes->clear();
  for (const Ref<Scope>& scope : scopes_) scope->values.clear();
}

void Machine::set_input(std::string_view name, Value value) {
  const auto at = program_.name_ids.find(name);
  if (at != program_.name_ids.end()) inputs_[at->second] = std::move(value);
}

Result<std::string> Machine::run() {
  scope_ = make<Scope>(heap_, Ref<Scope>());
  captures_.emplace_back();
  while (program_.code[at_].op != Op::end) {
    const Instruction& i = program_.code[at_++];
    heap_->spend(1);
    Status status = step(i);
    if (status.ok() && heap_->exceeded()) status = heap_->status();
    if (!status.ok()) return template_error(status.code(), i.line, status.message());
  }
  return std::move(captures_.back());
}

Value Machine::load(uint32_t name) {
  for (Scope* scope = scope_.get(); scope != nullptr; scope = scope->parent.get())
    if (Value* v = scope->find(name)) return v->given() ? *v : Value::undefined(program_.names[name]);
  if (inputs_[name].given()) return inputs_[name];
  return functions_[name].given() ? functions_[name] : Value::undefined(program_.names[name]);
}

Status Machine::print(const Value& v) {
  std::string& out = captures_.back();
  const size_t before = out.size();
  AERIE_TRY(append_text(v, &out));
  printed_ += out.size() - before;
  heap_->spend((out.size() - before) / 64);
  if (printed_ > kMaxOutputBytes)
    return error(Code::limit, "it prints more than " + std::to_string(kMaxOutputBytes >> 20) + " MiB");
  return {};
}

Status Machine::step(const Instruction& i) {
  switch (i.op) {
    case Op::text: return print(Value::string(program_.texts[static_cast<size_t>(i.a)]));
    case Op::print: return print(pop());
    case Op::constant: push(program_.constants[static_cast<size_t>(i.a)]); return {};
    case Op::load: push(load(static_cast<uint32_t>(i.a))); return {};
    case Op::store: scope_->set(static_cast<uint32_t>(i.a), pop()); return {};
    case Op::pop: drop(1); return {};
    case Op::jump: jump(i); return {};
    case Op::jump_if_false:
      if (!pop().truth()) jump(i);
      return {};
    case Op::and_jump:
    case Op::or_jump:
      if (top().truth() == (i.op == Op::or_jump)) jump(i);
      else drop(1);
      return {};
    case Op::jump_if_given: {
      const Value* v = scope_->find(i.b);
      if (v != nullptr && v->given()) jump(i);
      return {};
    }
    case Op::invert: top() = Value::boolean(!top().truth()); return {};
    case Op::negate:
    case Op::plus: {
      Value out;
      AERIE_TRY(negative(top(), i.op == Op::negate, &out));
      top() = std::move(out);
      return {};
    }
    case Op::binary: {
      Value out;
      AERIE_TRY(binary(context_, static_cast<Binary>(i.id), top(1), top(), &out));
      drop(1);
      top() = std::move(out);
      return {};
    }
    case Op::compare:
    case Op::compare_chain: {
      bool holds = false;
      AERIE_TRY(compare(context_, static_cast<Compare>(i.id), top(1), top(), &holds));
      Value right = pop();
      if (i.op == Op::compare) top() = Value::boolean(holds);
      else top() = holds ? std::move(right) : Value::boolean(false);
      if (i.op == Op::compare_chain && !holds) jump(i);
      return {};
    }
    case Op::attribute: {
      Value out;
      AERIE_TRY(attribute_of(context_, top(), program_.names[static_cast<size_t>(i.a)], &out));
      top() = std::move(out);
      return {};
    }
    case Op::item: {
      Value out;
      AERIE_TRY(item_of(context_, top(1), top(), &out));
      drop(1);
      top() = std::move(out);
      return {};
    }
    case Op::slice: {
      Value out;
      AERIE_TRY(slice_of(context_, top(3), top(2), top(1), top(), &out));
      drop(3);
      top() = std::move(out);
      return {};
    }
    case Op::absent: push(Value()); return {};
    case Op::refuse: return error(Code::unsupported, std::string(program_.texts[static_cast<size_t>(i.a)]));
    case Op::list:
    case Op::tuple:
    case Op::dict: return build(i);
    case Op::call:
    case Op::filter:
    case Op::test: return call(i);
    default: return statement(i);
  }
}

Status Machine::build(const Instruction& i) {
  const size_t n = i.op == Op::dict ? 2 * size_t{i.n} : i.n;
  const Value* values = stack_.data() + stack_.size() - n;
  Value made;
  if (i.op == Op::dict) {
    Ref<Dict> dict = make<Dict>(heap_);
    for (size_t k = 0; k < n; k += 2) {
      if (!hashable(values[k])) return type_error(std::string("a '") + values[k].type_name() + "' is no key");
      dict->set(values[k], values[k + 1]);
    }
    made = dict_value(std::move(dict));
  } else {
    Ref<List> list = make<List>(heap_);
    list->items.reserve(n);
    for (size_t k = 0; k < n; ++k) list->add(values[k]);
    made = list_value(i.op == Op::tuple ? Kind::tuple : Kind::list, std::move(list));
  }
  drop(n);
  if (made.depth() > kMaxValueDepth) return error(Code::limit, "values are nested above " + std::to_string(kMaxValueDepth) + " deep");
  push(std::move(made));
  return {};
}

}  // namespace aerie::text::chat

// Runs a program. Everything that nests is on the heap.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/text/template/builtins.h"
#include "core/text/template/loop.h"

namespace aerie::text::chat {

// Names and their values; those of what is around it are seen through it.
struct Scope final : Object {
  Scope(Heap* heap, Ref<Scope> p) : Object(heap), parent(std::move(p)) {}
  Value* find(uint32_t name) {
    for (auto& [id, value] : values)
      if (id == name) return &value;
    return nullptr;
  }
  void set(uint32_t name, Value value);
  const Ref<Scope> parent;
  std::vector<std::pair<uint32_t, Value>> values;
};

struct Macro final : Object {
  Macro(Heap* heap, const MacroCode* m, Ref<Scope> s) : Object(heap), code(m), scope(std::move(s)) {}
  const MacroCode* code;
  const Ref<Scope> scope;  // where it was defined
};

class Machine {
 public:
  Machine(const Program& program, Heap* heap, const std::tm& now);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // A variable of the conversation's. Those that the template does not name are of no use to it.
  void set_input(std::string_view name, Value value);
  Result<std::string> run();

 private:
  static constexpr size_t kMaxFrames = 256;  // of macros in one another
  struct Frame {
    size_t back;  // instruction
    Ref<Scope> scope;
    size_t loops;
  };

  Status step(const Instruction& i);
  Status statement(const Instruction& i);
  Status loop_step(const Instruction& i);
  Status call(const Instruction& i);
  Status enter_macro(const Macro& macro, const Arguments& arguments);
  Status leave_macro();
  Status store_attribute(const Instruction& i);
  Status unpack(uint16_t n);
  Status build(const Instruction& i);
  Status print(const Value& v);
  Value load(uint32_t name);
  Arguments arguments_of(const Instruction& i);
  Status spread(Arguments* arguments);

  Value pop() {
    Value v = std::move(stack_.back());
    stack_.pop_back();
    return v;
  }
  void push(Value v) { stack_.push_back(std::move(v)); }
  void drop(size_t n) { stack_.resize(stack_.size() - n); }
  Value& top(size_t below = 0) { return stack_[stack_.size() - 1 - below]; }
  void jump(const Instruction& i) { at_ += static_cast<size_t>(i.a) - 1; }  // at_ is behind the instruction
  Loop& loop() { return static_cast<Loop&>(*loops_.back().object()); }

  const Program& program_;
  Heap* heap_;
  Context context_;
  std::vector<Value> inputs_;     // by name
  std::vector<Value> functions_;  // by name
  std::vector<Value> stack_;
  std::vector<Value> loops_;
  std::vector<Frame> frames_;
  std::vector<std::string> captures_;  // where what is printed goes: to the last
  std::vector<Ref<Space>> spaces_;     // may hold one another: emptied at the end
  std::vector<Ref<Scope>> scopes_;     // with macros in them, which hold them
  Ref<Scope> scope_;
  size_t at_ = 0;
  size_t printed_ = 0;
};

}  // namespace aerie::text::chat

// A template, read: instructions for a machine with a stack of values. Nesting costs its runner no stack of the thread's.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/text/template/value.h"

namespace aerie::text::chat {

enum class Op : uint8_t {
  text,             // print texts[a]
  print,            // v ->
  constant,         // -> constants[a]
  load,             // -> variable a
  store,            // v -> : variable a of the innermost scope
  store_attribute,  // v -> : attribute b of variable a
  unpack,           // v -> its n items, the first on top
  pop,
  jump,             // by a
  jump_if_false,    // v ->
  and_jump,         // v -> v and by a where it is false; else v ->
  or_jump,
  jump_if_given,    // where variable b has been given
  negate,
  plus,
  invert,           // not
  binary,           // x y -> x (operation id) y
  compare,          // x y -> x (comparison id) y
  compare_chain,    // x y -> y where it holds; else False, and by a
  attribute,        // v -> v.a
  item,             // v key -> v[key]
  slice,            // v start stop step -> v[start:stop:step]; absent: not said
  absent,
  list,             // n values -> list
  tuple,
  dict,             // n keys and values ->
  call,             // callee n values, those of names[a] -> result; id 1: the last of them is a list of more
  filter,           // the same with a filter in place of the callee
  test,
  loop_begin,       // v ->
  loop_next,        // -> the next value; or, at the end, by a
  loop_end,
  loop_empty,       // the loop saw no value -> True; else False
  collect,          // keep the loop's value
  collect_end,      // -> list of those kept; the loop is over
  bind_loop,        // the variable "loop" of the innermost scope
  scope_begin,
  scope_end,
  capture_begin,    // what is printed goes to a text
  capture_end,      // -> that text
  refuse,           // always, with texts[a]: what may never be reached
  macro,            // -> macros[a]
  end_macro,        // with what it printed
  end,
};

enum class Binary : uint8_t { add, subtract, multiply, divide, floor_divide, remainder, power, concat };
enum class Compare : uint8_t { equal, not_equal, less, less_equal, greater, greater_equal, in, not_in };

struct Instruction {
  Op op;
  uint8_t id;
  uint16_t n;
  int32_t a;
  uint32_t b;
  uint32_t line;
};

struct MacroCode {
  std::string_view name;
  std::vector<uint32_t> arguments;  // names
  uint32_t begin = 0;               // instruction
  bool takes_caller = false, takes_more = false, takes_named = false;  // by "caller", "varargs", "kwargs" in it
};

struct Program {
  std::string source;                 // what texts and names are views of
  std::deque<std::string> strings;    // those with escapes
  std::vector<Instruction> code;
  std::vector<std::string_view> texts;
  std::vector<Value> constants;       // strings without owner, numbers: nothing that is counted
  std::vector<std::string_view> names;
  std::unordered_map<std::string_view, uint32_t> name_ids;
  std::vector<std::vector<uint32_t>> name_lists;  // of keyword arguments
  std::vector<MacroCode> macros;
};

}  // namespace aerie::text::chat

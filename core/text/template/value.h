// The values of a template: those of Python that chat templates know.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/text/template/heap.h"

namespace aerie::text::chat {

enum class Kind : uint8_t {
  absent,     // of an argument: not given
  undefined,  // text: the name of what was looked for
  none,
  boolean,
  integer,
  number,
  string,
  list,
  tuple,
  range,      // range(...): a list but for how it is printed
  view,       // of a dict's keys, values or items: neither indexed nor printed
  generator,  // what a filter yields: read once
  dict,
  space,      // namespace(): the only thing that changes
  loop,       // the variable "loop"
  macro,
  function,   // one of the engine's
  method,     // of a value: "text".strip
};

struct List;
struct Dict;

class Value {
 public:
  Value() = default;  // absent
  static Value undefined(std::string_view name = {}, Ref<Object> owner = {}) {
    Value v(Kind::undefined);
    v.text_ = name;
    v.object_ = std::move(owner);
    return v;
  }
  static Value none() { return Value(Kind::none); }
  static Value boolean(bool truth) {
    Value v(Kind::boolean);
    v.integer_ = truth;
    return v;
  }
  static Value integer(int64_t i) {
    Value v(Kind::integer);
    v.integer_ = i;
    return v;
  }
  static Value number(double d) {
    Value v(Kind::number);
    v.number_ = d;
    return v;
  }
  // `owner` keeps the bytes; none: the template does.
  static Value string(std::string_view text, Ref<Object> owner = {}) {
    Value v(Kind::string);
    v.text_ = text;
    v.object_ = std::move(owner);
    return v;
  }
  static Value string(Heap* heap, std::string text);
  static Value of(Kind kind, Ref<Object> object) {
    Value v(kind);
    v.object_ = std::move(object);
    return v;
  }
  static Value function(int64_t id) {
    Value v(Kind::function);
    v.integer_ = id;
    return v;
  }

  Kind kind() const { return kind_; }
  bool is(Kind k) const { return kind_ == k; }
  bool given() const { return kind_ != Kind::absent; }
  bool is_undefined() const { return kind_ == Kind::undefined; }
  bool is_string() const { return kind_ == Kind::string; }
  bool is_whole() const { return kind_ == Kind::integer || kind_ == Kind::boolean; }  // Python's bool is an int
  bool is_number() const { return is_whole() || kind_ == Kind::number; }
  bool is_sequence() const { return kind_ == Kind::list || kind_ == Kind::tuple || kind_ == Kind::range; }
  bool has_items() const { return is_sequence() || kind_ == Kind::view || kind_ == Kind::generator; }

  int64_t as_integer() const { return integer_; }
  double as_number() const { return kind_ == Kind::number ? number_ : static_cast<double>(integer_); }
  std::string_view text() const { return text_; }
  const Ref<Object>& object() const { return object_; }
  const List& list() const;  // has_items()
  const Dict& dict() const;
  Value part(std::string_view text) const {  // of a string
    Value v = string(text, object_);
    v.marked_ = marked_;
    return v;
  }

  // What `safe` has marked: adding to it would escape in Python.
  bool marked() const { return marked_; }
  void mark() { marked_ = true; }

  bool truth() const;
  uint32_t depth() const { return object_ ? object_->depth() : 0; }
  const char* type_name() const;  // as Python has it

 private:
  explicit Value(Kind kind) : kind_(kind) {}

  Kind kind_ = Kind::absent;
  bool marked_ = false;
  union {
    int64_t integer_ = 0;
    double number_;
  };
  std::string_view text_;
  Ref<Object> object_;
};

struct Text final : Object {
  Text(Heap* heap, std::string b) : Object(heap), bytes(std::move(b)) { charge(bytes.capacity()); }
  const std::string bytes;
};

struct List final : Object {
  explicit List(Heap* heap) : Object(heap) {}
  uint32_t depth() const override { return depth_; }
  void add(Value v);
  std::vector<Value> items;
  size_t read = 0;  // of a generator: how many of them

 private:
  uint32_t depth_ = 1;
};

struct Dict final : Object {
  explicit Dict(Heap* heap) : Object(heap) {}
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
  uint32_t depth() const override { return depth_; }
  void set(const Value& key, Value value);
  void clear();
  std::vector<std::pair<Value, Value>> members;  // in order

 private:
  uint32_t depth_ = 1;
  std::unordered_map<std::string_view, uint32_t> by_text_;  // of many; the keys hold the texts
};

struct Space final : Object {
  explicit Space(Heap* heap) : Object(heap), attributes(make<Dict>(heap)) {}
  Ref<Dict> attributes;
};

struct Method final : Object {
  Method(Heap* heap, Value v, uint32_t i) : Object(heap), self(std::move(v)), id(i) {}
  uint32_t depth() const override { return self.depth() + 1; }
  const Value self;
  const uint32_t id;
};

inline const List& Value::list() const { return static_cast<const List&>(*object_); }
inline const Dict& Value::dict() const { return static_cast<const Dict&>(*object_); }

inline Value list_value(Kind kind, Ref<List> list) { return Value::of(kind, Ref<Object>(list.get())); }
inline Value dict_value(Ref<Dict> dict) { return Value::of(Kind::dict, Ref<Object>(dict.get())); }
Value pair_of(Heap* heap, Value a, Value b);  // a tuple

// Python's ==. Values may be large: it is charged.
bool equal(Heap* heap, const Value& a, const Value& b);
bool hashable(const Value& v);
// Below 0, 0, above 0; an error where Python has no order.
Result<int> order(Heap* heap, const Value& a, const Value& b);

// "'x' is undefined".
Status undefined_error(const Value& v);
Status type_error(const std::string& what);

// All that a for loop over v would see. A generator is read to its end.
Result<Ref<List>> iterate(Heap* heap, const Value& v);

}  // namespace aerie::text::chat

// + - * / // % ** ~, comparisons and "in".
#include <cmath>

#include "core/text/template/builtins.h"
#include "core/text/template/print.h"

namespace aerie::text::chat {
namespace {

Status too_large() { return error(Code::unsupported, "whole numbers beyond 64 bits are not supported"); }

Status refuse(const char* sign, const Value& a, const Value& b) {
  for (const Value* v : {&a, &b})
    if (v->is_undefined()) return undefined_error(*v);
  return type_error(std::string("'") + sign + "' is not for '" + a.type_name() + "' and '" + b.type_name() + "'");
}

Status whole(Binary op, int64_t a, int64_t b, Value* out) {
  int64_t r = 0;
  bool over = false;
  switch (op) {
    case Binary::add: over = __builtin_add_overflow(a, b, &r); break;
    case Binary::subtract: over = __builtin_sub_overflow(a, b, &r); break;
    case Binary::multiply: over = __builtin_mul_overflow(a, b, &r); break;
    case Binary::floor_divide:
    case Binary::remainder:
      if (b == 0) return type_error("a division by zero");
      if (b == -1) {
        over = op == Binary::floor_divide && a == INT64_MIN;
        r = op == Binary::floor_divide && !over ? -a : 0;
      } else {  // rounded down, unlike C
        r = a / b;
        const int64_t rest = a % b;
        const bool down = rest != 0 && (rest < 0) != (b < 0);
        r = op == Binary::floor_divide ? r - down : rest + (down ? b : 0);
      }
      break;
    case Binary::power: {
      if (b < 0) {
        if (a == 0) return type_error("zero to a negative power");
        *out = Value::number(std::pow(static_cast<double>(a), static_cast<double>(b)));
        return {};
      }
      r = 1;
      for (; b > 0 && !over && (a < -1 || a > 1 || b < 4); --b) over = __builtin_mul_overflow(r, a, &r);
      if (b > 0 && !over) r = a == 1 || a == 0 ? a : b % 2 == 0 ? r : -r;
      break;
    }
    default: break;
  }
  if (over) return too_large();
  *out = Value::integer(r);
  return {};
}

Status real(Binary op, double a, double b, Value* out) {
  if (b == 0 && (op == Binary::divide || op == Binary::floor_divide || op == Binary::remainder)) return type_error("a division by zero");
  double r = 0;
  switch (op) {
    case Binary::add: r = a + b; break;
    case Binary::subtract: r = a - b; break;
    case Binary::multiply: r = a * b; break;
    case Binary::divide: r = a / b; break;
    case Binary::floor_divide:
    case Binary::remainder: {  // as CPython's float_divmod
      double rest = std::fmod(a, b);
      double quotient = (a - rest) / b;
      if (rest != 0 && (b < 0) != (rest < 0)) {
        rest += b;
        quotient -= 1;
      } else if (rest == 0) {
        rest = std::copysign(0.0, b);
      }
      double floor = quotient != 0 ? std::floor(quotient) : std::copysign(0.0, a / b);
      if (quotient - floor > 0.5) floor += 1;
      r = op == Binary::remainder ? rest : floor;
      break;
    }
    case Binary::power:
      if ((a < 0 && b != std::floor(b)) || (a == 0 && b < 0)) return error(Code::unsupported, "such a power is not supported");
      r = std::pow(a, b);
      if (std::isinf(r) && !std::isinf(a) && !std::isinf(b)) return type_error("a number beyond 1.7e308");
      break;
    default: break;
  }
  *out = Value::number(r);
  return {};
}

Status repeat(Context& c, const Value& v, int64_t n, Value* out) {
  if (n < 0) n = 0;
  const auto times = static_cast<uint64_t>(n);
  const uint64_t size = v.is_string() ? v.text().size() : v.list().items.size() * sizeof(Value);
  if (size == 0) {
    *out = v;
    return {};
  }
  if (times > kMaxLiveBytes / size || !c.heap->has_room(times * size)) return error(Code::limit, "a value is repeated too often");
  c.heap->spend(times * size / 16);
  if (v.is_string()) {
    std::string text;
    text.reserve(times * size);
    for (uint64_t i = 0; i < times; ++i) text += v.text();
    *out = Value::string(c.heap, std::move(text));
    return {};
  }
  Ref<List> list = make<List>(c.heap);
  for (uint64_t i = 0; i < times; ++i)
    for (const Value& item : v.list().items) list->add(item);
  *out = list_value(v.kind(), std::move(list));
  return {};
}

Status joined(Context& c, const Value& a, const Value& b, Value* out) {
  if (!c.heap->has_room(a.text().size() + b.text().size())) return c.heap->status();
  c.heap->spend((a.text().size() + b.text().size()) / 64);
  std::string text;
  text.reserve(a.text().size() + b.text().size());
  (text += a.text()) += b.text();
  *out = Value::string(c.heap, std::move(text));
  return {};
}

// What is added to a marked text is escaped, as in Python's MarkupSafe, and what comes out is marked.
Status marked_sum(Context& c, Binary op, const Value& a, const Value& b, Value* out) {
  if (op != Binary::add || !a.is_string() || !b.is_string())
    return error(Code::unsupported, "what \"safe\" has marked can be printed, or added to a text, only");
  std::string text;
  for (const Value* v : {&a, &b}) {
    c.heap->spend(v->text().size() / 16);
    for (const char ch : v->text()) {
      if (v->marked()) text += ch;
      else if (ch == '&') text += "&amp;";
      else if (ch == '<') text += "&lt;";
      else if (ch == '>') text += "&gt;";
      else if (ch == '\'') text += "&#39;";
      else if (ch == '"') text += "&#34;";
      else text += ch;
    }
  }
  *out = Value::string(c.heap, std::move(text));
  out->mark();
  return {};
}

const char* sign_of(Binary op) {
  constexpr const char* kSigns[] = {"+", "-", "*", "/", "//", "%", "**", "~"};
  return kSigns[static_cast<size_t>(op)];
}

}  // namespace

Status binary(Context& c, Binary op, const Value& a, const Value& b, Value* out) {
  if (op == Binary::concat) {
    AERIE_ASSIGN(const Value x, text_of(c.heap, a));
    AERIE_ASSIGN(const Value y, text_of(c.heap, b));
    return joined(c, x, y, out);
  }
  if (a.marked() || b.marked()) return marked_sum(c, op, a, b, out);
  if (a.is_number() && b.is_number()) {
    const bool wholes = a.is_whole() && b.is_whole() && op != Binary::divide;
    return wholes ? whole(op, a.as_integer(), b.as_integer(), out) : real(op, a.as_number(), b.as_number(), out);
  }
  if (op == Binary::add && a.is_string() && b.is_string()) return joined(c, a, b, out);
  if (op == Binary::add && a.kind() == b.kind() && (a.is(Kind::list) || a.is(Kind::tuple))) {
    c.heap->spend(a.list().items.size() + b.list().items.size());
    Ref<List> list = make<List>(c.heap);
    for (const Value* v : {&a, &b})
      for (const Value& item : v->list().items) list->add(item);
    *out = list_value(a.kind(), std::move(list));
    return {};
  }
  if (op == Binary::multiply) {
    for (const auto& [v, n] : {std::pair{&a, &b}, {&b, &a}})
      if ((v->is_string() || v->is(Kind::list) || v->is(Kind::tuple)) && n->is_whole()) return repeat(c, *v, n->as_integer(), out);
  }
  if (op == Binary::remainder && a.is_string()) return percent_format(c, a.text(), b, out);
  return refuse(sign_of(op), a, b);
}

Status negative(const Value& v, bool minus, Value* out) {
  if (v.is_undefined()) return undefined_error(v);
  if (!v.is_number()) return type_error(std::string("'-' and '+' are not for '") + v.type_name() + "'");
  if (v.is(Kind::number)) {
    *out = Value::number(minus ? -v.as_number() : v.as_number());
    return {};
  }
  if (minus && v.as_integer() == INT64_MIN) return too_large();
  *out = Value::integer(minus ? -v.as_integer() : v.as_integer());
  return {};
}

Status contains(Context& c, const Value& item, const Value& in, bool* out) {
  *out = false;
  if (in.is_string()) {
    if (!item.is_string())
      return item.is_undefined() ? undefined_error(item)
                                 : type_error(std::string("a '") + item.type_name() + "' is not sought in a text");
    c.heap->spend(in.text().size() / 16);
    *out = in.text().find(item.text()) != std::string_view::npos;
    return {};
  }
  if (in.is(Kind::dict)) {
    if (!hashable(item)) return type_error(std::string("a '") + item.type_name() + "' is no key");
    *out = in.dict().find(item) != nullptr;
    return {};
  }
  if (in.is(Kind::generator)) {
    auto& list = static_cast<List&>(*in.object());
    while (!*out && list.read < list.items.size()) *out = equal(c.heap, list.items[list.read++], item);
    return {};
  }
  if (in.is_undefined()) return {};
  if (!in.has_items()) return type_error(std::string("'in' is not for '") + in.type_name() + "'");
  for (const Value& v : in.list().items) {
    *out = equal(c.heap, v, item);
    if (*out) break;
  }
  return {};
}

Status compare(Context& c, Compare op, const Value& a, const Value& b, bool* out) {
  if (op == Compare::in || op == Compare::not_in) {
    AERIE_TRY(contains(c, a, b, out));
    if (op == Compare::not_in) *out = !*out;
    return {};
  }
  if (op == Compare::equal || op == Compare::not_equal) {
    *out = equal(c.heap, a, b) == (op == Compare::equal);
    return {};
  }
  AERIE_ASSIGN(const int o, order(c.heap, a, b));
  *out = op == Compare::less ? o < 0 : op == Compare::less_equal ? o <= 0 : op == Compare::greater ? o > 0 : o >= 0;
  return {};
}

}  // namespace aerie::text::chat

// What stands behind "is".
#include <cmath>
#include <iterator>

#include "core/text/template/builtins.h"

namespace aerie::text::chat {
namespace {

using TestFunction = Status (*)(Context&, const Value&, const Arguments&, bool*);

Status by_kind(const Arguments& a, bool holds, bool* out) {
  AERIE_TRY(a.none("a test"));
  *out = holds;
  return {};
}

Status with_other(Context& c, const Value& v, const Arguments& a, Compare op, bool* out) {
  Value p[1];
  AERIE_TRY(a.bind("a test", {"other"}, 1, p));
  return compare(c, op, v, p[0], out);
}

Status divisible(Context& c, const Value& v, const Value& by, int64_t rest, bool* out) {
  Value r;
  AERIE_TRY(binary(c, Binary::remainder, v, by, &r));
  *out = equal(c.heap, r, Value::integer(rest));
  return {};
}

Status test_divisibleby(Context& c, const Value& v, const Arguments& a, bool* out) {
  Value p[1];
  AERIE_TRY(a.bind("divisibleby", {"num"}, 1, p));
  return divisible(c, v, p[0], 0, out);
}

Status test_sameas(Context&, const Value& v, const Arguments& a, bool* out) {
  Value p[1];
  AERIE_TRY(a.bind("sameas", {"other"}, 1, p));
  const Kind kind = v.kind();
  if (kind != p[0].kind()) return *out = false, Status();
  if (kind == Kind::none) return *out = true, Status();
  if (kind == Kind::boolean) return *out = v.truth() == p[0].truth(), Status();
  if (v.object() && !v.is_string()) return *out = v.object().get() == p[0].object().get(), Status();
  return error(Code::unsupported, std::string("sameas of '") + v.type_name() + "' is not supported");
}

#define KIND(condition) [](Context&, const Value& v, const Arguments& a, bool* out) { return by_kind(a, condition, out); }
#define OTHER(op) [](Context& c, const Value& v, const Arguments& a, bool* out) { return with_other(c, v, a, op, out); }
#define REST(n) \
  [](Context& c, const Value& v, const Arguments& a, bool* out) -> Status { \
    AERIE_TRY(a.none("a test"));                                          \
    return divisible(c, v, Value::integer(2), n, out);                    \
  }
struct Test {
  std::string_view name;
  TestFunction call;
};
constexpr Test kTests[] = {
    {"defined", KIND(!v.is_undefined())},
    {"undefined", KIND(v.is_undefined())},
    {"none", KIND(v.is(Kind::none))},
    {"boolean", KIND(v.is(Kind::boolean))},
    {"true", KIND(v.is(Kind::boolean) && v.truth())},
    {"false", KIND(v.is(Kind::boolean) && !v.truth())},
    {"integer", KIND(v.is(Kind::integer))},
    {"float", KIND(v.is(Kind::number))},
    {"number", KIND(v.is_number())},
    {"string", KIND(v.is_string())},
    {"mapping", KIND(v.is(Kind::dict))},
    {"iterable", KIND(v.has_items() || v.is_string() || v.is(Kind::dict) || v.is_undefined() || v.is(Kind::loop))},
    {"sequence", KIND(v.is_sequence() || v.is_string() || v.is(Kind::dict) || v.is_undefined())},
    {"callable", KIND(v.is(Kind::macro) || v.is(Kind::function) || v.is(Kind::method) || v.is_undefined())},
    {"odd", REST(1)},
    {"even", REST(0)},
    {"divisibleby", test_divisibleby},
    {"sameas", test_sameas},
    {"in", OTHER(Compare::in)},
    {"eq", OTHER(Compare::equal)},
    {"equalto", OTHER(Compare::equal)},
    {"==", OTHER(Compare::equal)},
    {"ne", OTHER(Compare::not_equal)},
    {"!=", OTHER(Compare::not_equal)},
    {"lt", OTHER(Compare::less)},
    {"lessthan", OTHER(Compare::less)},
    {"<", OTHER(Compare::less)},
    {"le", OTHER(Compare::less_equal)},
    {"<=", OTHER(Compare::less_equal)},
    {"gt", OTHER(Compare::greater)},
    {"greaterthan", OTHER(Compare::greater)},
    {">", OTHER(Compare::greater)},
    {"ge", OTHER(Compare::greater_equal)},
    {">=", OTHER(Compare::greater_equal)},
};
#undef KIND
#undef OTHER
#undef REST

}  // namespace

int test_id(std::string_view name) {
  for (size_t i = 0; i < std::size(kTests); ++i)
    if (kTests[i].name == name) return static_cast<int>(i);
  return -1;
}

Status apply_test(Context& c, int id, const Value& v, const Arguments& a, bool* out) { return kTests[id].call(c, v, a, out); }

}  // namespace aerie::text::chat

// range, dict, namespace, raise_exception, strftime_now.
#include <iterator>

#include "core/text/template/builtins.h"

namespace aerie::text::chat {
namespace {

constexpr int64_t kLongestRange = 100'000;  // jinja2's sandbox has the same

Status make_range(Context& c, const Arguments& a, Value* out) {
  if (a.named() > 0 || a.plain == 0 || a.plain > 3) return type_error("range wants one to three numbers");
  int64_t n[3] = {0, 0, 1};
  for (size_t i = 0; i < a.plain; ++i) AERIE_TRY(whole_number("range", a.values[i], &n[a.plain == 1 ? 1 : i]));
  const auto [begin, end, step] = n;
  if (step == 0) return type_error("range with step 0");
  Ref<List> list = make<List>(c.heap);
  for (int64_t i = begin; step > 0 ? i < end : i > end;) {
    if (list->items.size() == static_cast<size_t>(kLongestRange)) return error(Code::limit, "a range of more than 100000 numbers");
    list->add(Value::integer(i));
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  c.heap->spend(list->items.size());
  *out = list_value(Kind::range, std::move(list));
  return {};
}

Status fill(Context& c, const Arguments& a, const char* what, Dict* out) {
  if (a.plain > 1) return type_error(std::string(what) + " takes one value without a name");
  if (a.plain == 1 && a.values[0].is(Kind::dict)) {
    for (const auto& [key, value] : a.values[0].dict().members) out->set(key, value);
  } else if (a.plain == 1) {
    AERIE_ASSIGN(const Ref<List> pairs, iterate(c.heap, a.values[0]));
    for (const Value& pair : pairs->items) {
      AERIE_ASSIGN(const Ref<List> two, iterate(c.heap, pair));
      if (two->items.size() != 2 || !hashable(two->items[0])) return type_error(std::string(what) + " is made of pairs");
      out->set(two->items[0], two->items[1]);
    }
  }
  for (size_t i = 0; i < a.named(); ++i) out->set(Value::string(a.name(i)), a.named_value(i));
  c.heap->spend(out->members.size());
  return {};
}

Status make_dict(Context& c, const Arguments& a, Value* out) {
  Ref<Dict> dict = make<Dict>(c.heap);
  AERIE_TRY(fill(c, a, "dict", dict.get()));
  *out = dict_value(std::move(dict));
  return {};
}

Status make_namespace(Context& c, const Arguments& a, Value* out) {
  const Ref<Space> space = make<Space>(c.heap);
  AERIE_TRY(fill(c, a, "namespace", space->attributes.get()));
  *out = Value::of(Kind::space, Ref<Object>(space.get()));
  return {};
}

Status raise_exception(Context&, const Arguments& a, Value*) {
  Value p[1];
  AERIE_TRY(a.bind("raise_exception", {"message"}, 1, p));
  return type_error(p[0].is_string() ? std::string(p[0].text()) : std::string("the template says that this conversation is not for it"));
}

Status strftime_now(Context& c, const Arguments& a, Value* out) {
  Value p[1];
  AERIE_TRY(a.bind("strftime_now", {"format"}, 1, p));
  std::string_view form;
  AERIE_TRY(as_text("strftime_now", p[0], &form));
  std::string text;
  AERIE_TRY(format_time(form, c.now, &text));
  *out = Value::string(c.heap, std::move(text));
  return {};
}

template <const char* name>
Status unsupported(Context&, const Arguments&, Value*) {
  return error(Code::unsupported, std::string(name) + "() is not supported");
}
constexpr char kCycler[] = "cycler", kJoiner[] = "joiner", kLipsum[] = "lipsum", kSelf[] = "self";

struct Function {
  const char* name;
  Status (*call)(Context&, const Arguments&, Value*);
};
constexpr Function kFunctions[] = {
    {"range", make_range},
    {"dict", make_dict},
    {"namespace", make_namespace},
    {"raise_exception", raise_exception},
    {"strftime_now", strftime_now},
    {kCycler, unsupported<kCycler>},  // jinja2 has them
    {kJoiner, unsupported<kJoiner>},
    {kLipsum, unsupported<kLipsum>},
    {kSelf, unsupported<kSelf>},
};

}  // namespace

int function_id(std::string_view name) {
  for (size_t i = 0; i < std::size(kFunctions); ++i)
    if (kFunctions[i].name == name) return static_cast<int>(i);
  return -1;
}

Status call_function(Context& c, int64_t id, const Arguments& a, Value* out) { return kFunctions[id].call(c, a, out); }

}  // namespace aerie::text::chat

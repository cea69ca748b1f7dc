// sort, dictsort, unique, min, max, sum.
#include <algorithm>

#include "core/text/template/filters.h"
#include "core/text/template/python_text.h"

namespace aerie::text::chat {
namespace {

struct Keyed {
  Value key, value;
};

// What values are ordered by: an attribute, or some ("a,b"), where it is given; of texts the case does not count, unless it shall.
Status key_of(Context& c, const Value& v, const Value& attribute, bool case_sensitive, Value* out) {
  Value key = v;
  if (attribute.given() && !attribute.is(Kind::none)) {
    if (attribute.is_string() && attribute.text().find(',') != std::string_view::npos)
      return error(Code::unsupported, "to order by several attributes is not supported");
    AERIE_TRY(path_of(c, v, attribute, &key));
  }
  if (!case_sensitive && key.is_string()) {
    c.heap->spend(key.text().size());
    key = Value::string(c.heap, lower_case(key.text()));
  }
  *out = std::move(key);
  return {};
}

Status keyed(Context& c, const Value& v, const Value& attribute, bool case_sensitive, std::vector<Keyed>* out) {
  AERIE_ASSIGN(const Ref<List> items, iterate(c.heap, v));
  for (const Value& item : items->items) {
    Keyed k;
    k.value = item;
    AERIE_TRY(key_of(c, item, attribute, case_sensitive, &k.key));
    out->push_back(std::move(k));
  }
  return {};
}

// Equal ones stay in their order, backwards too.
Status sorted(Context& c, bool backwards, std::vector<Keyed>* items) {
  Status failed;
  // A merge sort of our own: one that is told of no order, when the comparison fails, must come to an end all the same.
  std::vector<Keyed> scratch(items->size());
  for (size_t width = 1; width < items->size() && failed.ok(); width *= 2) {
    for (size_t begin = 0; begin < items->size() && failed.ok(); begin += 2 * width) {
      const size_t middle = std::min(begin + width, items->size()), end = std::min(begin + 2 * width, items->size());
      size_t left = begin, right = middle, to = begin;
      while (left < middle && right < end) {
        const auto o = order(c.heap, (*items)[left].key, (*items)[right].key);
        if (!o.ok()) failed = o.status();
        const bool swap = o.ok() && (backwards ? *o < 0 : *o > 0);
        scratch[to++] = std::move((*items)[swap ? right++ : left++]);
      }
      while (left < middle) scratch[to++] = std::move((*items)[left++]);
      while (right < end) scratch[to++] = std::move((*items)[right++]);
    }
    items->swap(scratch);
    if (c.heap->exceeded()) return c.heap->status();
  }
  return failed;
}

}  // namespace

AERIE_CHAT_FILTER(filter_sort) {
  Value p[3];
  AERIE_TRY(a.bind("sort", {"reverse", "case_sensitive", "attribute"}, 0, p));
  std::vector<Keyed> items;
  AERIE_TRY(keyed(c, v, p[2], p[1].truth(), &items));
  AERIE_TRY(sorted(c, p[0].truth(), &items));
  Ref<List> list = make<List>(c.heap);
  for (Keyed& k : items) list->add(std::move(k.value));
  *out = list_value(Kind::list, std::move(list));
  return {};
}

AERIE_CHAT_FILTER(filter_dictsort) {
  Value p[3];
  AERIE_TRY(a.bind("dictsort", {"case_sensitive", "by", "reverse"}, 0, p));
  if (v.is_undefined()) return undefined_error(v);
  if (!v.is(Kind::dict)) return type_error(std::string("dictsort of a '") + v.type_name() + "'");
  const std::string_view by = p[1].is_string() ? p[1].text() : p[1].given() ? "?" : "key";
  if (by != "key" && by != "value") return type_error("dictsort: by is 'key' or 'value'");
  std::vector<Keyed> items;
  for (const auto& [key, value] : v.dict().members) {
    Keyed k;
    k.value = pair_of(c.heap, key, value);
    AERIE_TRY(key_of(c, by == "key" ? key : value, Value(), p[0].truth(), &k.key));
    items.push_back(std::move(k));
  }
  AERIE_TRY(sorted(c, p[2].truth(), &items));
  Ref<List> list = make<List>(c.heap);
  for (Keyed& k : items) list->add(std::move(k.value));
  *out = list_value(Kind::list, std::move(list));
  return {};
}

AERIE_CHAT_FILTER(filter_unique) {
  Value p[2];
  AERIE_TRY(a.bind("unique", {"case_sensitive", "attribute"}, 0, p));
  std::vector<Keyed> items;
  AERIE_TRY(keyed(c, v, p[1], p[0].truth(), &items));
  const Ref<Dict> seen = make<Dict>(c.heap);
  Ref<List> list = make<List>(c.heap);
  for (Keyed& k : items) {
    if (!hashable(k.key)) return type_error(std::string("unique: a '") + k.key.type_name() + "' is no key");
    if (seen->find(k.key) != nullptr) continue;
    seen->set(k.key, Value::none());
    list->add(std::move(k.value));
    if (c.heap->exceeded()) return c.heap->status();
  }
  *out = list_value(Kind::generator, std::move(list));
  return {};
}

Status filter_extreme(Context& c, const Value& v, const Arguments& a, Value* out, bool largest) {
  Value p[2];
  AERIE_TRY(a.bind(largest ? "max" : "min", {"case_sensitive", "attribute"}, 0, p));
  std::vector<Keyed> items;
  AERIE_TRY(keyed(c, v, p[1], p[0].truth(), &items));
  if (items.empty()) return *out = Value::undefined(largest ? "the largest of nothing" : "the smallest of nothing"), Status();
  size_t best = 0;
  for (size_t i = 1; i < items.size(); ++i) {
    AERIE_ASSIGN(const int o, order(c.heap, items[i].key, items[best].key));
    if (largest ? o > 0 : o < 0) best = i;
  }
  *out = items[best].value;
  return {};
}

AERIE_CHAT_FILTER(filter_sum) {
  Value p[2];
  AERIE_TRY(a.bind("sum", {"attribute", "start"}, 0, p));
  AERIE_ASSIGN(const Ref<List> items, iterate(c.heap, v));
  Value sum = p[1].given() ? p[1] : Value::integer(0);
  if (sum.is_string()) return type_error("sum: texts are joined, not summed");
  for (const Value& item : items->items) {
    Value value = item, next;
    if (p[0].given() && !p[0].is(Kind::none)) AERIE_TRY(path_of(c, item, p[0], &value));
    AERIE_TRY(binary(c, Binary::add, sum, value, &next));
    sum = std::move(next);
    if (c.heap->exceeded()) return c.heap->status();
  }
  *out = std::move(sum);
  return {};
}

}  // namespace aerie::text::chat

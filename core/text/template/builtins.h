// What a template finds there: filters, tests, methods of values, functions, operators.
#pragma once

#include <ctime>
#include <initializer_list>
#include <string_view>

#include "core/text/template/program.h"
#include "core/text/template/value.h"

namespace aerie::text::chat {

struct Context {
  Heap* heap;
  const Program& program;
  std::tm now;
};

// Of a call: values, and those with a name behind them.
struct Arguments {
  const Context* context = nullptr;
  const Value* values = nullptr;
  size_t plain = 0;
  const std::vector<uint32_t>* names = nullptr;  // of the rest; null: none

  size_t named() const { return names != nullptr ? names->size() : 0; }
  std::string_view name(size_t i) const { return context->program.names[(*names)[i]]; }
  const Value& named_value(size_t i) const { return values[plain + i]; }
  const Value* find(std::string_view name) const;
  // Values to the parameters of these names, those not given stay absent. The first `required` must be.
  Status bind(std::string_view what, std::initializer_list<std::string_view> parameters, size_t required, Value* out) const;
  Status none(std::string_view what) const { return bind(what, {}, 0, nullptr); }
};

// -1: not supported.
int filter_id(std::string_view name);
int test_id(std::string_view name);
int function_id(std::string_view name);

Status apply_filter(Context& context, int id, const Value& self, const Arguments& arguments, Value* out);
Status apply_test(Context& context, int id, const Value& self, const Arguments& arguments, bool* out);
Status call_function(Context& context, int64_t id, const Arguments& arguments, Value* out);
Status call_method(Context& context, const Method& method, const Arguments& arguments, Value* out);

Status binary(Context& context, Binary op, const Value& a, const Value& b, Value* out);
Status compare(Context& context, Compare op, const Value& a, const Value& b, bool* out);
Status negative(const Value& v, bool minus, Value* out);
Status contains(Context& context, const Value& item, const Value& in, bool* out);

Status attribute_of(Context& context, const Value& v, std::string_view name, Value* out);  // v.name
Status item_of(Context& context, const Value& v, const Value& key, Value* out);            // v[key]
Status slice_of(Context& context, const Value& v, const Value& start, const Value& stop, const Value& step, Value* out);

// "..." % values, and "...".format(values).
Status percent_format(Context& context, std::string_view form, const Value& values, Value* out);
Status brace_format(Context& context, std::string_view form, const Arguments& arguments, Value* out);
Status format_time(std::string_view form, const std::tm& time, std::string* out);

// Parameters.
Status whole_number(std::string_view what, const Value& v, int64_t* out);
Status as_text(std::string_view what, const Value& v, std::string_view* out);  // of a string alone

}  // namespace aerie::text::chat

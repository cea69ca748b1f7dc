#include "core/text/grammar/schema_value.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "core/text/grammar/schema_reader.h"

namespace aerie::text::grammar {
namespace {

class SchemaValueBuilder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  using Kind = SchemaValue::Kind;
  SchemaValueBuilder(SchemaValue* root, Status* status) : root_(root), status_(status) {}

  bool null() override { return place(Kind::null) != nullptr; }
  bool boolean(bool v) override { return place(Kind::boolean)->truth = v, true; }
  bool number_integer(number_integer_t v) override {
    SchemaValue* at = place(Kind::integer);
    at->integer = v;
    at->number = static_cast<double>(v);
    at->text = std::to_string(v);
    return true;
  }
  bool number_unsigned(number_unsigned_t v) override {
    if (v <= static_cast<uint64_t>(INT64_MAX)) return number_integer(static_cast<number_integer_t>(v));
    return number_float(static_cast<double>(v), std::to_string(v));
  }
  bool number_float(number_float_t v, const string_t& text) override {
    SchemaValue* at = place(Kind::number);
    at->number = v;
    at->text = text;
    return true;
  }
  bool string(string_t& v) override { return place(Kind::string)->text = std::move(v), true; }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return open(Kind::object); }
  bool start_array(size_t) override { return open(Kind::array); }
  bool key(string_t& v) override {
    open_.back()->keys.push_back(std::move(v));
    return true;
  }
  bool end_object() override {
    SchemaValue& object = *open_.back();
    open_.pop_back();
    object.by_key.resize(object.keys.size());
    std::iota(object.by_key.begin(), object.by_key.end(), 0u);
    std::sort(object.by_key.begin(), object.by_key.end(),
              [&](uint32_t a, uint32_t b) { return object.keys[a] < object.keys[b]; });
    for (size_t i = 1; i < object.by_key.size(); ++i) {
      const std::string& key = object.keys[object.by_key[i]];
      if (key == object.keys[object.by_key[i - 1]])
        return refuse(Code::bad_format, "schema: \"" + key + "\" is there twice in an object");
    }
    return true;
  }
  bool end_array() override {
    open_.pop_back();
    return true;
  }
  bool parse_error(size_t at, const std::string&, const nlohmann::json::exception& e) override {
    if (e.id == kOutOfRange) return refuse(Code::unsupported, "schema: " + path() + ": a number beyond 1.7e308 is not supported");
    return refuse(Code::bad_format, "schema: not JSON, from byte " + std::to_string(at) + " on");
  }

 private:
  static constexpr int kOutOfRange = 406;  // nlohmann's number for it
  // Of the value that comes next.
  std::string path() const {
    std::string out = "#";
    for (const SchemaValue* v : open_) {
      const size_t before = v->items.size() - (v != open_.back());  // the one that the next is in is there already
      out = child_path(out, v->is(Kind::array) ? std::to_string(before) : v->keys.back());
    }
    return out;
  }
  bool refuse(Code code, std::string what) {
    *status_ = error(code, std::move(what));
    return false;
  }
  SchemaValue* place(Kind kind) {
    SchemaValue* at = open_.empty() ? root_ : &open_.back()->items.emplace_back();
    at->kind = kind;
    return at;
  }
  bool open(Kind kind) {
    if (open_.size() == kMaxSchemaDepth)
      return refuse(Code::limit, "schema: nested above " + std::to_string(kMaxSchemaDepth) + " deep");
    open_.push_back(place(kind));
    return true;
  }

  SchemaValue* root_;
  Status* status_;
  std::vector<SchemaValue*> open_;
};

}  // namespace

const SchemaValue* SchemaValue::find(std::string_view key) const {
  const auto at =
      std::lower_bound(by_key.begin(), by_key.end(), key, [&](uint32_t i, std::string_view k) { return keys[i] < k; });
  return at != by_key.end() && keys[*at] == key ? &items[*at] : nullptr;
}

Result<SchemaValue> parse_schema_value(std::string_view json) {
  SchemaValue root;
  Status status;
  SchemaValueBuilder builder(&root, &status);
  if (!nlohmann::json::sax_parse(json.begin(), json.end(), &builder)) {
    AERIE_TRY(status);
    return error(Code::bad_format, "schema: not JSON");
  }
  return root;
}

}  // namespace aerie::text::grammar

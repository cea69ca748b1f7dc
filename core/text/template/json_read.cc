#include "core/text/template/json_read.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace aerie::text::chat {
namespace {

class ValueReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  ValueReader(Heap* heap, std::string what) : heap_(heap), what_(std::move(what)) {}

  bool null() override { return place(Value::none()); }
  bool boolean(bool v) override { return place(Value::boolean(v)); }
  bool number_integer(number_integer_t v) override { return place(Value::integer(v)); }
  bool number_unsigned(number_unsigned_t v) override {
    if (v > static_cast<uint64_t>(INT64_MAX)) return too_large();
    return place(Value::integer(static_cast<int64_t>(v)));
  }
  bool number_float(number_float_t v, const string_t& text) override {
    if (text.find_first_of(".eE") == std::string::npos) return too_large();
    return place(Value::number(v));
  }
  bool string(string_t& v) override { return place(Value::string(heap_, std::move(v))); }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return open(); }
  bool start_array(size_t) override { return open(); }
  bool key(string_t& v) override {
    open_.back().key = Value::string(heap_, std::move(v));
    return true;
  }
  bool end_object() override {
    Ref<Dict> dict = std::move(open_.back().dict);
    open_.pop_back();
    if (!dict) dict = make<Dict>(heap_);
    return place(dict_value(std::move(dict)));
  }
  bool end_array() override {
    Ref<List> list = std::move(open_.back().list);
    open_.pop_back();
    if (!list) list = make<List>(heap_);
    return place(list_value(Kind::list, std::move(list)));
  }
  bool parse_error(size_t at, const std::string&, const nlohmann::json::exception& e) override {
    if (e.id == kOutOfRange) return too_large();
    return refuse(Code::bad_format, "is not JSON, from byte " + std::to_string(at) + " on");
  }

  Value root;
  Status status;

 private:
  static constexpr int kOutOfRange = 406;  // nlohmann's number for it
  struct Level {
    Value key;  // of an object's next value
    Ref<Dict> dict;
    Ref<List> list;
  };
  bool refuse(Code code, const std::string& words) {
    status = error(code, what_ + ": " + words);
    return false;
  }
  bool too_large() { return refuse(Code::unsupported, "whole numbers beyond 64 bits, and others beyond 1.7e308, are not supported"); }
  bool open() {
    if (open_.size() == kMaxValueDepth - 1) return refuse(Code::limit, "nested above " + std::to_string(kMaxValueDepth - 1) + " deep");
    open_.emplace_back();
    return true;
  }
  bool place(Value v) {
    if (heap_->exceeded()) {
      status = heap_->status().at(what_);
      return false;
    }
    if (open_.empty()) {
      root = std::move(v);
      return true;
    }
    Level& level = open_.back();
    if (level.key.given()) {
      if (!level.dict) level.dict = make<Dict>(heap_);
      level.dict->set(level.key, std::move(v));  // of two of a name the last counts
    } else {
      if (!level.list) level.list = make<List>(heap_);
      level.list->add(std::move(v));
    }
    return true;
  }

  Heap* heap_;
  std::string what_;
  std::vector<Level> open_;
};

}  // namespace

Result<Value> read_json(Heap* heap, const char* what, std::string_view json) {
  ValueReader reader(heap, what);
  if (!nlohmann::json::sax_parse(json.begin(), json.end(), &reader)) {
    AERIE_TRY(reader.status);
    return error(Code::bad_format, std::string(what) + ": is not JSON");
  }
  return std::move(reader.root);
}

}  // namespace aerie::text::chat

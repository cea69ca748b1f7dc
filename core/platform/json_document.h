// A JSON text as a tree of values that can be thrown away when memory has run out. nlohmann's own destructor is iterative
// and takes memory to flatten a tree: a caller that has none left would be ended by an exception out of a destructor. Here
// the tree is built leaf by leaf, and taken apart from its leaves up, which takes none.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace aerie::platform {

class JsonDocument {
 public:
  JsonDocument() = default;
  // root() is "discarded" when the text is not JSON, or nested deeper than anything we read.
  explicit JsonDocument(std::string_view text) {
    try {
      Builder builder(&root_, &twice_);
      if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) throw_away();
    } catch (...) {
      take_apart(&root_);
      throw;
    }
  }
  ~JsonDocument() { take_apart(&root_); }
  JsonDocument(JsonDocument&& other) noexcept : root_(std::move(other.root_)), twice_(std::move(other.twice_)) {}
  JsonDocument& operator=(JsonDocument&& other) noexcept {
    take_apart(&root_);
    root_ = std::move(other.root_);
    twice_ = std::move(other.twice_);
    return *this;
  }
  const nlohmann::json& root() const { return root_; }
  // The first key that the outermost object has twice (its last value stands); empty: there is none.
  const std::string& given_twice() const { return twice_; }

 private:
  using Json = nlohmann::json;
  static constexpr size_t kMaxDepth = 64;

  class Builder final : public nlohmann::json_sax<Json> {
   public:
    Builder(Json* root, std::string* twice) : root_(root), twice_(twice) { open_.reserve(kMaxDepth); }
    bool null() override { return place(Json()); }
    bool boolean(bool v) override { return place(Json(v)); }
    bool number_integer(number_integer_t v) override { return place(Json(v)); }
    bool number_unsigned(number_unsigned_t v) override { return place(Json(v)); }
    bool number_float(number_float_t v, const string_t&) override { return place(Json(v)); }
    bool string(string_t& v) override { return place(Json(std::move(v))); }
    bool binary(binary_t&) override { return false; }
    bool start_object(size_t) override { return place(Json(Json::value_t::object)); }
    bool start_array(size_t) override { return place(Json(Json::value_t::array)); }
    bool key(string_t& v) override {
      if (open_.size() == 1 && twice_->empty() && root_->contains(v)) *twice_ = v;
      key_ = std::move(v);
      return true;
    }
    bool end_object() override { return close(); }
    bool end_array() override { return close(); }
    bool parse_error(size_t, const std::string&, const Json::exception&) override { return false; }

   private:
    bool place(Json value) {
      Json* at = root_;
      if (!open_.empty()) {
        Json& parent = *open_.back();
        if (parent.is_array()) parent.push_back(nullptr);
        at = parent.is_array() ? &parent.back() : &parent[key_];
        take_apart(at);  // a key given before
      }
      *at = std::move(value);
      if (!at->is_structured()) return true;
      if (open_.size() == kMaxDepth) return false;
      open_.push_back(at);
      return true;
    }
    bool close() {
      open_.pop_back();
      return true;
    }

    Json* root_;
    std::string* twice_;
    std::vector<Json*> open_;
    std::string key_;
  };

  void throw_away() {
    take_apart(&root_);
    root_ = Json(Json::value_t::discarded);
  }
  static void take_apart(Json* j) noexcept {
    if (!j->is_structured()) return;
    for (Json& child : *j) take_apart(&child);
    j->clear();
  }

  Json root_;
  std::string twice_;
};

}  // namespace aerie::platform

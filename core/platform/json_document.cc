#include "core/platform/json_document.h"

#include <vector>

namespace aerie::platform {

class JsonDocument::Builder final : public nlohmann::json_sax<Json> {
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

  static constexpr size_t kMaxDepth = 64;

  Json* root_;
  std::string* twice_;
  std::vector<Json*> open_;
  std::string key_;
};

JsonDocument::JsonDocument(std::string_view text) {
  try {
    Builder builder(&root_, &twice_);
    if (nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) return;
    take_apart(&root_);
    root_ = Json(Json::value_t::discarded);
  } catch (...) {
    take_apart(&root_);
    throw;
  }
}

}  // namespace aerie::platform

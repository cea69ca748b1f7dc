// A description as text for people and as JSON: named leaves, lists and groups, in order. Unlike a tree of
// nlohmann's it can be thrown away when memory has run out (core/platform/json_document.h).
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace aerie {

class Description {
 public:
  static Description group() { return Description(Kind::group); }
  static Description list() { return Description(Kind::list); }
  Description(const char* text) : leaf_(text), json_(json(leaf_)) {}                 // NOLINT: implicit, a leaf
  Description(const std::string& text) : leaf_(text), json_(json(leaf_)) {}          // NOLINT
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  Description(T value) : leaf_(json(value)), json_(leaf_) {}                         // NOLINT
  Description(const std::vector<int32_t>& values) : Description(Kind::list) {        // NOLINT
    for (const int32_t v : values) add(v);
  }

  Description& add(Description item) { return add({}, std::move(item)); }  // to a list
  Description& add(std::string name, Description item) {                   // to a group
    items_.emplace_back(std::move(name), std::move(item));
    return *this;
  }
  bool is_group() const { return kind_ == Kind::group; }
  const std::vector<std::pair<std::string, Description>>& items() const { return items_; }
  const Description& operator[](size_t i) const { return items_[i].second; }

  // On one line, as people read it: text without quotes.
  std::string plain() const { return kind_ == Kind::leaf ? leaf_ : text(-1); }
  // Two more blanks for each level.
  std::string text(int indent = 0) const {
    if (kind_ == Kind::leaf) return json_;
    const char* const ends = is_group() ? "{}" : "[]";
    if (items_.empty()) return ends;
    std::string line;
    if (indent >= 0) line.append(1, '\n').append(static_cast<size_t>(indent), ' ');
    std::string out;
    for (const auto& [name, item] : items_) {
      out += out.empty() ? ends[0] : ',';
      out += line;
      if (indent >= 0) out += "  ";
      if (is_group()) out += json(name) + (indent < 0 ? ":" : ": ");
      out += item.text(indent < 0 ? indent : indent + 2);
    }
    return out + line + ends[1];
  }

 private:
  enum class Kind { leaf, list, group };
  explicit Description(Kind kind) : kind_(kind) {}
  template <class T>
  static std::string json(const T& leaf) {
    return nlohmann::json(leaf).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }

  Kind kind_ = Kind::leaf;
  std::string leaf_, json_;
  std::vector<std::pair<std::string, Description>> items_;
};

}  // namespace aerie

// A JSON text as a tree of values that can be thrown away when memory has run out. nlohmann's own destructor is iterative
// and takes memory to flatten a tree: a caller that has none left would be ended by an exception out of a destructor. Here
// the tree is built leaf by leaf, and taken apart from its leaves up, which takes none.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

namespace aerie::platform {

class JsonDocument {
 public:
  JsonDocument() = default;
  // root() is "discarded" when the text is not JSON, or nested deeper than anything we read.
  explicit JsonDocument(std::string_view text);
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
  class Builder;
  static void take_apart(Json* j) noexcept {
    if (!j->is_structured()) return;
    for (Json& child : *j) take_apart(&child);
    j->clear();
  }

  Json root_;
  std::string twice_;
};

}  // namespace aerie::platform

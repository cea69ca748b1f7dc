// JSON from outside: bounded, no exceptions, no key twice, wrong types are errors and not defaults.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/platform/json_document.h"
#include "kernels/status.h"

namespace aerie {

// An object; a key given twice at its top level is an error (which one would another reader believe?).
Result<platform::JsonDocument> parse_json(std::span<const uint8_t> bytes);
Result<platform::JsonDocument> read_json(const std::string& path, uint64_t max_bytes = 64u << 20);

// nlohmann's own == copies the text, and must not fail.
inline bool is_text(const nlohmann::json& v, std::string_view text) {
  return v.is_string() && v.get_ref<const std::string&>() == text;
}

inline Status unsupported_key(const std::string& key, const std::string& what) { return error(Code::unsupported, key + ": " + what); }

// A config.json. Messages are "KEY: what". A null value counts as absent, as it does in transformers. What the document does not say
// the objects named `inner` in it may say. Nothing is copied: nlohmann's destructor may throw where memory has run out.
class ConfigReader {
 public:
  explicit ConfigReader(const nlohmann::json& j, std::initializer_list<const char*> inner = {});  // at most two
  bool contains(const char* key) const { return j_.contains(key); }  // null or not
  bool has(const char* key) const { return find(key) != nullptr; }
  const nlohmann::json& at(const char* key) const { return *find(key); }  // that it has
  Status integer(const char* key, int32_t* out) const;  // required
  Status integer(const char* key, int32_t* out, int32_t fallback) const;
  Status number(const char* key, float* out, float fallback) const;
  Status boolean(const char* key, bool* out, bool fallback) const;
  // One integer or a list of them; absent: empty.
  Status integers(const char* key, std::vector<int32_t>* out) const;

 private:
  const nlohmann::json* find(const char* key) const;

  const nlohmann::json& j_;
  const nlohmann::json* inner_[2] = {};
};

}  // namespace aerie

#include "core/import/json.h"

#include <cmath>
#include <limits>

#include "core/import/lfs_pointer.h"
#include "core/platform/file.h"

namespace aerie {

using nlohmann::json;

namespace {
Status bad(const char* key, const char* what) { return error(Code::bad_format, std::string(key) + ": " + what); }

bool to_int32(const json& v, int32_t* out) {
  if (v.is_number_unsigned() ? v.get<uint64_t>() > INT32_MAX
                             : !v.is_number_integer() || v.get<int64_t>() < INT32_MIN || v.get<int64_t>() > INT32_MAX)
    return false;
  *out = v.get<int32_t>();
  return true;
}
}  // namespace

Result<platform::JsonDocument> parse_json(std::span<const uint8_t> bytes) {
  platform::JsonDocument j({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!j.root().is_object()) return error(Code::bad_format, "not a JSON object");
  if (!j.given_twice().empty()) return error(Code::bad_format, j.given_twice() + ": given twice");
  return j;
}

Result<platform::JsonDocument> read_json(const std::string& path, uint64_t max_bytes) {
  AERIE_ASSIGN(const auto bytes, platform::read_file(path, max_bytes));
  AERIE_TRY(refuse_lfs_pointer(bytes).at(path));
  Result<platform::JsonDocument> j = parse_json(bytes);
  if (!j.ok()) return j.status().at(path);
  return j;
}

ConfigReader::ConfigReader(const json& j, std::initializer_list<const char*> inner) : j_(j) {
  size_t n = 0;
  for (const char* name : inner)
    if (j.contains(name) && j[name].is_object() && n < std::size(inner_)) inner_[n++] = &j[name];
}

const json* ConfigReader::find(const char* key) const {
  for (const json* object : {&j_, inner_[0], inner_[1]}) {
    if (!object) continue;
    if (const auto it = object->find(key); it != object->end() && !it->is_null()) return &*it;
  }
  return nullptr;
}

Status ConfigReader::integer(const char* key, int32_t* out) const {
  if (!has(key)) return bad(key, "is missing");
  return to_int32(at(key), out) ? Status() : bad(key, "is not a 32-bit integer");
}

Status ConfigReader::integer(const char* key, int32_t* out, int32_t fallback) const {
  *out = fallback;
  return has(key) ? integer(key, out) : Status();
}

Status ConfigReader::number(const char* key, float* out, float fallback) const {
  *out = fallback;
  if (!has(key)) return {};
  if (!at(key).is_number()) return bad(key, "is not a number");
  const auto v = at(key).get<double>();
  if (!(std::fabs(v) <= std::numeric_limits<float>::max())) return bad(key, "is out of range");
  *out = static_cast<float>(v);
  return {};
}

Status ConfigReader::boolean(const char* key, bool* out, bool fallback) const {
  *out = fallback;
  if (!has(key)) return {};
  if (!at(key).is_boolean()) return bad(key, "is neither true nor false");
  *out = at(key).get<bool>();
  return {};
}

Status ConfigReader::integers(const char* key, std::vector<int32_t>* out) const {
  out->clear();
  if (!has(key)) return {};
  int32_t v = 0;
  if (to_int32(at(key), &v)) {
    out->push_back(v);
    return {};
  }
  if (!at(key).is_array()) return bad(key, "is neither an integer nor a list of integers");
  for (const json& item : at(key)) {
    if (!to_int32(item, &v)) return bad(key, "has an item that is not an integer");
    out->push_back(v);
  }
  return {};
}

}  // namespace aerie

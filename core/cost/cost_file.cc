// The file of a cost table. Whoever writes one by hand gets no further than a wrong prediction: every number is checked.
#include <xxhash.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/cost/cost_table.h"
#include "core/platform/file.h"
#include "core/platform/json_document.h"

namespace aerie {

using nlohmann::json;

namespace {

constexpr uint64_t kMaxBytes = 32u << 20;
constexpr size_t kMaxDrafters = 64;
constexpr char kMagic[] = "aerie-costs ";
constexpr char kVersion[] = "1";
constexpr size_t kHashDigits = 16;

std::string hash(std::string_view bytes) {
  char digits[kHashDigits + 1];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(XXH64(bytes.data(), bytes.size(), 0)));
  return digits;
}

Status bad(const std::string& field, const std::string& what) { return error(Code::bad_format, field + ": " + what); }

// An object's members in order, written at once: a tree of values would take memory to be thrown away (json_document.h).
class ObjectWriter {
 public:
  template <class T>
  ObjectWriter& add(const std::string& name, const T& leaf) { return add_text(name, text(leaf)); }
  ObjectWriter& add_text(const std::string& name, const std::string& value) {
    out_ += out_.empty() ? '{' : ',';
    out_ += text(name) + ":" + value;
    return *this;
  }
  std::string done() const { return out_.empty() ? "{}" : out_ + "}"; }

 private:
  template <class T>
  static std::string text(const T& leaf) { return json(leaf).dump(-1, ' ', false, json::error_handler_t::replace); }
  std::string out_;
};

std::string list(const std::string& members) { return std::string("[") + members + "]"; }

std::string points_json(const CostGrid& grid, const char* pass = nullptr) {
  std::string list;
  for (const CostPoint& p : grid.points()) {
    ObjectWriter o;
    o.add("batch", p.batch).add("context", p.context).add("rows", p.rows).add("ms", p.ms);
    o.add("low", p.low).add("high", p.high).add("samples", p.samples);
    if (pass) o.add("pass", pass);
    if (!list.empty()) list += ',';
    list += o.done();
  }
  return list;
}

Status read_string(const json& j, const char* field, std::string* out) {
  const auto at = j.find(field);
  if (at == j.end() || !at->is_string()) return bad(field, "is not a string");
  *out = at->get<std::string>();
  return {};
}
Status read_integer(const json& j, const char* field, int32_t* out) {
  const auto at = j.find(field);
  if (at == j.end() || !at->is_number_unsigned() || at->get<uint64_t>() > INT32_MAX) return bad(field, "is not a 31-bit number");
  *out = at->get<int32_t>();
  return {};
}
Status read_number(const json& j, const char* field, double* out) {
  const auto at = j.find(field);
  if (at == j.end() || !at->is_number()) return bad(field, "is not a number");
  *out = at->get<double>();
  return {};
}

// `pass`: only points of this kind; null: points that name none.
Result<CostGrid> read_grid(const json& list, const char* pass) {
  std::vector<CostPoint> points;
  for (const json& j : list) {
    if (!j.is_object()) return bad("point", "is not an object");
    if (pass) {
      std::string kind;
      AERIE_TRY(read_string(j, "pass", &kind));
      if (kind != "level" && kind != "root") return bad("pass", kind);
      if (kind != pass) continue;
    }
    CostPoint p;
    AERIE_TRY(read_integer(j, "batch", &p.batch));
    AERIE_TRY(read_integer(j, "context", &p.context));
    AERIE_TRY(read_integer(j, "rows", &p.rows));
    AERIE_TRY(read_number(j, "ms", &p.ms));
    AERIE_TRY(read_number(j, "low", &p.low));
    AERIE_TRY(read_number(j, "high", &p.high));
    AERIE_TRY(read_integer(j, "samples", &p.samples));
    points.push_back(p);
    if (points.size() > kMaxCostPoints) return bad("points", "too many");
  }
  return CostGrid::make(std::move(points));
}

Status read_drafter(const std::string& name, const json& points, const json& keys, DrafterCosts* out) {
  out->name = name;
  if (!points.is_array()) return bad("costs", "are not a list");
  const auto key = keys.find(name);
  if (key == keys.end() || !key->is_object()) return bad("drafter_keys", "this one has none");
  AERIE_TRY(read_string(*key, "plugin", &out->key.plugin));
  AERIE_TRY(read_string(*key, "package", &out->key.package));
  AERIE_TRY(read_string(*key, "weights", &out->key.weights));
  AERIE_ASSIGN(out->levels, read_grid(points, "level"));
  AERIE_ASSIGN(out->roots, read_grid(points, "root"));
  return {};
}

Result<CostTable> read_table(const json& j) {
  if (!j.is_object()) return bad("table", "is not a JSON object");
  CostTable t;
  AERIE_TRY(read_string(j, "version", &t.key.version));
  AERIE_TRY(read_string(j, "device", &t.key.device));
  AERIE_TRY(read_string(j, "isa", &t.key.isa));
  AERIE_TRY(read_integer(j, "threads", &t.key.threads));
  AERIE_TRY(read_string(j, "model", &t.key.model));
  AERIE_TRY(read_string(j, "weights", &t.key.weights));
  AERIE_TRY(read_string(j, "kv", &t.key.kv));
  const auto target = j.find("target"), drafters = j.find("drafters"), keys = j.find("drafter_keys");
  if (target == j.end() || !target->is_array() || target->empty()) return bad("target", "has no costs");
  if (drafters == j.end() || !drafters->is_object()) return bad("drafters", "is not an object");
  if (keys == j.end() || !keys->is_object()) return bad("drafter_keys", "is not an object");
  if (drafters->size() > kMaxDrafters) return bad("drafters", "more than " + std::to_string(kMaxDrafters));
  Result<CostGrid> grid = read_grid(*target, nullptr);
  if (!grid.ok()) return grid.status().at("target");
  t.target = std::move(*grid);
  for (const auto& [name, points] : drafters->items()) {
    DrafterCosts d;
    if (const Status s = read_drafter(name, points, *keys, &d); !s.ok()) return s.at("drafters: " + name);
    t.drafters.push_back(std::move(d));
  }
  return t;
}

// A model's package or somebody's notes are no place for costs: what gives way is a table, whole or not and of any version, or an
// empty file.
Status check_replaced(const std::string& path) {
  if (platform::path_kind(path) != platform::PathKind::file) return {};  // what is neither absent nor a file is not written over
  AERIE_ASSIGN(const auto there, platform::MappedFile::open(path));
  const auto bytes = there->bytes();
  if (bytes.empty() || std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()).starts_with(kMagic)) return {};
  return error(Code::invalid_argument, path + ": is there, and no cost table: it is left as it is");
}

}  // namespace

std::string cost_table_json(const CostTable& t) {
  ObjectWriter drafters, keys;
  for (const DrafterCosts& d : t.drafters) {
    std::string points = points_json(d.roots, "root");
    if (!points.empty() && !d.levels.points().empty()) points += ',';
    drafters.add_text(d.name, list(points + points_json(d.levels, "level")));
    keys.add_text(d.name, ObjectWriter().add("plugin", d.key.plugin).add("package", d.key.package).add("weights", d.key.weights).done());
  }
  ObjectWriter o;
  o.add("version", t.key.version).add("device", t.key.device).add("isa", t.key.isa).add("threads", t.key.threads);
  o.add("model", t.key.model).add("weights", t.key.weights).add("kv", t.key.kv);
  o.add_text("target", list(points_json(t.target))).add_text("drafters", drafters.done()).add_text("drafter_keys", keys.done());
  return o.done();
}

std::string encode_cost_table(const CostTable& table) {
  const std::string body = cost_table_json(table) + "\n";
  return std::string(kMagic) + kVersion + " " + hash(body) + "\n" + body;
}

Result<CostTable> decode_cost_table(std::span<const uint8_t> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with(kMagic)) return bad("magic", "this is not a cost table");
  const size_t line = text.find('\n');
  const std::string_view head = text.substr(sizeof kMagic - 1, line == text.npos ? text.npos : line - (sizeof kMagic - 1));
  const size_t space = head.find(' ');
  // The version comes first: another one may lay out the rest differently.
  if (head.substr(0, space) != kVersion)
    return error(Code::unsupported, "format version: " + std::string(head.substr(0, std::min<size_t>(space, 16))) + ", this build reads " +
                                        kVersion + "; measure again");
  if (line == text.npos || space == head.npos) return bad("checksum", "is missing");
  const std::string_view body = text.substr(line + 1);
  if (head.substr(space + 1) != hash(body)) return bad("checksum", "the file is damaged or cut short");
  return read_table(platform::JsonDocument(body).root());
}

Result<CostTable> load_cost_table(const std::string& path) {
  AERIE_ASSIGN(const auto bytes, platform::read_file(path, kMaxBytes));
  Result<CostTable> t = decode_cost_table(bytes);
  if (!t.ok()) return t.status().at(path);
  return t;
}

Status save_cost_table(const CostTable& table, const std::string& path) {
  AERIE_TRY(check_replaced(path));
  const std::string text = encode_cost_table(table);
  AERIE_ASSIGN(const auto file, platform::AtomicFile::create(path));
  AERIE_TRY(file->append({reinterpret_cast<const uint8_t*>(text.data()), text.size()}));
  return file->commit();
}

}  // namespace aerie

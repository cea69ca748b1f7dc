// From a JSON Schema to rules: each schema in it is one. What is not known for certain is refused by its path.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/text/grammar/json_rules.h"
#include "core/text/grammar/rule_builder.h"
#include "core/text/grammar/schema_value.h"
#include "kernels/status.h"

namespace aerie::text::grammar {

class SchemaReader {
 public:
  explicit SchemaReader(JsonLayout layout) : json_(&builder_, layout) {}
  Result<Program> read(std::string_view json);

 private:
  using Alternatives = std::vector<Sequence>;
  struct Node {
    const SchemaValue* schema;
    std::string path;
    uint32_t rule;
  };

  // The rule of a schema, which is read later: schemas that refer to each other cost no stack.
  Element rule_of(const SchemaValue& schema, const std::string& path);
  Status read_schema(const SchemaValue& s, const std::string& path, Alternatives* out);
  Status check_keywords(const SchemaValue& s, const std::string& path) const;
  Status alone(const SchemaValue& s, const std::string& path, std::string_view keyword) const;
  Status types_of(const SchemaValue& s, const std::string& path, uint32_t* types) const;

  Result<const SchemaValue*> target_of(const SchemaValue& ref, const std::string& path, std::string* at_path) const;
  Status reference(const SchemaValue& ref, const std::string& path, Alternatives* out);
  Status choices(const SchemaValue& list, const std::string& path, bool only_one, Alternatives* out);
  Status check_one_of(const SchemaValue& list, const std::string& path);
  // Whether no text of ours is valid for the other, as far as that is seen at once.
  bool avoids(const SchemaValue& ours, const SchemaValue& other, int depth);
  bool objects_avoid(const SchemaValue& ours, const SchemaValue& other, int depth);
  bool may_be_equal(const SchemaValue& a, const SchemaValue& b);
  Status constants(const SchemaValue& s, const std::string& path, uint32_t types, Alternatives* out);
  void constant(const SchemaValue& value, Sequence* out);

  Status object(const SchemaValue& s, const std::string& path, Alternatives* out);
  Status array(const SchemaValue& s, const std::string& path, Alternatives* out);
  Status string(const SchemaValue& s, const std::string& path, Alternatives* out);
  Status patterned_string(const SchemaValue& s, const std::string& path, Alternatives* out);
  Status integer(const SchemaValue& s, const std::string& path, Alternatives* out);
  Status number(const SchemaValue& s, const std::string& path, Alternatives* out);
  // How many of something: "minItems" and the like.
  static Status counts(const SchemaValue& s, const std::string& path, const char* min_key, const char* max_key, uint32_t* min,
                       uint32_t* max);

  SchemaValue root_;
  RuleBuilder builder_{"schema"};
  JsonRules json_;
  std::unordered_map<const SchemaValue*, uint32_t> rules_;
  std::vector<Node> to_read_;
  std::vector<std::pair<const SchemaValue*, std::string>> one_ofs_;  // to check when all is read
  int64_t comparisons_left_ = int64_t{1} << 22;                      // below a second; then nothing is seen any more
};

enum : uint32_t {
  kTypeNull = 1, kTypeBoolean = 2, kTypeInteger = 4, kTypeNumber = 8, kTypeString = 16, kTypeArray = 32, kTypeObject = 64,
  kAllTypes = 127
};

uint32_t type_of_value(const SchemaValue& v);
// "#/properties/name": what errors say. Short, whatever the names are.
std::string child_path(const std::string& path, std::string_view key);
Status schema_error(Code code, const std::string& path, const std::string& what);

}  // namespace aerie::text::grammar

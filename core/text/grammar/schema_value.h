// A JSON text with what nlohmann's tree does not keep: the order of an object's members, and numbers as they are written.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/status.h"

namespace aerie::text::grammar {

// Nested no deeper than kMaxSchemaDepth: functions may walk it by recursion, and its destructor does.
inline constexpr size_t kMaxSchemaDepth = 64;

struct SchemaValue {
  enum class Kind : uint8_t { null, boolean, integer, number, string, array, object };
  Kind kind = Kind::null;
  bool truth = false;
  int64_t integer = 0;
  double number = 0;                // of integers, too
  std::string text;                 // a string; a number as JSON has it
  std::vector<SchemaValue> items;   // of an array; an object's values, in order
  std::vector<std::string> keys;    // of an object, each once
  std::vector<uint32_t> by_key;     // its members, sorted by key

  bool is(Kind k) const { return kind == k; }
  bool is_number() const { return kind == Kind::integer || kind == Kind::number; }
  const SchemaValue* find(std::string_view key) const;  // null: not there
};

Result<SchemaValue> parse_schema_value(std::string_view json);

}  // namespace aerie::text::grammar

// CostTable: what one target and its drafters cost on one machine, and what it was measured with. docs/profiling.md.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/cost/cost_grid.h"

namespace aerie {

// What a table holds for. Any other value of any field may mean other costs.
struct CostKey {
  std::string version;  // of this library: kernels change
  std::string device;   // "cpu AMD EPYC 9654"
  std::string isa;      // "AVX3_DL"
  int32_t threads = 0;
  std::string model;    // fingerprint
  std::string weights;  // dtypes of the matrices, "int4+int8"
  std::string kv;       // dtype of the KV cache
};
// mismatch, naming the first field that differs.
Status check_key(const CostKey& measured, const CostKey& here);

struct DrafterKey {
  std::string plugin;   // id
  std::string package;  // fingerprint; empty: it has none
  std::string weights;
  bool operator==(const DrafterKey&) const = default;
};

struct DrafterCosts {
  std::string name;  // unique in its table: the plugin id, "#2" behind it for a second one
  DrafterKey key;
  CostGrid levels;   // a pass over n frontier nodes, below the first level; batch 1
  CostGrid roots;    // the first pass of a cycle: n committed tokens are observed with it; batch 1
};

struct CostTable {
  CostKey key;
  CostGrid target;  // a verify pass
  std::vector<DrafterCosts> drafters;

  // mismatch, saying what the table has, when this drafter is not in it.
  Result<const DrafterCosts*> find(const DrafterKey& drafter) const;
};

// The file: a line "aerie-costs VERSION XXH64\n", the hash being that of all bytes behind the line, then one JSON object.
std::string cost_table_json(const CostTable& table);
std::string encode_cost_table(const CostTable& table);
Result<CostTable> decode_cost_table(std::span<const uint8_t> bytes);
// Errors name the file and the field.
Result<CostTable> load_cost_table(const std::string& path);
// invalid_argument: what is there is something else, and stays.
Status save_cost_table(const CostTable& table, const std::string& path);

}  // namespace aerie

// Golden checkpoints of families, changed in their config.
#pragma once

#include <nlohmann/json.hpp>

#include "core/import/convert.h"
#include "unit/package/fixtures.h"

namespace aerie::test {

using nlohmann::json;

// A golden checkpoint with some of its config changed.
struct FamilyCheckpoint {
  Folder folder;
  std::vector<std::string> warnings;
  ConvertOptions options;
  json config;
  explicit FamilyCheckpoint(const std::string& name) : source(std::string(AERIE_SOURCE_DIR) + "/tests/golden/logits/" + name) {
    const Bytes bytes = slurp(source + "/config.json");
    config = json::parse(bytes.begin(), bytes.end());
    options.source = folder / "model";
    options.dtype = kernels::DType::f32;
    options.warnings = &warnings;
    options.tokenizer = kNoTokenizer;
    fs::create_directory(options.source);
    fs::copy_file(source + "/model.safetensors", options.source + "/model.safetensors");
  }
  Status run(const json& more = json::object(), std::initializer_list<const char*> without = {}) {
    json changed = config;
    for (const char* key : without) changed.erase(key);
    changed.update(more);
    spit(options.source + "/config.json", changed.dump());
    options.output = folder / (std::to_string(conversions_++) + ".aerie");  // Windows replaces no file that is mapped
    return convert(options);
  }
  std::shared_ptr<const Package> made(const json& more = json::object(), std::initializer_list<const char*> without = {}) {
    const Status s = run(more, without);
    EXPECT_TRUE(s.ok()) << s.message();
    auto p = Package::open(options.output);
    EXPECT_TRUE(p.ok()) << p.status().message();
    return p.ok() ? *p : nullptr;
  }
  std::string source;

 private:
  int conversions_ = 0;
};

}  // namespace aerie::test

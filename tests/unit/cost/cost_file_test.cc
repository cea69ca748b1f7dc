// The file: what goes in comes out; a changed byte, a cut, a foreign key is refused with a message that names the field.
#include <xxhash.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/temporary_folder.h"
#include "tests/unit/cost/cost_fixtures.h"

namespace aerie::cost_test {
namespace {

Result<CostTable> decode(const std::string& s) { return decode_cost_table({reinterpret_cast<const uint8_t*>(s.data()), s.size()}); }

bool same(const CostGrid& a, const CostGrid& b) {
  if (a.points().size() != b.points().size()) return false;
  for (size_t i = 0; i < a.points().size(); ++i) {
    const CostPoint &x = a.points()[i], &y = b.points()[i];
    if (x.batch != y.batch || x.context != y.context || x.rows != y.rows || x.ms != y.ms || x.low != y.low || x.high != y.high ||
        x.samples != y.samples)
      return false;
  }
  return true;
}

TEST(CostFile, RoundTrip) {
  const CostTable t = some_table();
  const test::TemporaryFolder folder;
  const std::string path = folder / "costs";
  ASSERT_TRUE(save_cost_table(t, path).ok());
  const Result<CostTable> back = load_cost_table(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_TRUE(check_key(back->key, t.key).ok());
  EXPECT_TRUE(same(back->target, t.target)) << "bit for bit";
  ASSERT_EQ(back->drafters.size(), 2u);
  for (const DrafterCosts& d : t.drafters) {
    const Result<const DrafterCosts*> found = back->find(d.key);
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_EQ((*found)->name, d.name);
    EXPECT_TRUE(same((*found)->levels, d.levels));
    EXPECT_TRUE(same((*found)->roots, d.roots));
  }
  EXPECT_EQ(load_cost_table(path).status().code(), Code::not_found);
  // What `aerie profile --json` prints.
  const auto j = nlohmann::json::parse(cost_table_json(t));
  for (const char* key : {"batch", "context", "rows", "ms"}) {
    EXPECT_TRUE(j["target"][0].contains(key));
    EXPECT_TRUE(j["drafters"]["eagle"][0].contains(key));
  }
}

TEST(CostFile, ReplacesATableOfAnyVersionAndNothingElse) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "costs";
  const auto over = [&](const std::string& there) {
    std::ofstream(path, std::ios::binary) << there;
    return save_cost_table(some_table(), path);
  };
  for (const std::string there : {"dear diary", "aerie-cost", "\n"}) {
    const Status refused = over(there);
    EXPECT_EQ(refused.code(), Code::invalid_argument);
    EXPECT_EQ(refused.message(), path + ": is there, and no cost table: it is left as it is");
    std::stringstream after;
    after << std::ifstream(path, std::ios::binary).rdbuf();
    EXPECT_EQ(after.str(), there);
  }
  for (const std::string& there : {std::string(), std::string("aerie-costs 0 of old\n{}\n"), encode_cost_table(some_table())}) {
    EXPECT_TRUE(over(there).ok()) << there;
    EXPECT_TRUE(load_cost_table(path).ok());
  }
}

TEST(CostFile, EveryChangedByteAndEveryCutIsRefused) {
  CostTable t = some_table();
  const std::string good = encode_cost_table(t);
  ASSERT_TRUE(decode(good).ok());
  for (size_t at = 0; at < good.size(); ++at) {
    for (const int bit : {0, 5, 7}) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ (1 << bit));
      const Status s = decode(bad).status();
      ASSERT_FALSE(s.ok()) << "byte " << at << " bit " << bit;
      ASSERT_TRUE(s.code() == Code::bad_format || s.code() == Code::unsupported) << s.message();
    }
    ASSERT_FALSE(decode(good.substr(0, at)).ok()) << "cut at " << at;
  }
  EXPECT_FALSE(decode(good + " ").ok());
}

// A checksum proves nothing about who wrote it: bodies that are whole and wrong.
TEST(CostFile, WholeButWrongIsRefusedToo) {
  const auto good = nlohmann::json::parse(cost_table_json(some_table()));
  const auto wrapped = [](const std::string& body) {
    char line[64];
    std::snprintf(line, sizeof line, "aerie-costs 1 %016llx\n", static_cast<unsigned long long>(XXH64(body.data(), body.size(), 0)));
    return line + body;
  };
  ASSERT_TRUE(decode(wrapped(good.dump())).ok());
  const auto refused = [&](const char* words, const std::function<void(nlohmann::json&)>& change) {
    auto j = good;
    change(j);
    const Status s = decode(wrapped(j.dump())).status();
    EXPECT_EQ(s.code(), Code::bad_format) << words;
    EXPECT_NE(s.message().find(words), std::string::npos) << s.message();
  };
  for (const char* field : {"version", "device", "isa", "threads", "model", "weights", "kv", "target", "drafters", "drafter_keys"}) {
    refused(field, [&](auto& j) { j.erase(field); });
    refused(field, [&](auto& j) { j[field] = -1; });
  }
  refused("target", [](auto& j) { j["target"] = nlohmann::json::array(); });
  refused("target: ms", [](auto& j) { j["target"][0]["ms"] = "1"; });
  refused("ms is out of range", [](auto& j) { j["target"][0]["ms"] = -1; });
  refused("target: rows", [](auto& j) { j["target"][0]["rows"] = 1e18; });
  refused("drafters: eagle: pass", [](auto& j) { j["drafters"]["eagle"][0]["pass"] = "both"; });
  refused("drafters: eagle: point", [](auto& j) { j["drafters"]["eagle"][0] = 7; });
  refused("drafters: eagle: drafter_keys", [](auto& j) { j["drafter_keys"].erase("eagle"); });
  refused("drafters: ngram: plugin", [](auto& j) { j["drafter_keys"]["ngram"]["plugin"] = nullptr; });
  for (const char* body : {"", "null", "[]", "{", "{}", "{\"target\": [[[[]]]]}", "\xff\xfe"}) EXPECT_FALSE(decode(wrapped(body)).ok()) << body;
  EXPECT_FALSE(decode(wrapped(std::string(100000, '[') + std::string(100000, ']'))).ok());
}

TEST(CostFile, AnotherFormatIsNamed) {
  std::string older = encode_cost_table(some_table());
  older[12] = '0';
  const Status s = decode(older).status();
  EXPECT_EQ(s.code(), Code::unsupported);
  EXPECT_NE(s.message().find("format version: 0"), std::string::npos) << s.message();
  EXPECT_NE(decode("GGUF").status().message().find("not a cost table"), std::string::npos);
}

TEST(CostKey, EveryFieldIsCheckedAndNamed) {
  const CostKey here = some_table().key;
  EXPECT_TRUE(check_key(here, here).ok());
  const auto refused = [&](const char* field, const std::function<void(CostKey&)>& change) {
    CostKey k = here;
    change(k);
    const Status s = check_key(k, here);
    EXPECT_EQ(s.code(), Code::mismatch) << field;
    EXPECT_EQ(s.message().find(field), 0u) << s.message();
  };
  refused("version", [](CostKey& k) { k.version = "0.0.9"; });
  refused("device", [](CostKey& k) { k.device = "cpu other"; });
  refused("isa", [](CostKey& k) { k.isa = "AVX3"; });
  refused("threads", [](CostKey& k) { k.threads = 3; });
  refused("model", [](CostKey& k) { k.model = "00"; });
  refused("weights", [](CostKey& k) { k.weights = "bf16"; });
  refused("kv", [](CostKey& k) { k.kv = "bf16"; });
  for (const DrafterKey& other : {DrafterKey{"eagle", "00", "int8"}, DrafterKey{"eagle", "fedcba9876543210", "bf16"}, DrafterKey{"medusa", "", ""}}) {
    const CostTable t = some_table();
    const auto found = t.find(other);
    EXPECT_EQ(found.status().code(), Code::mismatch);
    EXPECT_NE(found.status().message().find("drafter: no costs of " + other.plugin), std::string::npos) << found.status().message();
  }
}

}  // namespace
}  // namespace aerie::cost_test

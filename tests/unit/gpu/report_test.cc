// The report of a run on a GPU, from results that were not measured on one.
#include "tests/gpu/report.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace aerie::gpu_bench {
namespace {

using nlohmann::json;

json canned() {
  return json::parse(R"({
    "device": "a card", "date": "2026-01-02",
    "checks": [{"name": "tests", "state": "ok"}, {"name": "racecheck", "state": "skipped"}],
    "bench": {"read_bandwidth": 3e12, "targets": [
        {"dtype": "int8", "context": 512, "passes": [{"rows": 1, "us": 1, "of_bandwidth": 0.1, "submit_us": 1}]},
        {"dtype": "bf16", "context": 512, "passes": [
          {"rows": 1, "us": 5000, "of_bandwidth": 0.9, "submit_us": 20}, {"rows": 64, "us": 6500, "of_bandwidth": 0.7, "submit_us": 20}],
         "prefill": [{"rows": 64, "us": 90, "cublaslt_us": 80}, {"rows": 256, "us": 300, "cublaslt_us": null}]}],
      "eagle_level": {"floor_us": 300, "passes": [{"rows": 10, "us": 460}]}},
    "inflated": {"target_bytes": 15e9, "drafters": {"/m/demo-eagle.aerie": {"pass_bytes": 1.5e9}}, "rows": [
      {"drafter": "none", "tree": "-", "speedup": 1.0, "verify_ms": 5},
      {"drafter": "/m/demo-eagle.aerie", "tree": "eagle2", "speedup": 2.0, "tau": 3.0, "draft_passes": 5,
       "draft_ms": 3.0, "verify_ms": 6.0, "other_ms": 0.06, "tokens_per_second": 300}]},
    "candidate": {"rows": [{"drafter": "none", "tree": "-", "speedup": 1.0}, {"drafter": "/m/demo-eagle.aerie", "tree": "chain", "tau": 9},
      {"drafter": "/m/demo-eagle.aerie", "tree": "eagle2", "tau": 2.9, "draft_ms": 1.5, "tokens_per_second": 360}]},
    "torch": {"decode_us": 6000, "how": "compiled, CUDA graph"}
  })");
}

json bar(const json& report, const std::string& name) {
  for (const json& b : report["bars"])
    if (b["name"].get<std::string>().rfind(name, 0) == 0) return b;
  return {};
}

TEST(GpuReport, EveryBarIsHeldAgainstItsLimit) {
  const json results = canned(), report = make_report(results);
  EXPECT_EQ(bar(report, "decode")["holds"], true);
  EXPECT_EQ(bar(report, "verify")["measured"], 1.3);
  EXPECT_EQ(bar(report, "verify")["holds"], false);
  EXPECT_EQ(bar(report, "EAGLE level")["measured"], 10.0);
  EXPECT_EQ(bar(report, "EAGLE level")["holds"], true);
  EXPECT_NEAR(bar(report, "cycle")["measured"].get<double>(), 9.06e-3 / (22.5e9 / 3e12), 1e-9);
  EXPECT_EQ(bar(report, "cycle")["holds"], true);
  EXPECT_EQ(bar(report, "host gap")["holds"], false);
  const std::string table = report_table(results, report);
  for (const char* said : {"a card, 2026-01-02", "racecheck: skipped", "| verify of 64 rows / one row | 1.3 | <= 1.25 | **no** |",
                           "speedup 2.00, tau 3.00, speedup/tau 0.67; the bytes alone allow 0.67", "1.20 x", "cuBLASLt (not bit-exact) 80 us",
                           "| 64 rows | 6500.0 | 70.0 % | 20.0 |",
                           "demo-eagle.aerie, eagle2, with a candidate head: tau 2.90 (3.00 with the full one), draft 1.50 ms a cycle (3.00), 1.20 x"})
    EXPECT_NE(table.find(said), std::string::npos) << said << "\n" << table;
}

TEST(GpuReport, WhatIsMissingIsSaidAndHoldsNothing) {
  for (const char* left_out : {"bench", "inflated", "candidate", "torch", "checks"}) {
    json results = canned();
    results.erase(left_out);
    const json report = make_report(results);
    EXPECT_FALSE(report_table(results, report).empty());
    if (std::string(left_out) == "bench") {
      EXPECT_TRUE(bar(report, "decode")["holds"].is_null());
    }
  }
  const json nothing = make_report(json::object());
  for (const json& b : nothing["bars"]) EXPECT_TRUE(b["holds"].is_null());
  EXPECT_NE(report_table(json::object(), nothing).find("not measured"), std::string::npos);
}

// gpu_bench and gpu_report on the emulated device, as run.sh calls them.
TEST(GpuReport, TheProgramsRunDry) {
  const auto dir = std::filesystem::path(testing::TempDir()) / "aerie-gpu-dry";
  std::filesystem::remove_all(dir);
  std::filesystem::create_directories(dir);
  const std::string bin = std::string(AERIE_BINARY_DIR) + "/bin/", out = dir.string();
  std::ofstream(dir / "device.txt") << "emulated\n2026-01-02\n";
  std::ofstream(dir / "checks.txt") << "ok tests\nskipped compute-sanitizer\n";
  ASSERT_EQ(std::system((bin + "gpu_bench_dry bf16 int4 --parts --tiny --context 40 --samples 1 >" + out + "/bench.json 2>" + out + "/bench.txt").c_str()), 0);
  ASSERT_EQ(std::system((bin + "gpu_report " + out + " >" + out + "/report.txt").c_str()), 0);
  std::ifstream in(dir / "results.json");
  const json results = json::parse(in);
  EXPECT_EQ(results["device"], "emulated");
  EXPECT_EQ(results["date"], "2026-01-02");
  EXPECT_EQ(results["checks"][1]["state"], "skipped");
  ASSERT_EQ(results["bench"]["targets"].size(), 2u);
  EXPECT_EQ(results["bench"]["targets"][0]["passes"].size(), 8u);
  for (const char* pass : {"targets", "eagle_level"}) {
    const json& of = results["bench"][pass];
    EXPECT_FALSE((of.is_array() ? of[0] : of)["parts"].empty()) << pass;
  }
  std::ifstream table_in(dir / "results.md");
  const std::string table(std::istreambuf_iterator<char>(table_in), {});
  for (const char* way : {"first stages at once | 1 |", "weights stay in the cache | 64 |", "not early | 1 |"}) EXPECT_NE(table.find(way), std::string::npos) << way;
  EXPECT_TRUE(bar(results, "decode")["measured"].is_number());
  EXPECT_TRUE(bar(results, "EAGLE")["measured"].is_number());
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace aerie::gpu_bench

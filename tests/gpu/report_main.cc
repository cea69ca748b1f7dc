// gpu_report DIR: what run.sh left in DIR (device.txt, checks.txt, bench.json, inflated.json, candidate.json, torch.json) to results.json
// and results.md there, and the table to stdout.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/gpu/report.h"

namespace {

std::string read(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

nlohmann::json json_of(const std::filesystem::path& file) {
  return nlohmann::json::parse(read(file), nullptr, false);  // discarded when there is none, or none that is whole
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: gpu_report DIR\n");
    return 2;
  }
  const std::filesystem::path dir = argv[1];
  nlohmann::json results = {{"checks", nlohmann::json::array()}};
  std::ifstream device(dir / "device.txt");
  std::string line, date, name;
  while (std::getline(device, line)) {
    if (!line.empty() && line[0] == '2' && line.size() == 10) date = line;  // a date
    else name = line;
  }
  results["device"] = name;
  results["date"] = date;
  std::ifstream checks(dir / "checks.txt");
  while (std::getline(checks, line)) {
    const size_t space = line.find(' ');
    if (space != std::string::npos) results["checks"].push_back({{"name", line.substr(space + 1)}, {"state", line.substr(0, space)}});
  }
  for (const char* part : {"bench", "inflated", "candidate", "torch"})
    if (const auto j = json_of(dir / (std::string(part) + ".json")); j.is_object()) results[part] = j;
  const auto report = aerie::gpu_bench::make_report(results);
  const std::string table = aerie::gpu_bench::report_table(results, report);
  results["bars"] = report["bars"];
  std::ofstream(dir / "results.json") << results.dump(2) << "\n";
  std::ofstream(dir / "results.md") << table;
  std::fputs(table.c_str(), stdout);
  return 0;
}

// What a pass costs with the instruction sets that this machine has, best first: for machines that lack the best ones.
//   isa_speed THREADS ROUNDS MODEL.aerie...
// Passes of 1 and 8 rows behind 192 positions. The instruction sets take turns; medians, as a table in Markdown.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "core/model/measure.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/cpu/isa.h"

namespace {

using namespace aerie;

constexpr int32_t kRows[] = {1, 8};

struct Measured {
  kernels::Isa isa;
  std::string name = {};
  std::shared_ptr<Model> model = {};
  std::vector<double> ms[std::size(kRows)] = {};
};

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

Status measure(const char* path, int threads, int rounds, std::vector<Measured>& isas) {
  AERIE_ASSIGN(const std::shared_ptr<const Package> package, Package::open(path));
  for (Measured& m : isas) {
    kernels::CpuOptions cpu;
    cpu.isa = m.isa.name();
    cpu.threads = threads;
    AERIE_ASSIGN(auto device, kernels::make_cpu_device(cpu));
    m.name = device->isa();
    ModelOptions options;
    options.kv_positions = 1024;
    AERIE_ASSIGN(m.model, Model::open(std::move(device), package, options));
  }
  MeasureOptions once;
  once.contexts = {192};
  once.rows.assign(std::begin(kRows), std::end(kRows));
  once.least_samples = once.most_samples = 1;  // behind one that warms up
  for (int round = 0; round < rounds; ++round)
    for (Measured& m : isas) {
      AERIE_ASSIGN(const CostGrid grid, measure_target(*m.model, once));
      for (size_t i = 0; i < std::size(kRows); ++i) m.ms[i].push_back(grid.points()[i].ms);
    }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 3 ? std::atoi(argv[1]) : 0, rounds = argc > 3 ? std::atoi(argv[2]) : 0;
  if (threads < 1 || rounds < 1) return std::fprintf(stderr, "usage: isa_speed THREADS ROUNDS MODEL.aerie...\n"), 1;
  std::printf("| model | instructions | tokens/s, 1 row | of the best | 8 rows, ms | t(8)/t(1) |\n|---|---|---|---|---|---|\n");
  for (int i = 3; i < argc; ++i) {
    std::vector<Measured> isas;
    for (const kernels::Isa& isa : kernels::supported_isas()) isas.push_back({isa});
    if (const Status s = measure(argv[i], threads, rounds, isas); !s.ok()) return std::fprintf(stderr, "%s\n", s.message().c_str()), 1;
    const std::string path = argv[i];
    const double best = median(isas[0].ms[0]);
    for (const Measured& m : isas) {
      const double one = median(m.ms[0]), eight = median(m.ms[1]);
      std::printf("| %s | %s | %.1f | %.0f %% | %.1f | %.2f |\n", path.substr(path.rfind('/') + 1).c_str(), m.name.c_str(), 1e3 / one,
                  100 * best / one, eight, eight / one);
    }
  }
}

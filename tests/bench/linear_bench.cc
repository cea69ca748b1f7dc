// What Linear reaches: time, GB/s of weights and GMAC/s for the shapes of the demo model and a large one.
//   linear_bench [threads] [dtype 0..7] [rounds] [ISA, such as AVX2]
// All cases are interleaved, round after round, and the best and median of the rounds are printed: on a
// shared machine only figures of one run compare.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "kernels/cpu/cpu_device.h"
#include "tests/bench/choose_isa.h"

namespace {

using namespace aerie::kernels;

struct Case {
  DType type;
  int64_t n, k, m;
  std::vector<Op> plan;  // the op several times, so that hand-over counts as in a pass
  std::vector<double> us;
};

float* floats(Device& d, int64_t n, uint32_t seed) {
  auto* p = static_cast<float*>(d.allocate(static_cast<size_t>(n) * 4));
  if (!p) std::abort();
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal;
  for (int64_t i = 0; i < n; ++i) p[i] = normal(rng);
  return p;
}

}  // namespace

int main(int argc, char** argv) {
  CpuOptions o;
  int only = -1, rounds = 15;
  std::string isa;
  CLI::App app("Linear's time, GB/s of weights and GMAC/s");
  app.add_option("threads", o.threads, "0: the default")->check(CLI::Range(0, 1024));
  app.add_option("dtype", only, "0 f32, 1 bf16, 2 int8, 3 int4, 5 fp8, 6 q4_1, 7 mxfp4; -1: all")->capture_default_str()->check(CLI::Range(-1, 7));
  app.add_option("rounds", rounds)->capture_default_str()->check(CLI::PositiveNumber);
  app.add_option("isa", isa, "such as AVX2; default: the machine's best");
  CLI11_PARSE(app, argc, argv);
  if (!isa.empty() && !choose_isa(isa)) return 1;
  auto made = make_cpu_device(o);
  if (!made.ok()) return 1;
  Device& device = **made;
  auto queue = std::move(*device.make_queue());
  std::printf("%s\n", device.isa());

  const char* const names[] = {"f32", "bf16", "int8", "int4", "i32", "fp8", "q4_1", "mxfp4"};
  constexpr int64_t shapes[][2] = {{576, 192}, {1024, 192}, {192, 512}, {4096, 192}, {8192, 2048}};
  constexpr int64_t batch[] = {1, 2, 4, 6, 8, 16, 64};
  const float* w = floats(device, 8192 * 2048, 1);  // memory is the process's; it ends with it
  float* x = floats(device, 64 * 2048, 2);
  float* out = floats(device, 64 * 8192, 3);
  std::vector<Case> cases;
  for (const int t : {0, 1, 2, 3, 5, 6, 7}) {
    if (only >= 0 && t != only) continue;
    const auto type = static_cast<DType>(t);
    for (const auto& [n, k] : shapes) {
      // Small matrices: sixteen of them, as the layers of a model, so that they come from L2 or L3.
      const int copies = n * k > 4000000 ? 1 : 16;
      std::vector<Tensor> weights;
      for (int c = 0; c < copies; ++c) {
        Tensor p{device.allocate(static_cast<size_t>(data_bytes(type, Layout::panel16, n, k))), nullptr, n, k, 0, type,
                 Layout::panel16};
        if (has_scales(type)) p.scales = device.allocate(static_cast<size_t>(scale_bytes(type, n, k)));
        pack_panel16(w, n, k, type, p.data, p.scales);
        weights.push_back(p);
      }
      for (const int64_t m : batch) {
        Case c{type, n, k, m, {}, {}};
        for (const Tensor& p : weights) c.plan.push_back(Linear{matrix(x, m, k), p, {}, {}, matrix(out, m, n)});
        cases.push_back(std::move(c));
      }
    }
  }
  for (int round = 0; round <= rounds; ++round)
    for (Case& c : cases) {
      const int repeat = c.plan.size() > 1 ? 4 : 1;
      // The case before left other weights in the caches; a third-level one takes several rounds to hold these.
      for (int i = 0; i < 4; ++i)
        if (!queue->submit(c.plan).ok() || !queue->advance(kNoDeadline).ok()) return 1;
      const auto begin = Clock::now();
      for (int i = 0; i < repeat; ++i)
        if (!queue->submit(c.plan).ok() || !queue->advance(kNoDeadline).ok()) return 1;
      const double us = std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
      if (round > 0) c.us.push_back(us / repeat / static_cast<double>(c.plan.size()));
    }
  std::printf("%-5s %11s %4s %10s %10s %8s %8s %7s\n", "type", "shape", "M", "best us", "median us", "GB/s", "GMAC/s",
              "T/T(1)");
  double first = 0;
  for (Case& c : cases) {
    std::sort(c.us.begin(), c.us.end());
    const double best = c.us.front(), median = c.us[c.us.size() / 2];
    if (c.m == 1) first = best;
    const double bytes = static_cast<double>(data_bytes(c.type, Layout::panel16, c.n, c.k) + scale_bytes(c.type, c.n, c.k));
    std::printf("%-5s %6ldx%-4ld %4ld %10.2f %10.2f %8.1f %8.1f %7.2f\n", names[static_cast<int>(c.type)],
                static_cast<long>(c.n), static_cast<long>(c.k), static_cast<long>(c.m), best, median, bytes / best * 1e-3,
                static_cast<double>(c.n * c.k * c.m) / best * 1e-3, best / first);
  }
}

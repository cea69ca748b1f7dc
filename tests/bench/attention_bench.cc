// What Attention takes for a few rows at the end of a long context, cut into one task for each span and as one task a
// row.
//   attention_bench [threads] [context] [rounds]
// 32 heads, 8 kv heads of 64, one layer; keys and values in f32, bf16 and int8. All cases are interleaved, round after
// round: on a shared machine only figures of one run compare. "longest task" is what a frame budget waits for.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#include <CLI/CLI.hpp>

#include "kernels/cpu/cpu_device.h"
#include "kernels/cpu/op_kernels.h"

namespace {

using namespace aerie::kernels;

constexpr int32_t kHeads = 32, kKvHeads = 8, kDim = 64;

struct Case {
  DType type;
  int64_t rows;
  bool split;
  std::vector<Op> plan;
  std::vector<double> ms;
};

// Memory is the process's; it ends with it.
template <class T>
T* memory(Device& d, int64_t n) {
  auto* p = static_cast<T*>(d.allocate(static_cast<size_t>(n) * sizeof(T)));
  if (!p) std::abort();
  return p;
}

double run(Queue& queue, const std::vector<Op>& plan) {
  const auto begin = Clock::now();
  if (!queue.submit(plan).ok() || !queue.advance(kNoDeadline).ok()) std::abort();
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

KvCache filled(Device& device, Queue& queue, DType type, int64_t slots) {
  const int64_t rows = 2 * slots * kKvHeads;
  KvCache c{memory<char>(device, rows * kDim * kv_element_bytes(type)), slots, 1, kKvHeads, kDim, type, nullptr};
  if (type == DType::int8) c.scales = memory<float>(device, rows);
  constexpr int64_t kAtOnce = 1024, kWidth = 2 * kKvHeads * kDim;
  auto* qkv = memory<float>(device, kAtOnce * kWidth);
  auto* angles = memory<float>(device, kAtOnce * kDim);
  std::vector<int32_t> at(kAtOnce);
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (int64_t i = 0; i < kAtOnce * kWidth; ++i) qkv[i] = normal(random);
  std::fill(angles, angles + kAtOnce * kDim, 0.7f);
  for (int64_t s = 0; s < slots; s += kAtOnce) {
    for (int64_t i = 0; i < kAtOnce; ++i) at[static_cast<size_t>(i)] = static_cast<int32_t>(s + i);
    run(queue, {RopeAndStore{matrix(qkv, kAtOnce, kWidth), matrix(angles, kAtOnce, kDim), 0, c, 0, at.data()}});
  }
  return c;
}

}  // namespace

int main(int argc, char** argv) {
  CpuOptions o;
  int64_t context = 32768;
  int rounds = 5;
  CLI::App app("Attention's time at the end of a long context, in spans and as one task a row");
  app.add_option("threads", o.threads, "0: the default")->check(CLI::Range(0, 1024));
  app.add_option("context", context, "positions")->capture_default_str()->check(CLI::Range(1, 1 << 24));
  app.add_option("rounds", rounds)->capture_default_str()->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  context = round_up(context, kSpanSlots);
  auto made = make_cpu_device(o);
  if (!made.ok()) return 1;
  Device& device = **made;
  auto queue = std::move(*device.make_queue());
  std::printf("%s; context %ld\n", device.isa(), static_cast<long>(context));

  constexpr int64_t kMostRows = 8, kWidth = kHeads * kDim;
  const int64_t spans = context / kSpanSlots;
  std::vector<int32_t> pages(static_cast<size_t>(context / kPageSlots)), zeros(kMostRows), lengths;
  for (size_t i = 0; i < pages.size(); ++i) pages[i] = static_cast<int32_t>(i);
  for (int64_t i = 0; i < kMostRows; ++i) lengths.push_back(static_cast<int32_t>(context - i));
  const AttentionRows rows{
      pages.data(), static_cast<int32_t>(pages.size()), zeros.data(), lengths.data(), zeros.data(), zeros.data(),
      zeros.data()};
  auto* q = memory<float>(device, kMostRows * kWidth);
  for (int64_t i = 0; i < kMostRows * kWidth; ++i) q[i] = static_cast<float>(i % 17) * 0.1f - 0.8f;
  auto* out = memory<float>(device, kMostRows * kWidth);
  auto* partial = memory<float>(device, kMostRows * spans * kHeads * (kDim + 2));
  std::vector<Case> cases;
  for (const DType type : {DType::f32, DType::bf16, DType::int8}) {
    const KvCache cache = filled(device, *queue, type, context);
    for (const int64_t r : {int64_t{1}, kMostRows})
      for (const bool split : {false, true}) {
        Attention op{matrix(q, r, kWidth), kHeads, cache, 0, rows, 0.125f, matrix(out, r, kWidth), {}};
        if (split) op.partial = matrix(partial, r * spans, kHeads * (kDim + 2));
        Case c{type, r, split, {op}, {}};
        if (split) c.plan.push_back(AttentionMerge{op.partial, kHeads, rows, op.out});
        cases.push_back(std::move(c));
      }
  }
  for (int round = 0; round <= rounds; ++round)
    for (Case& c : cases) {
      const double ms = run(*queue, c.plan);
      if (round > 0) c.ms.push_back(ms);
    }
  std::printf("%-5s %5s %-6s %6s %9s %9s %8s %13s\n", "kv", "rows", "tasks", "", "best ms", "median ms", "GMAC/s",
              "longest task");
  for (Case& c : cases) {
    std::sort(c.ms.begin(), c.ms.end());
    const auto& op = std::get<Attention>(c.plan[0]);
    cpu::Scratch scratch;
    const int32_t tasks = cpu::tasks(op, o.threads);
    double longest = 0;
    for (int32_t t = 0; t < std::min(tasks, 16); ++t) {
      double best = 1e9;
      for (int i = 0; i < 3; ++i) {
        const auto begin = Clock::now();
        cpu::run(op, t, o.threads, scratch);
        best = std::min(best, std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
      }
      longest = std::max(longest, best);
    }
    scratch.release();
    std::printf("%-5s %5ld %-6s %6d %9.2f %9.2f %8.1f %10.2f ms\n",
                c.type == DType::f32    ? "f32"
                : c.type == DType::bf16 ? "bf16"
                                        : "int8",
                static_cast<long>(c.rows), c.split ? "spans" : "rows", tasks, c.ms.front(), c.ms[c.ms.size() / 2],
                2e-6 * static_cast<double>(c.rows * context * kWidth) / c.ms.front(), longest);
  }
}

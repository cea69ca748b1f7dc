// What a candidate head saves: LM head + top-k against the two looks, for vocabularies of 32k and 128k.
//   candidate_head_bench [rounds] [rank...]
// Random weights, width 2048, 1 and 10 rows, greedy (no noise), all physical cores. Cases are interleaved, round after
// round; medians. tests/bench/candidate_head.py makes docs/candidate-head.md of it.
#include <algorithm>
#include <cstdio>
#include <random>
#include <vector>

#include <CLI/CLI.hpp>

#include "kernels/cpu/cpu_device.h"
#include "tests/bench/random_weights.h"

namespace {

using namespace aerie::kernels;
using aerie::bench::memory, aerie::bench::weights;

constexpr int64_t kHidden = 2048, kMostRows = 10;
constexpr int32_t kWanted = 10, kRetrieved = 64;  // core/drafter/candidates.cc

struct Case {
  int64_t vocab, rank, rows;  // rank 0: the full head
  DType type;
  std::vector<Op> plan;
  std::vector<double> ms;
};

}  // namespace

int main(int argc, char** argv) {
  int rounds = 15;
  std::vector<int64_t> ranks{64, 128, 256};
  CLI::App app("A candidate head's time beside the whole head's");
  app.add_option("rounds", rounds)->capture_default_str()->check(CLI::PositiveNumber);
  app.add_option("ranks", ranks)->capture_default_str()->check(CLI::Range(int64_t{1}, kHidden));
  CLI11_PARSE(app, argc, argv);
  auto made = make_cpu_device({});
  if (!made.ok()) return 1;
  Device& device = **made;
  auto queue = std::move(*device.make_queue());
  std::printf("# %s\n", device.isa());
  std::mt19937 random(1);
  auto* hidden = memory<float>(device, kMostRows * kHidden);
  for (int64_t i = 0; i < kMostRows * kHidden; ++i) hidden[i] = std::normal_distribution<float>()(random);
  auto* z = memory<float>(device, kMostRows * kHidden);
  auto* logits = memory<float>(device, kMostRows * 131072);
  auto* ids = memory<int32_t>(device, kMostRows * kRetrieved);
  auto* logp = memory<float>(device, kMostRows * kRetrieved);
  auto* exact = memory<float>(device, kMostRows * kRetrieved);
  auto* out = memory<int32_t>(device, kMostRows * kWanted);
  auto* out_logp = memory<float>(device, kMostRows * kWanted);
  std::vector<Case> cases;
  for (const DType type : {DType::bf16, DType::int8})
    for (const int64_t v : {int64_t{32768}, int64_t{131072}}) {
      const Tensor head = weights(device, v, kHidden, type);
      const auto used = static_cast<int32_t>(v);
      for (const int64_t rows : {int64_t{1}, kMostRows}) {
        const Tensor x = matrix(hidden, rows, kHidden), all = matrix(logits, rows, v);
        cases.push_back({v, 0, rows, type, {Linear{x, head, {}, {}, all}, TopK{all, kWanted, used, nullptr, nullptr, out, out_logp}}, {}});
      }
      for (const int64_t rank : ranks) {
        const Tensor down = weights(device, rank, kHidden, type), up = weights(device, v, rank, type);
        for (const int64_t rows : {int64_t{1}, kMostRows}) {
          const Tensor x = matrix(hidden, rows, kHidden), low = matrix(z, rows, rank), all = matrix(logits, rows, v);
          const Tensor second = matrix(exact, rows, kRetrieved);
          cases.push_back({v, rank, rows, type,
                           {Linear{x, down, {}, {}, low}, Linear{low, up, {}, {}, all},
                            TopK{all, kRetrieved, used, nullptr, nullptr, ids, logp}, LinearRows{x, head, ids, second},
                            Rescore{all, ids, logp, second, kWanted, nullptr, out, out_logp}},
                           {}});
        }
      }
    }
  for (int round = 0; round <= rounds; ++round)
    for (Case& c : cases) {
      const auto begin = Clock::now();
      if (!queue->submit(c.plan).ok() || !queue->advance(kNoDeadline).ok()) return 1;
      const double ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
      if (round > 0) c.ms.push_back(ms);  // the first warms up
    }
  std::printf("dtype,vocab,rows,rank,ms\n");
  for (Case& c : cases) {
    std::sort(c.ms.begin(), c.ms.end());
    std::printf("%s,%ld,%ld,%ld,%.3f\n", c.type == DType::bf16 ? "bf16" : "int8", static_cast<long>(c.vocab),
                static_cast<long>(c.rows), static_cast<long>(c.rank), c.ms[c.ms.size() / 2]);
  }
}

// What an LM head saves by never writing its logits: Linear + TopK against LinearTopK + MergeTopK, ten best of a row.
//   linear_topk_bench [rounds] [vocabulary]
// Random weights, 1 and 10 rows, with shared draft noise and without. The two take turns at being first, round after
// round; medians, and the fastest rounds. On one thread processor time, which a busy machine disturbs least; on two the
// time that passed.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <vector>

#include <CLI/CLI.hpp>

#include "kernels/cpu/cpu_device.h"
#include "tests/bench/random_weights.h"

namespace {

using namespace aerie::kernels;
using aerie::bench::memory, aerie::bench::weights;

constexpr int64_t kMostVocab = 131072, kMostHidden = 2048, kMostRows = 10;
constexpr int32_t kWanted = 10;

double now_ms(int threads) {
  if (threads == 1) return 1e3 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
  return std::chrono::duration<double, std::milli>(Clock::now().time_since_epoch()).count();
}

struct Times {
  double median, least;
  explicit Times(std::vector<double> v) {
    std::sort(v.begin(), v.end());
    median = v[v.size() / 2];
    least = v[0];
  }
};

}  // namespace

int main(int argc, char** argv) {
  int rounds = 15;
  int64_t only = 0;
  CLI::App app("An LM head with its top k: in two ops and in one");
  app.add_option("rounds", rounds)->capture_default_str()->check(CLI::PositiveNumber);
  app.add_option("vocabulary", only, "one of those below; default: all");
  CLI11_PARSE(app, argc, argv);
  auto made = make_cpu_device({.threads = 1}), two = make_cpu_device({.threads = 2});
  if (!made.ok() || !two.ok()) return 1;
  Device& device = **made;
  std::printf("# %s; and 2\nthreads,dtype,vocab,hidden,rows,noise,logits ms,fused ms,ratio,least logits ms,least fused ms,ratio\n", device.isa());
  std::mt19937 random(1);
  auto* hidden = memory<float>(device, kMostRows * kMostHidden);
  for (int64_t i = 0; i < kMostRows * kMostHidden; ++i) hidden[i] = std::normal_distribution<float>()(random);
  auto* logits = memory<float>(device, kMostRows * kMostVocab);
  auto* partial = memory<float>(device, kMostRows * topk_partial_cols(kMostVocab, kWanted));
  auto* token = memory<int32_t>(device, 2 * kMostRows * kWanted);
  auto* logp = memory<float>(device, 2 * kMostRows * kWanted);
  auto* keys = memory<DrawKey>(device, kMostRows);
  for (int64_t r = 0; r < kMostRows; ++r) keys[r] = {1, 2, r, 30.0f, 0};
  for (const DType type : {DType::bf16, DType::int8})
    for (const auto& [v, h] : {std::pair<int64_t, int64_t>{4096, 192}, {32768, 2048}, {kMostVocab, 2048}}) {
      if (only && only != v) continue;
      const Tensor w = weights(device, v, h, type);
      for (const int64_t rows : {int64_t{1}, kMostRows})
        for (const DrawKey* noise : {static_cast<const DrawKey*>(nullptr), static_cast<const DrawKey*>(keys)})
          for (const int threads : {1, 2}) {
            const Tensor x = matrix(hidden, rows, h), all = matrix(logits, rows, v);
            const auto used = static_cast<int32_t>(v);
            const Op before[] = {Linear{x, w, {}, {}, all}, TopK{all, kWanted, used, nullptr, noise, token, logp}};
            const LinearTopK head{x, w, {}, kWanted, used, nullptr, noise, matrix(partial, rows, topk_partial_cols(v, kWanted)),
                                  token + rows * kWanted, logp + rows * kWanted};
            const Op after[] = {head, MergeTopK{head}};
            auto queue = std::move(*(threads == 1 ? *made : *two)->make_queue());
            std::vector<double> ms[2];
            const int repeats = v == 4096 ? 20 : 1;  // small ones are over before the clock has a say
            for (int round = 0; round <= rounds; ++round)
              for (const int turn : {0, 1}) {
                const int which = (turn + round) % 2;
                const double begin = now_ms(threads);
                for (int i = 0; i < repeats; ++i)
                  if (!queue->submit(which ? std::span<const Op>(after) : before).ok() || !queue->advance(kNoDeadline).ok()) return 1;
                const double took = (now_ms(threads) - begin) / repeats;
                if (round > 0) ms[which].push_back(took);  // the first warms up
              }
            if (!std::equal(token, token + rows * kWanted, token + rows * kWanted) ||
                !std::equal(logp, logp + rows * kWanted, logp + rows * kWanted))
              return 1;
            const Times was(ms[0]), is(ms[1]);
            std::printf("%d,%s,%ld,%ld,%ld,%s,%.3f,%.3f,%.2f,%.3f,%.3f,%.2f\n", threads, type == DType::bf16 ? "bf16" : "int8",
                        static_cast<long>(v), static_cast<long>(h), static_cast<long>(rows), noise ? "shared" : "none",
                        was.median, is.median, was.median / is.median, was.least, is.least, was.least / is.least);
            std::fflush(stdout);
          }
      device.release(w.data);
      device.release(w.scales);
    }
}

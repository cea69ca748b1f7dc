// gpu_pace: what cycles come to whose plans a device runs by itself, at the pass times of a GPU that was measured before:
//   gpu_pace docs/cuda/h100.json [--tokens 64] > docs/cuda/pace.md
// The demo model's own texts and trees, drawn here by the ops that a GPU runs (kernels/tree_ops.h), alone and in batches; a pass
// takes as long as one of so many rows in the file, of the 8B model and of its inflated head. So trees and rooms can be judged
// without a GPU. Modelled: no GPU runs here.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/session/batch.h"
#include "core/text/tokenizer.h"
#include "kernels/cpu/cpu_device.h"
#include "tests/bench/or_fail.h"
#include "tests/support/forwarding_policy.h"

namespace {

using namespace aerie;
using namespace aerie::bench;
using nlohmann::json;

// The prompts of `aerie bench`.
const char* const kPrompts[] = {"It was a bright morning, and the old man", "\"I do not believe you,\" said the girl,",
                                "def read_lines(path):\n    ", "class Parser:\n    def __init__(self, text):\n        ",
                                "The ship had been three weeks at sea when", "import os\nimport sys\n\n"};

// Milliseconds, as the file has them.
struct Gpu {
  std::map<int32_t, double> target;  // by rows
  double draft_of_one = 0, draft = 0, draft_row = 0;  // over one row; over 2 to 16; for each row beyond
  double target_bytes_ms = 0, draft_bytes_ms = 0;     // at the measured read bandwidth
  std::map<std::string, json> measured;               // by tree
  double target_ms(int32_t rows) const {
    const int32_t most = target.rbegin()->first;
    if (rows > most) return target.at(most) * std::ceil(rows / 64.0) / (most / 64.0);
    return target.lower_bound(static_cast<int32_t>(std::bit_ceil(static_cast<uint32_t>(rows))))->second;
  }
  double draft_ms(int32_t rows) const { return rows <= 1 ? draft_of_one : draft + draft_row * std::max(0, rows - 16); }
};

Gpu read_gpu(const std::string& path) {
  std::ifstream in(path);
  const json j = json::parse(in, nullptr, false);
  if (j.is_discarded()) fail(path + ": no JSON");
  Gpu gpu;
  try {
    const double bandwidth = j.at("bench").at("read_bandwidth");
    for (const json& t : j.at("bench").at("targets"))
      if (t.at("dtype") == "bf16") {
        for (const json& p : t.at("passes")) gpu.target[p.at("rows")] = p.at("us").get<double>() / 1000;
        gpu.target_bytes_ms = t.at("floor_us").get<double>() / 1000;
      }
    for (const json& row : j.at("inflated").at("rows")) gpu.measured[row.at("tree")] = row;
    const auto a_pass = [&](const char* tree) { return gpu.measured.at(tree).at("draft_ms").get<double>() / gpu.measured.at(tree).at("draft_passes").get<double>(); };
    gpu.draft_of_one = a_pass("chain");
    gpu.draft = a_pass("eagle2");
    std::map<int32_t, double> levels;
    for (const json& p : j.at("bench").at("eagle_level").at("passes")) levels[p.at("rows")] = p.at("us").get<double>() / 1000;
    gpu.draft_row = (levels.at(32) - levels.at(10)) / (32 - 10);
    gpu.draft_bytes_ms = j.at("inflated").at("drafters").begin()->at("pass_bytes").get<double>() / bandwidth * 1000;
  } catch (const std::exception& e) {
    fail(path + ": " + e.what());
  }
  if (gpu.target.empty()) fail(path + ": no passes of a bf16 target");
  return gpu;
}

struct Sum {
  double ms = 0, verify_ms = 0, tokens = 0, cycles = 0, verified = 0, draft_passes = 0;  // the last four over all texts
};

// What a cycle's plan has room for.
struct Plan {
  int32_t rows = 1, beam = 0;
};
class Watched final : public test::ForwardingPolicy {
 public:
  Watched(std::unique_ptr<TreePolicy> policy, Plan* plan) : ForwardingPolicy(std::move(policy)), plan_(*plan) {}
  std::unique_ptr<TreePolicy> clone() const override { return std::make_unique<Watched>(policy().clone(), &plan_); }
  void begin(const CycleLimits& limits) override {
    plan_ = {};
    ForwardingPolicy::begin(limits);
  }
  bool shape(TreeShape* shape) const override {
    const bool has = ForwardingPolicy::shape(shape);
    if (has) plan_.beam = std::max(shape->beam, 1);
    return has;
  }
  void drawn_in(int32_t rows, int32_t levels) override {
    plan_.rows = rows;
    ForwardingPolicy::drawn_in(rows, levels);
  }

 private:
  Plan& plan_;
};

struct Pair {
  std::shared_ptr<Model> model;
  std::shared_ptr<Drafter> drafter;
  std::vector<std::vector<int32_t>> prompts;
};

Pair open(const std::string& models, const std::string& plugin) {
  Pair p;
  ModelOptions options;
  options.kv_positions = 16384;
  const std::shared_ptr<const Package> target = take(Package::open(models + "/demo.aerie"));
  p.model = take(Model::open(take(kernels::make_cpu_device({})), target, options));
  const std::shared_ptr<const Package> package = take(Package::open(models + "/demo-eagle.aerie"));
  for (const PluginKind& kind : take(load_plugin(std::filesystem::absolute(plugin).string())))
    if (package->drafter()->plugin_id == kind.desc.id) p.drafter = take(Drafter::open(p.model, kind, package, {}));
  if (!p.drafter) fail(plugin + " has no " + package->drafter()->plugin_id);
  const auto tokenizer = take(text::Tokenizer::deserialize(target->blob("tokenizer")));
  for (const char* text : kPrompts) p.prompts.push_back(take(tokenizer->encode(text)));
  return p;
}

// So many texts at a time, one step after another until the first has all its tokens.
void run_together(const Pair& p, const Gpu& gpu, const PolicySpec& spec, float temperature, int32_t tokens, size_t first, size_t batch, Sum* sum) {
  std::vector<std::unique_ptr<Session>> sessions;
  std::vector<Plan> plans(batch);
  std::vector<uint64_t> drafted(batch, 0);
  auto together = take(Batch::create(p.model, {0}));
  for (size_t i = 0; i < batch; ++i) {
    SessionOptions o;
    o.drafter = p.drafter;
    o.sampling.temperature = temperature;
    o.sampling.seed = 1;
    o.sampling.stream = static_cast<uint32_t>(first + i);
    o.ignore_eos = true;
    o.drafts_on_device = true;
    o.tree = spec;
    o.policy = [&plan = plans[i], &spec] { return std::make_unique<Watched>(take(make_policy(spec)), &plan); };
    o.pass_ms = [&](const Drafter* drafter, int32_t rows) { return drafter ? gpu.draft_ms(rows) : gpu.target_ms(rows); };
    sessions.push_back(take(Session::create(p.model, o)));
    const auto& prompt = p.prompts[(first + i) % p.prompts.size()];
    check(sessions.back()->append(prompt));
    check(together->add(*sessions.back()));
  }
  for (uint64_t most = 0; most < static_cast<uint64_t>(tokens);) {
    check(together->step(0, std::chrono::microseconds(0)));
    if (std::all_of(sessions.begin(), sessions.end(), [](const auto& s) { return s->result().tokens.empty(); })) continue;  // a prompt's pass
    int32_t rows = 0;
    std::vector<int32_t> levels;  // rows of each draft pass
    for (size_t i = 0; i < batch; ++i) {
      const SessionStatistics& n = sessions[i]->statistics();
      const uint64_t passes = n.draft_passes - std::exchange(drafted[i], n.draft_passes);
      levels.resize(std::max(levels.size(), static_cast<size_t>(passes)), 0);
      for (size_t l = 0; l < passes; ++l) levels[l] += l == 0 ? 1 : plans[i].beam;
      rows += plans[i].rows;
      sum->verified += plans[i].rows - 1;
      sum->draft_passes += static_cast<double>(passes);
      const auto came = static_cast<double>(sessions[i]->result().tokens.size());
      sum->tokens += came;
      sum->cycles += came > 0 ? 1 : 0;
      most = std::max(most, n.emitted);
    }
    sum->verify_ms += gpu.target_ms(rows);
    sum->ms += gpu.target_ms(rows);
    for (const int32_t n : levels) sum->ms += gpu.draft_ms(n);
  }
}

Sum run(const Pair& p, const Gpu& gpu, const PolicySpec& spec, float temperature, int32_t tokens, size_t batch) {
  Sum sum;
  for (size_t first = 0; first < std::max(p.prompts.size(), batch); first += batch) run_together(p, gpu, spec, temperature, tokens, first, batch, &sum);
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  std::string file, models = "samples/models", plugin = "build/tests/lib/aerie/drafters/eagle.so";
  int32_t tokens = 64, repeats = 3;
  CLI::App app{"what cycles come to at a measured GPU's pass times"};
  app.add_option("results", file, "results.json of tests/gpu/run.sh")->required();
  app.add_option("--models", models, "the folder of the demo models");
  app.add_option("--plugin", plugin, "the eagle drafter");
  app.add_option("--tokens", tokens, "of each of six texts")->check(CLI::Range(1, 1500));
  CLI11_PARSE(app, argc, argv);
  const Gpu gpu = read_gpu(file);
  const Pair pair = open(models, plugin);
  std::printf("# The pace of trees at a GPU's pass times, modelled\n\n"
              "Written by `tests/bench/gpu_pace.cc` (`gpu_pace %s --tokens %d`). **Modelled**: no GPU ran here. The demo model's own texts and\n"
              "trees, six texts or more of up to %d tokens, at the pass times in that file: a target pass takes what one of Llama-3.1-8B's shape took for\n"
              "the power of two of its rows (of more than 128: for each 64 of them half of that of 128), a draft pass what one of the inflated EAGLE head\n"
              "took (%.3f ms over one row, %.3f over up to 16, %.4f for each row beyond). Graphs that are made on the way and the walk are not counted.\n"
              "The middle one of three rounds by speed; `auto` goes on learning through all of them. Speedup is against as many texts in plain decode,\n"
              "a cycle's bytes are those of its target pass and its draft passes, and *measured* is the same file's, of the code of its day.\n\n"
              "| texts at a time | T | tree | speedup | tau | nodes there is room for | draft passes | verify ms | cycle / its bytes | measured speedup | tau | cycle / its bytes |\n"
              "|---|---|---|---|---|---|---|---|---|---|---|---|\n", file.c_str(), tokens, tokens, gpu.draft_of_one, gpu.draft, gpu.draft_row);
  for (const size_t batch : {1, 4, 8})
    for (const float temperature : {0.0f, 1.0f})
      for (const char* tree : {"chain", "eagle2", "cast", "auto"}) {
        std::vector<Sum> rounds;
        for (int32_t i = 0; i < repeats; ++i) rounds.push_back(run(pair, gpu, PolicySpec{tree}, temperature, tokens, batch));
        std::sort(rounds.begin(), rounds.end(), [](const Sum& a, const Sum& b) { return a.tokens / a.ms < b.tokens / b.ms; });
        const Sum& s = rounds[rounds.size() / 2];
        const auto texts = static_cast<double>(batch);
        const double plain = texts / gpu.target_ms(static_cast<int32_t>(batch)), steps = s.cycles / texts, drafts = s.draft_passes / s.cycles;
        std::printf("| %zu | %g | `%s` | %.2f | %.2f | %.1f | %.2f | %.2f |", batch, static_cast<double>(temperature), tree, s.tokens / s.ms / plain,
                    s.tokens / s.cycles, s.verified / s.cycles, drafts, s.verify_ms / steps);
        if (batch == 1) std::printf(" %.2f |", s.ms / steps / (gpu.target_bytes_ms + drafts * gpu.draft_bytes_ms));
        else std::printf(" |");  // draft passes of several texts are one
        const auto at = batch == 1 && temperature == 0 ? gpu.measured.find(tree) : gpu.measured.end();
        if (at == gpu.measured.end()) {
          std::printf(" | | |\n");
          continue;
        }
        const json& m = at->second;
        const double took = m.at("draft_ms").get<double>() + m.at("verify_ms").get<double>() + m.at("other_ms").get<double>();
        const double its_bytes = gpu.target_bytes_ms + m.at("draft_passes").get<double>() * gpu.draft_bytes_ms;
        std::printf(" %.2f | %.2f | %.2f |\n", m.at("speedup").get<double>(), m.at("tau").get<double>(), took / its_bytes);
      }
  return 0;
}

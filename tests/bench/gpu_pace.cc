// gpu_pace: what cycles come to whose plans a device runs by itself, at the pass times of a GPU that was measured before:
//   gpu_pace docs/cuda/h100.json [--tokens 64] > docs/cuda/pace.md
// The demo model's own texts and trees, drawn here by the ops that a GPU runs (kernels/tree_ops.h); a target pass takes as long as
// that of the 8B model in the file, a draft pass as long as those of its inflated head. So trees and rooms can be judged without a
// GPU. Modelled: no GPU runs here.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <bit>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "core/session/session.h"
#include "core/text/tokenizer.h"
#include "kernels/cpu/cpu_device.h"
#include "tests/support/forwarding_policy.h"

namespace {

using namespace aerie;
using nlohmann::json;

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "gpu_pace: %s\n", what.c_str());
  std::exit(1);
}
template <class T>
T take(Result<T> r) {
  if (!r.ok()) fail(r.status().message());
  return std::move(r).value();
}

// The prompts of `aerie bench`.
const char* const kPrompts[] = {"It was a bright morning, and the old man", "\"I do not believe you,\" said the girl,",
                                "def read_lines(path):\n    ", "class Parser:\n    def __init__(self, text):\n        ",
                                "The ship had been three weeks at sea when", "import os\nimport sys\n\n"};

// Milliseconds, as the file has them.
struct Gpu {
  std::map<int32_t, double> target;  // by rows
  double draft_of_one = 0, draft = 0;
  double target_bytes_ms = 0, draft_bytes_ms = 0;  // at the measured read bandwidth
  std::map<std::string, json> measured;            // by tree
  double target_ms(int32_t rows) const {
    const auto at = target.lower_bound(static_cast<int32_t>(std::bit_ceil(static_cast<uint32_t>(rows))));
    return at == target.end() ? target.rbegin()->second : at->second;
  }
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
    gpu.draft_bytes_ms = j.at("inflated").at("drafters").begin()->at("pass_bytes").get<double>() / bandwidth * 1000;
  } catch (const std::exception& e) {
    fail(path + ": " + e.what());
  }
  if (gpu.target.empty()) fail(path + ": no passes of a bf16 target");
  return gpu;
}

struct Sum {
  double ms = 0, tokens = 0, cycles = 0, verified = 0, draft_passes = 0, verify_ms = 0;
};

// Sums what cycles take.
class Timed final : public test::ForwardingPolicy {
 public:
  Timed(std::unique_ptr<TreePolicy> policy, Sum* sum) : ForwardingPolicy(std::move(policy)), sum_(*sum) {}
  std::unique_ptr<TreePolicy> clone() const override { return std::make_unique<Timed>(policy().clone(), &sum_); }
  bool wants_costs() const override { return true; }  // or it would not be told how cycles end
  void outcome(const DraftTree& tree, const CycleOutcome& o) override {
    if (policy().wants_costs()) ForwardingPolicy::outcome(tree, o);
    sum_.ms += o.ms;
    sum_.cycles += 1;
    sum_.tokens += static_cast<double>(o.path.size());
    sum_.verified += static_cast<double>(o.verified.size());
  }

 private:
  Sum& sum_;
};

struct Pair {
  std::shared_ptr<Model> model;
  std::shared_ptr<Drafter> drafter;
  std::vector<std::vector<int32_t>> prompts;
};

Pair open(const std::string& models, const std::string& plugin) {
  Pair p;
  ModelOptions options;
  options.kv_positions = 8192;
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

// All texts, one after another, in which the policy goes on learning.
Sum run(const Pair& p, const Gpu& gpu, const PolicySpec& spec, float temperature, int32_t tokens) {
  Sum sum;
  for (size_t i = 0; i < p.prompts.size(); ++i) {
    SessionOptions o;
    o.drafter = p.drafter;
    o.sampling.temperature = temperature;
    o.sampling.seed = 1;
    o.sampling.stream = static_cast<uint32_t>(i);
    o.ignore_eos = true;
    o.drafts_on_device = true;
    o.tree = spec;
    o.policy = [&] { return std::make_unique<Timed>(take(make_policy(spec)), &sum); };
    o.pass_ms = [&](const Drafter* drafter, int32_t rows) { return drafter ? (rows > 1 ? gpu.draft : gpu.draft_of_one) : gpu.target_ms(rows); };
    auto session = take(Session::create(p.model, o));
    if (const Status s = session->append(p.prompts[i]); !s.ok()) fail(s.message());
    for (size_t n = 0; n < static_cast<size_t>(tokens);) {
      StepResult r;
      if (const Status s = session->step(0, std::chrono::microseconds(0), &r); !s.ok()) fail(s.message());
      n += r.tokens.size();
    }
    sum.draft_passes += static_cast<double>(session->statistics().draft_passes);
  }
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
              "trees, six texts of %d tokens, at the pass times in that file: a target pass takes what one of Llama-3.1-8B's shape took for the\n"
              "power of two of its rows, a draft pass what one of the inflated EAGLE head took (%.3f ms over one row, %.3f over more). Graphs that\n"
              "are made on the way and the walk are not counted. The middle one of three rounds by speed; `auto` goes on learning through all of them.\n"
              "*Measured* is the same file's, of the code of its day.\n\n"
              "| T | tree | speedup | tau | nodes verified | draft passes | verify ms | cycle / its bytes | measured speedup | tau | cycle / its bytes |\n"
              "|---|---|---|---|---|---|---|---|---|---|---|\n", file.c_str(), tokens, tokens, gpu.draft_of_one, gpu.draft);
  for (const float temperature : {0.0f, 1.0f})
    for (const char* tree : {"chain", "eagle2", "cast", "auto"}) {
      std::vector<Sum> rounds;
      for (int32_t i = 0; i < repeats; ++i) rounds.push_back(run(pair, gpu, PolicySpec{tree}, temperature, tokens));
      std::sort(rounds.begin(), rounds.end(), [](const Sum& a, const Sum& b) { return a.tokens / a.ms < b.tokens / b.ms; });
      const Sum& s = rounds[rounds.size() / 2];
      const double drafts = s.draft_passes / s.cycles, bytes = gpu.target_bytes_ms + drafts * gpu.draft_bytes_ms, cycle = s.ms / s.cycles;
      const double draft_ms = std::string(tree) == "chain" ? gpu.draft_of_one : gpu.draft;
      const double first = std::min(drafts, 1.0) * gpu.draft_of_one + std::max(drafts - 1, 0.0) * draft_ms;
      std::printf("| %g | `%s` | %.2f | %.2f | %.1f | %.2f | %.2f | %.2f |", static_cast<double>(temperature), tree, s.tokens / s.ms * gpu.target_ms(1),
                  s.tokens / s.cycles, s.verified / s.cycles, drafts, cycle - first, cycle / bytes);
      const auto at = temperature == 0 ? gpu.measured.find(tree) : gpu.measured.end();
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

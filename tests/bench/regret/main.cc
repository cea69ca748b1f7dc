// regret --model T.aerie --drafter NAME=D.aerie|PLUGIN_ID... [--costs FILE]: every tree policy in simulated time.
// Records what each drafter proposes at every position of texts that the target wrote, and what passes cost here (or
// reads that from FILE, a cost table of the same model), then replays. Prints JSON; tests/bench/regret.py makes the page.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/drafter/measure_drafter.h"
#include "core/model/cost_key.h"
#include "core/text/tokenizer.h"
#include "kernels/cpu/cpu_device.h"
#include "tests/bench/or_fail.h"
#include "tests/bench/regret/replay.h"

namespace {

using namespace aerie;
using namespace aerie::bench;
using nlohmann::ordered_json;

struct Options {
  std::string model, plugins, costs, save_costs, recordings, only;
  std::vector<std::string> drafters;
  std::vector<int32_t> batches{1, 2, 4, 8, 16, 32};
  std::vector<float> temperatures{0, 1};
  int32_t threads = 0, tokens = 192, run = 3000, orders = 4;
  bool quick = false;
};

// `auto` was developed looking at replays of the first half only.
const char* const kHalves[] = {"developed on", "held out"};
const char* const kPrompts[2][12] = {
    {"It was a bright morning, and the old man", "\"I do not believe you,\" said the girl,", "def read_lines(path):\n    ",
     "class Parser:\n    def __init__(self, text):\n        ", "The ship had been three weeks at sea when", "import os\nimport sys\n\n",
     "There was once a king who had", "def main(argv):\n    parser =", "My dear Sir, I have the honour to", "for i in range(10):\n    ",
     "When the door was opened, a tall woman", "import unittest\n\nclass Test"},
    {"The rain fell upon the roof, and nobody", "\"Where have you been all this time?\" asked", "def merge(left, right):\n    ",
     "class Node:\n    def insert(self, key):\n        ", "Captain Lawson turned to the window and", "from collections import defaultdict\n\n",
     "In the year 1815 there lived in a small village", "if __name__ == \"__main__\":\n    ", "She had never loved her cousin, though",
     "try:\n    with open(name) as f:\n", "The forest was dark and silent; the horses", "def test_empty(self):\n    self.assert"}};

struct Fixed {
  std::string name;
  Replay::Maker make;
};

Replay::Maker eagle2(int32_t total, int32_t depth, int32_t top_k = 10) {
  return [=] { return make_eagle2_policy({total, depth - 1, top_k}).value(); };
}
Replay::Maker cast() {
  return [] { return make_cast_policy({}).value(); };
}

// What a cell's best fixed policy is looked for among.
std::vector<Fixed> tuned(bool quick) {
  std::vector<Fixed> all;
  const std::vector<int32_t> totals = quick ? std::vector<int32_t>{4, 8, 16, 32, 60}
                                            : std::vector<int32_t>{4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 60};
  for (const int32_t total : totals)
    for (int32_t depth = 1; depth <= 6; ++depth)
      all.push_back({"eagle2 " + std::to_string(total) + "/" + std::to_string(depth), eagle2(total, depth)});
  for (int32_t n = 1; n <= 6; ++n) all.push_back({"chain " + std::to_string(n), [=] { return make_chain_policy(n); }});
  for (int32_t n = 2; n <= 6; n += 2)
    for (const int32_t k : {2, 4}) all.push_back({"backbone " + std::to_string(n) + "x" + std::to_string(k), [=] { return make_backbone_policy(n, k).value(); }});
  return all;
}

std::vector<Fixed> published() {
  return {{"chain", [] { return make_chain_policy(5); }},
          {"static", [] { return make_eagle_static_policy(); }},
          {"eagle2", [] { return make_eagle2_policy({}).value(); }},
          {"backbone", [] { return make_backbone_policy(7, 10).value(); }}};
}

// Of all orders of the texts.
struct Orders {
  std::vector<Outcome> each;
  Outcome all;
  explicit Orders(std::vector<Outcome> outcomes = {}) : each(std::move(outcomes)) {
    for (const Outcome& o : each) all += o;
  }
  double speed() const { return all.speed(); }
};

struct Best {
  std::string name;
  Orders outcomes;
};

class Bench {
 public:
  explicit Bench(const Options& o) : o_(o) {
    kernels::CpuOptions cpu;
    cpu.threads = o.threads;
    ModelOptions m;
    m.kv_positions = 32 * 1024;
    model_ = take(Model::open(take(kernels::make_cpu_device(cpu)), take(Package::open(o.model)), m));
    const auto tokenizer = take(text::Tokenizer::deserialize(model_->package().blob("tokenizer")));
    for (const auto& half : kPrompts)
      for (const char* p : half) prompts_.push_back(take(tokenizer->encode(p)));
    for (const std::string& d : o.drafters) open(d);
    costs();
  }

  ordered_json run() {
    ordered_json out;
    out["device"] = table_.key.device + ", " + table_.key.isa + ", " + std::to_string(table_.key.threads) + " threads";
    out["model"] = o_.model;
    out["positions"] = prompts_.size() * static_cast<size_t>(o_.tokens);
    out["tokens"] = o_.run;
    out["orders"] = o_.orders;
    out["batches"] = o_.batches;
    for (const float t : o_.temperatures) {
      std::vector<Recording> recordings;
      for (size_t i = 0; i < drafters_.size(); ++i) recordings.push_back(recording(i, t));
      for (size_t half = 0; half < 2; ++half) study(t, half, recordings, &out);
    }
    out["costs"] = ordered_json::parse(cost_table_json(table_));
    return out;
  }

 private:
  Recording recording(size_t drafter, float t) {
    const std::string path = o_.recordings + "/" + names_[drafter] + "-" + std::to_string(static_cast<int>(t * 100));
    Recording out;
    if (o_.recordings.empty() || !load_recording(path, &out)) {
      RecordOptions r;
      r.temperature = t;
      r.tokens = o_.tokens;
      out = take(record(model_, drafters_[drafter], prompts_, r));
      if (!o_.recordings.empty() && !save_recording(out, path)) fail(path + ": cannot write");
      std::fprintf(stderr, "recorded %s at temperature %g\n", names_[drafter].c_str(), static_cast<double>(t));
    }
    if (out.texts.size() != prompts_.size() || out.texts[0].trees.size() != static_cast<size_t>(o_.tokens)) fail(path + ": of another study");
    out.name = names_[drafter];
    return out;
  }

  void study(float t, size_t half, const std::vector<Recording>& whole, ordered_json* out) {
    half_ = kHalves[half];
    std::vector<Recording> recordings;
    for (const Recording& r : whole) {
      const auto first = r.texts.begin() + static_cast<std::ptrdiff_t>(half * std::size(kPrompts[0]));
      recordings.push_back({r.name, r.kind, r.max_depth, {first, first + std::size(kPrompts[0])}});
    }
    const auto drafter = [&](size_t i, double good_until = 1) { return ReplayDrafter{&recordings[i], take(table_.find(drafter_key(*drafters_[i]))), good_until}; };
    for (size_t i = 0; i < recordings.size(); ++i) cells(names_[i], t, {drafter(i)}, out);
    // The first drafter lies from the beginning, or from half-way on.
    cells(names_[0] + ", never right", t, {drafter(0, 0)}, out);
    cells(names_[0] + ", wrong from half-way", t, {drafter(0, 0.5)}, out);
    if (recordings.size() > 1) {
      cells("hostile and good", t, {drafter(1, 0), drafter(0)}, out);
      cells("one goes wrong half-way", t, {drafter(0, 0.5), drafter(1)}, out);
      std::vector<ReplayDrafter> all;
      for (size_t i = 0; i < recordings.size(); ++i) all.push_back(drafter(i));
      cells("all together", t, all, out);
    }
  }

  void open(const std::string& spec) {
    const size_t cut = spec.find('=');
    if (cut == std::string::npos) fail("--drafter NAME=PACKAGE or NAME=PLUGIN_ID");
    const std::string what = spec.substr(cut + 1);
    std::shared_ptr<const Package> package;
    if (std::ifstream(what).good()) package = take(Package::open(what));
    const std::string id = package ? package->drafter() ? package->drafter()->plugin_id : "small_model" : what;
    for (const char* library : {"eagle", "fasteagle", "hydra", "lookahead", "medusa", "ngram", "small_model"})
      for (const PluginKind& kind : take(load_plugin(o_.plugins + "/" + library + ".so")))
        if (id == kind.desc.id) {
          names_.push_back(spec.substr(0, cut));
          drafters_.push_back(take(Drafter::open(model_, kind, package, {})));
          return;
        }
    fail(spec + ": no plugin " + id);
  }

  void costs() {
    if (!o_.costs.empty()) {
      table_ = take(load_cost_table(o_.costs));
      if (const Status s = check_key(table_.key, cost_key(*model_)); !s.ok()) fail(o_.costs + ": " + s.message());
    } else {
      MeasureOptions m;
      m.batches = o_.batches;
      m.contexts = {32, 256};
      if (o_.quick) {
        m.least_samples = 2;
        m.most_samples = 5;
        m.point_ms = 40;
      }
      table_ = take(measure_costs(*model_, drafters_, m, std::chrono::milliseconds(0), {}));
    }
    if (!o_.save_costs.empty())
      check(save_cost_table(table_, o_.save_costs));
  }

  void cells(const std::string& name, float temperature, const std::vector<ReplayDrafter>& drafters, ordered_json* out) {
    if (name.find(o_.only) == std::string::npos) return;
    const size_t n = o_.batches.size();
    std::vector<size_t> begins;
    for (int32_t i = 0; i < o_.orders; ++i) begins.push_back(static_cast<size_t>(i) * std::size(kPrompts[0]) / static_cast<size_t>(o_.orders));
    const auto in_each = [&](auto&& run) {
      std::vector<Outcome> outcomes;
      for (const size_t begin : begins) outcomes.push_back(run(begin));
      return Orders(std::move(outcomes));
    };
    std::vector<Best> best(n);
    std::vector<ordered_json> beside(n);
    // Of several drafters the best one is taken, with the best policy.
    for (const ReplayDrafter& d : drafters) {
      Replay replay(table_.target, {d}, o_.run);
      for (const Fixed& f : tuned(o_.quick)) {
        auto outcomes = replay.run_fixed(f.make, o_.batches, begins);
        for (size_t b = 0; b < n; ++b)
          if (Orders of(std::move(outcomes[b])); of.speed() > best[b].outcomes.speed())
            best[b] = {(drafters.size() > 1 ? d.recording->name + ": " : "") + f.name, std::move(of)};
      }
      if (drafters.size() > 1) continue;
      for (const Fixed& f : published()) {
        const auto outcomes = replay.run_fixed(f.make, o_.batches, begins);
        for (size_t b = 0; b < n; ++b) beside[b][f.name] = Orders(outcomes[b]).speed();
      }
      for (size_t b = 0; b < n; ++b)
        beside[b]["cast"] = in_each([&](size_t begin) { return replay.run(cast(), o_.batches[b], begin); }).speed();
    }
    for (size_t b = 0; b < n; ++b) {
      Replay replay(table_.target, drafters, o_.run);
      const Orders plain = in_each([&](size_t begin) { return replay.run_plain(o_.batches[b], begin); });
      const Orders autos = in_each([&](size_t begin) { return replay.run(make_auto_policy, o_.batches[b], begin); });
      const Orders& rivals = plain.speed() > best[b].outcomes.speed() ? plain : best[b].outcomes;
      const Outcome& ours = autos.all;
      const double rival = rivals.speed();
      ordered_json cell{{"texts", half_}, {"drafter", name}, {"temperature", temperature}, {"batch", o_.batches[b]}, {"plain", plain.speed()}};
      cell["best_fixed"] = best[b].outcomes.speed();
      cell["best_fixed_policy"] = best[b].name;
      cell["published"] = beside[b];
      cell["auto"] = ours.speed();
      cell["auto_tau"] = ours.tokens / ours.cycles;
      cell["auto_nodes"] = ours.nodes / ours.cycles;
      cell["auto_plain_share"] = ours.plain / ours.cycles;
      cell["regret"] = 1 - ours.speed() / rival;
      for (size_t i = 0; i < begins.size(); ++i) cell["regret_by_order"].push_back(1 - autos.each[i].speed() / rivals.each[i].speed());
      std::fprintf(stderr, "%-12s %-34s T %g batch %2d: plain %7.0f, best fixed %7.0f (%s), auto %7.0f (plain %.2f), regret %+.1f %%\n", half_, name.c_str(),
                   static_cast<double>(temperature), o_.batches[b], plain.speed(), best[b].outcomes.speed(), best[b].name.c_str(), ours.speed(),
                   ours.plain / ours.cycles, 100 * (1 - ours.speed() / rival));
      (*out)["cells"].push_back(cell);
    }
  }

  const Options& o_;
  std::shared_ptr<Model> model_;
  std::vector<std::vector<int32_t>> prompts_;
  const char* half_ = "";
  std::vector<std::string> names_;
  std::vector<std::shared_ptr<Drafter>> drafters_;
  CostTable table_;
};

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app{"every tree policy in simulated time"};
  app.add_option("--model", o.model)->required();
  app.add_option("--drafter", o.drafters, "NAME=package or NAME=plugin id; the first one is the one that goes bad")->required();
  app.add_option("--plugins", o.plugins, "absolute path of the drafters' folder")->required();
  app.add_option("--costs", o.costs, "cost table of the same model and drafters; default: measure");
  app.add_option("--save-costs", o.save_costs);
  app.add_option("--recordings", o.recordings, "folder of recordings of the same study: read where there, else written");
  app.add_option("--only", o.only, "cells whose name has this in it");
  app.add_option("--batch", o.batches)->delimiter(',');
  app.add_option("--temperature", o.temperatures)->delimiter(',');
  app.add_option("--threads", o.threads);
  app.add_option("--tokens", o.tokens, "positions recorded of each text");
  app.add_option("--run", o.run, "tokens of each replayed text; 0: only measure the costs");
  app.add_option("--orders", o.orders, "so many times, each beginning with other texts and nothing learned; 12 texts in all")->check(CLI::Range(1, 12));
  app.add_flag("--quick", o.quick, "few fixed policies, rough costs");
  CLI11_PARSE(app, argc, argv);
  Bench bench(o);
  if (o.run > 0) std::printf("%s\n", bench.run().dump(1).c_str());
}

// Cycles of one plan, in which the device draws the tree: the tokens and the trees of sessions whose host draws it.
#include <algorithm>

#include "core/session/batch.h"
#include "support/forwarding_policy.h"
#include "unit/session/reuse_fixtures.h"

namespace aerie::test {
namespace {

struct DeviceCycle : ReuseTest {
  static std::vector<Kind> drawn_from() {  // n-gram drafters are the host's
    auto all = kinds();
    all.resize(7);
    return all;
  }
  static std::vector<PolicySpec> trees() {
    PolicySpec chain, eagle2, small, narrow, backbone, fixed;
    chain.name = "chain";
    fixed.name = "static";
    eagle2.name = small.name = narrow.name = "eagle2";
    narrow.top_k = 1;  // as deep as the drafter's levels, if it has all at once
    small.total = 8;
    small.depth = 2;
    small.top_k = 3;
    backbone.name = "backbone";
    backbone.top_k = 4;
    return {chain, eagle2, small, backbone, fixed, narrow};
  }
  static SessionOptions drawing(std::shared_ptr<Drafter> drafter, float temperature, const PolicySpec& tree, bool on_device) {
    SessionOptions o = options(std::move(drafter), temperature);
    o.tree = tree;
    o.drafts_on_device = on_device;
    return o;
  }
};

// A page table for each pass: together they have to fit where a plan keeps what it is given.
TEST(DeviceDraft, ManyPassesOverALongTextAreTheHosts) {
  DeviceDraft draft;
  const TreeShape chain{1, 0, 64, 64};
  EXPECT_TRUE(draft.begin(chain, false, 32000));
  EXPECT_FALSE(draft.begin(chain, false, 64000));
  EXPECT_FALSE(draft.on());
  EXPECT_TRUE(draft.begin(chain, true, 64000)) << "one pass has one";
  EXPECT_TRUE(draft.begin({1, 0, 5, 5}, false, 256000));
}

// Drafters that were trained for their target, so that trees are walked deeply.
TEST_F(DeviceCycle, TokensAndTreesAreTheHosts) {
  const std::string models = source_dir() + "/samples/models/";
  const auto model = open_model(models + "demo.aerie", cpu(1));
  for (const char* kind : {"eagle", "eagle3", "fasteagle", "dflash", "medusa", "hydra"})
    for (const PolicySpec& tree : trees())
      for (const float temperature : {0.0f, 0.9f}) {
        const auto text = [&](bool on_device) {
          const std::string plugin = library_of(kind);
          auto s = begun(model, drawing(open_drafter(model, plugin, models + "demo-" + kind + ".aerie"), temperature, tree, on_device),
                         {260, 513, 1021, 88, 300, 47});
          auto tokens_and_counts = more(*s, 48);
          EXPECT_GT(s->statistics().accepted, 0u);
          EXPECT_GT(s->statistics().draft_ns, 0u);
          EXPECT_GT(s->statistics().verify_ns, 0u);
          tokens_and_counts.second.push_back(s->statistics().draft_passes);  // what no node is left for is passed over
          return tokens_and_counts;
        };
        EXPECT_EQ(text(true), text(false)) << kind << " " << tree.name << " at " << temperature;
      }
}

// What a policy was told and said, cycle by cycle.
struct Watch {
  int32_t drawn = 0, full = 0, verified = 0, asked = 0, room = 0;
  bool ties = false;  // nodes that are worth the same are others on the device: of lists for all levels, by auto's beliefs
};
// What the device verified is what the policy says when it is asked afterwards.
class Watched final : public ForwardingPolicy {
 public:
  Watched(std::unique_ptr<TreePolicy> policy, Watch* watch) : ForwardingPolicy(std::move(policy)), watch_(*watch) {}
  std::unique_ptr<TreePolicy> clone() const override { return std::make_unique<Watched>(policy().clone(), &watch_); }
  void begin(const CycleLimits& limits) override {
    watch_.room = 0;
    ForwardingPolicy::begin(limits);
  }
  void drawn_in(int32_t rows, int32_t levels) override {
    watch_.room = rows;
    ForwardingPolicy::drawn_in(rows, levels);
  }
  bool expand(const DraftTree& tree, std::vector<int32_t>* frontier) override {
    const bool asks = ForwardingPolicy::expand(tree, frontier);
    watch_.asked += asks;
    return asks;
  }
  void select(const DraftTree& tree, std::vector<int32_t>* selected) override {
    ForwardingPolicy::select(tree, selected);
    said_ = *selected;
    std::sort(said_.begin(), said_.end());
  }
  void outcome(const DraftTree& tree, const CycleOutcome& o) override {
    ForwardingPolicy::outcome(tree, o);
    if (watch_.room == 0) return;
    std::vector<int32_t> verified(o.verified.begin(), o.verified.end());
    std::sort(verified.begin(), verified.end());
    EXPECT_EQ(verified.size(), said_.size());
    if (!watch_.ties) {
      EXPECT_EQ(verified, said_);
    }
    ++watch_.drawn;
    watch_.verified += static_cast<int32_t>(verified.size());
    watch_.full += static_cast<int32_t>(verified.size()) + 1 == watch_.room;
  }

 private:
  Watch& watch_;
  std::vector<int32_t> said_;
};

// Policies that weigh costs. Passes cost what is said here, so that nothing but the tree could make a difference.
TEST_F(DeviceCycle, WhatWeighsCostsFillsARoomThatPays) {
  const std::string models = source_dir() + "/samples/models/";
  const auto model = open_model(models + "demo.aerie", cpu(1));
  for (const char* kind : {"eagle3", "fasteagle"})
    for (const char* tree : {"cast", "auto"})
      for (const float temperature : {0.0f, 0.9f}) {
        const auto drawn = [&](double row_ms, double draft_ms, bool on_device) {
          SCOPED_TRACE(std::string(tree) + " of " + kind + " at " + std::to_string(temperature) + ", rows " + std::to_string(row_ms) + ", drafts " +
                       std::to_string(draft_ms));
          Watch watch;
          watch.ties = kind == std::string("fasteagle") && tree == std::string("auto");
          PolicySpec spec;
          spec.name = tree;
          const std::string plugin = library_of(kind);
          SessionOptions o = drawing(open_drafter(model, plugin, models + "demo-" + kind + ".aerie"), temperature, spec, on_device);
          o.policy = [&] { return std::make_unique<Watched>(must(make_policy(spec)), &watch); };
          o.pass_ms = [=](const Drafter* drafter, int32_t rows) { return drafter ? draft_ms : 1 + row_ms * rows; };
          auto s = begun(model, o, {260, 513, 1021, 88, 300, 47});
          const auto tokens = more(*s, 160).first;
          EXPECT_GT(s->statistics().accepted, 0u);
          EXPECT_EQ(s->statistics().drafter_failures, 0u);
          if (on_device) {
            EXPECT_GT(watch.drawn, 5);
            if (row_ms > 0.01) {  // else there are more rows than nodes
              EXPECT_GT(watch.full, 0.6 * watch.drawn) << "rows that are paid for";
            }
            // Of a level that is asked about and was not drawn, since trees were flatter so far, there is no pass.
            EXPECT_LE(s->statistics().draft_passes, static_cast<uint64_t>(watch.asked)) << "none in vain";
            EXPECT_GT(static_cast<double>(s->statistics().draft_passes), 0.8 * watch.asked);
          }
          return std::pair{tokens, watch};
        };
        const auto mean = [](const Watch& w) { return static_cast<double>(w.verified) / w.drawn; };
        const auto text = drawn(0.02, 0.02, false).first;
        const auto dear = drawn(0.2, 0.02, true), usual = drawn(0.02, 0.02, true), cheap = drawn(0.0005, 0.02, true);
        for (const auto* run : {&dear, &usual, &cheap}) EXPECT_EQ(run->first, text);
        EXPECT_LT(mean(dear.second), mean(usual.second));
        EXPECT_LT(mean(usual.second), mean(cheap.second));
        if (kind == std::string("fasteagle")) continue;
        const Watch slow = drawn(0.02, 0.3, true).second;  // draft passes
        EXPECT_LT(static_cast<double>(slow.asked) / slow.drawn, static_cast<double>(usual.second.asked) / usual.second.drawn);
      }
}

// A device whose memory the host cannot touch, many budgets, rewinds, and room for little.
TEST_F(DeviceCycle, SlicedRewoundAndShortOfRoom) {
  for (const bool far : {false, true}) {
    const auto device = far ? std::shared_ptr<kernels::Device>(kernels::make_mock_device(must(kernels::make_cpu_device({.threads = 1}))))
                            : cpu(2);
    const auto model = open_model(*target_, device);
    PolicySpec ahead;
    ahead.name = "cast";
    ahead.cast.prune_depth = false;
    for (const PolicySpec& tree : {trees()[1], ahead})
      for (const Kind& kind : drawn_from()) {
        SessionOptions o = drawing(nullptr, 0.7f, tree, true);
        o.pass_ms = [](const Drafter* d, int32_t rows) { return d ? 0.02 : 1 + 0.01 * rows; };
        o.max_context = 60;
        auto alone = begun(model, o, prompt(20));
        const auto want = generate(*alone, 60);  // to the end of the context
        ASSERT_EQ(want.size(), 40u);
        o.drafter = open(model, kind);
        auto s = begun(model, o, prompt(20));
        std::vector<int32_t> got;
        std::mt19937 random(3);
        while (got.size() < want.size()) {
          StepResult r;
          must(s->step(static_cast<int32_t>(random() % 7), std::chrono::microseconds(random() % 3 * 20), &r));
          for (const EmittedToken& t : r.tokens) got.push_back(t.id);
          if (random() % 9 != 0 || got.size() < 4) continue;  // also in mid-cycle
          got.resize(got.size() - 1 - random() % 3);
          must(s->rewind(20 + got.size()));
        }
        EXPECT_EQ(got, want) << kind.plugin;
        EXPECT_EQ(s->statistics().drafter_failures, 0u) << kind.plugin;
        EXPECT_GT(s->statistics().verified, 0u) << kind.plugin;
      }
  }
}

// Beside each other, beside one that reads its prompt and beside trees that the host goes on with.
TEST_F(DeviceCycle, ABatchChangesNothing) {
  const auto model = open_model(*target_, cpu(2));
  for (const Kind& kind : drawn_from()) {
    const auto drafter = open(model, kind);
    std::vector<std::unique_ptr<Session>> sessions;
    std::vector<std::vector<int32_t>> want, got(5);
    for (size_t i = 0; i < 5; ++i) {
      PolicySpec tree = trees()[i];
      if (i == 2) tree.name = "auto";
      SessionOptions o = drawing(nullptr, i % 2 ? 0.0f : 1.2f, tree, true);
      o.sampling.stream = i;
      want.push_back(generate(*begun(model, o, prompt(10 + 15 * i)), 30));
      o.drafter = drafter;
      sessions.push_back(begun(model, o, prompt(10 + 15 * i)));
    }
    for (const int32_t max_rows : {0, 24}) {  // with few rows the host shares them out
      auto batch = must(Batch::create(model, {max_rows}));
      for (auto& s : sessions) must(batch->add(*s));
      const size_t n = max_rows ? 30 : 15;
      while (std::any_of(got.begin(), got.end(), [&](const auto& g) { return g.size() < n; })) {
        must(batch->step(4, std::chrono::microseconds(0)));
        for (size_t i = 0; i < sessions.size(); ++i)
          for (const EmittedToken& t : sessions[i]->result().tokens) got[i].push_back(t.id);
      }
    }
    for (size_t i = 0; i < sessions.size(); ++i) {
      got[i].resize(30);
      EXPECT_EQ(got[i], want[i]) << kind.plugin << " " << i;
      EXPECT_EQ(sessions[i]->statistics().drafter_failures, 0u);
    }
  }
}

// What a drafter said that answers all levels at once comes back behind the target's pass, where a neighbour's prompt is shown
// to its drafter in the same plan. On a device that says so where an address is none of its own.
TEST_F(DeviceCycle, LearnsBesideOneThatReadsItsPrompt) {
  const std::shared_ptr<kernels::Device> mock = kernels::make_mock_device(must(kernels::make_cpu_device({.threads = 1})));
  const auto model = open_model(*target_, mock);
  PolicySpec tree;
  tree.name = "auto";
  for (const char* plugin : {"fasteagle", "medusa"})
    for (const bool shared : {false, true}) {  // the drafter
      SCOPED_TRACE(std::string(plugin) + (shared ? ", shared" : ""));
      const auto all = kinds();
      const Kind kind = *std::find_if(all.begin(), all.end(), [&](const Kind& k) { return k.plugin == plugin; });
      const auto drafter = open(model, kind), other = shared ? drafter : open(model, all[0]);
      SessionOptions o = drawing(nullptr, 1.2f, tree, true);
      o.pass_ms = [](const Drafter* d, int32_t rows) { return d ? 0.02 : 1 + 0.01 * rows; };
      const auto want = generate(*begun(model, o, prompt(10)), 60);
      o.drafter = drafter;
      const auto learning = begun(model, o, prompt(10));
      auto batch = must(Batch::create(model, {0}));
      must(batch->add(*learning));
      std::vector<int32_t> got;
      std::unique_ptr<Session> reading;
      for (int step = 0; got.size() < want.size() && step < 200; ++step) {
        if (step % 3 == 0) {
          if (reading) must(batch->remove(*reading));
          reading = begun(model, drawing(other, 1.2f, trees()[0], true), prompt(40));
          must(batch->add(*reading));
        }
        must(batch->step(0, std::chrono::microseconds(0)));
        for (const EmittedToken& t : learning->result().tokens) got.push_back(t.id);
      }
      ASSERT_GE(got.size(), want.size()) << learning->status().message();
      got.resize(want.size());
      EXPECT_EQ(got, want);
      EXPECT_EQ(learning->statistics().drafter_failures, 0u);
      EXPECT_GT(learning->statistics().verified, 0u);
    }
}

// Batches: each session's trees are what they are on the host, also where all of them share few rows, which the host
// shares out as ever.
TEST_F(DeviceCycle, ABatchHasTheHostsTrees) {
  for (const int32_t max_rows : {0, 24})
    for (const Kind& kind : drawn_from()) {
      const auto texts = [&](bool on_device) {
        const auto model = open_model(*target_, cpu(1));  // without prefixes that others have read
        const auto drafter = open(model, kind);
        auto batch = must(Batch::create(model, {max_rows}));
        std::vector<std::unique_ptr<Session>> sessions;
        auto specs = trees();
        specs.emplace_back().name = "cast";
        for (size_t i = 0; i < specs.size(); ++i) {
          SessionOptions o = drawing(drafter, i % 2 ? 0.0f : 3.0f, specs[i], on_device);  // noise in common lets heads agree
          o.pass_ms = [](const Drafter* d, int32_t rows) { return d ? 0.02 : 1 + 0.01 * rows; };
          o.sampling.stream = i;
          sessions.push_back(begun(model, o, prompt(10 + 15 * i)));
          must(batch->add(*sessions.back()));
        }
        for (int cycle = 0; cycle < 14; ++cycle) must(batch->step(0, std::chrono::microseconds(0)));
        std::vector<std::pair<std::vector<int32_t>, Counts>> all;
        for (const auto& s : sessions) {
          const SessionStatistics& n = s->statistics();
          all.push_back({s->tokens(), {n.accepted, n.cycles, n.verified, n.drafter_failures}});
          all.back().second.insert(all.back().second.end(), std::begin(n.tried), std::end(n.tried));
          all.back().second.insert(all.back().second.end(), std::begin(n.taken), std::end(n.taken));
        }
        return all;
      };
      auto device = texts(true), host = texts(false);
      if (max_rows == 0) {  // cast fills what rows its pass has: other trees, the same text
        const size_t tokens = std::min(device.back().first.size(), host.back().first.size());
        EXPECT_GE(tokens, 100u + 14) << "a token a cycle";
        for (auto* of : {&device, &host}) {
          of->back().first.resize(tokens);
          EXPECT_EQ(of->back().second[3], 0u) << "failures";
          of->back().second.clear();
        }
      }
      EXPECT_EQ(device, host) << kind.plugin << " " << max_rows;
    }
}

// The rule of the papers needs the drafter's whole distribution: the host stays between the passes.
TEST_F(DeviceCycle, OthersGoOnAsBefore) {
  const auto model = open_model(*target_, cpu(1));
  const auto drafter = open(model, kinds()[0]);
  for (const char* name : {"cast", "auto"}) {
    PolicySpec tree;
    tree.name = name;
    auto s = begun(model, drawing(drafter, 0, tree, true), prompt(12));
    EXPECT_EQ(generate(*s, 20), generate(*begun(model, options(nullptr, 0), prompt(12)), 20)) << name;
    EXPECT_EQ(s->statistics().drafter_failures, 0u);
  }
  SessionOptions o = drawing(drafter, 1, trees()[0], true);
  o.sampled_rule = true;
  auto s = begun(model, o, prompt(12));
  EXPECT_EQ(generate(*s, 20).size(), 20u);
  EXPECT_GT(s->statistics().draft_ns, 0u);
}

// A pool that has pages for less than the tree is deep.
TEST_F(DeviceCycle, AsDeepAsThereAreAPoolsPages) {
  ModelOptions few;
  few.kv_positions = 128 + 64;  // the scratch pages of a tree, and two pages
  const auto model = open_model(*target_, cpu(1), few);
  SessionOptions o = drawing(open(model, kinds()[0]), 0, trees()[0], true);
  o.tree.length = 30;
  auto s = begun(model, o, prompt(20));
  const auto want = generate(*begun(open_model(*target_, cpu(1)), options(nullptr, 0), prompt(20)), 40);
  std::vector<int32_t> got;
  Status status;
  while (status.ok() && got.size() < 40) {
    StepResult r;
    status = s->step(0, std::chrono::microseconds(0), &r);
    for (const EmittedToken& t : r.tokens) got.push_back(t.id);
  }
  EXPECT_TRUE(status.ok()) << status.message();
  got.resize(40);
  EXPECT_EQ(got, want);
  EXPECT_EQ(s->statistics().drafter_failures, 0u);
}

}  // namespace
}  // namespace aerie::test

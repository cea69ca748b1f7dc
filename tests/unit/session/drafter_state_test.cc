// What a drafter keeps and what a session counts, whatever was thrown away; limits of one-pass drafters; the sampled
// rule with every kind of head.
#include <functional>
#include <iterator>
#include <map>
#include <utility>

#include "tests/support/models.h"

namespace aerie::test {
namespace {

const std::vector<int32_t> kOpening = {26, 106, 150, 108, 115, 45, 37, 77, 51, 70, 119, 95, 26, 106, 150, 108};
const char* const kHeads[] = {"eagle", "eagle3", "fasteagle", "medusa", "hydra", "hydra_prefix", "eagle3_norms", "eagle3_narrow", "eagle3_deep", "dflash"};

class DrafterState : public testing::Test {
 protected:
  static void SetUpTestSuite() { target_ = new std::string(converted(golden("mha"), "state-target", kernels::DType::int8)); }
  static std::string* target_;

  static std::shared_ptr<Drafter> open(const std::shared_ptr<Model>& model, const std::string& kind) {
    return open_drafter(model, library_of(kind),
                        converted(source_dir() + "/tests/golden/heads/" + kind, "state-" + kind, kernels::DType::bf16, *target_));
  }
};
std::string* DrafterState::target_;

// What the drafter's guesses came to: where its state differs, so does this.
using Counts = std::vector<uint64_t>;
Counts since(const SessionStatistics& before, const SessionStatistics& s) {
  Counts c{s.accepted - before.accepted, s.cycles - before.cycles, s.verified - before.verified,
           s.drafter_failures - before.drafter_failures};
  for (size_t d = 0; d < std::size(s.tried); ++d) {
    c.push_back(s.tried[d] - before.tried[d]);
    c.push_back(s.taken[d] - before.taken[d]);
  }
  return c;
}

// A pass that is thrown away may already have overwritten the features that wait for the drafter.
TEST_F(DrafterState, AnAbandonedPassLeavesNoTrace) {
  const auto model = open_model(*target_, cpu(1));
  for (const char* kind : kHeads) {
    const auto rest = [&](bool abandon) {
      SessionOptions o = options_for(open(model, kind), "eagle2", 0.7f);
      auto session = must(Session::create(model, o));
      must(session->append(kOpening));
      std::vector<int32_t> tokens;
      // One token at a time leaves no room for drafts: the pass itself shows the drafter what it missed.
      const auto step = [&](std::chrono::microseconds budget) {
        StepResult r;
        must(session->step(1, budget, &r));
        for (const EmittedToken& t : r.tokens) tokens.push_back(t.id);
        return !r.tokens.empty();
      };
      while (tokens.size() < 40) {
        bool done = false;  // thrown away ever later, until it ends before it can be
        for (size_t slices = 1; abandon && !done; ++slices) {
          for (size_t i = 0; i < slices && !done; ++i) done = step(std::chrono::microseconds(1));
          must(session->set_sampling(o.sampling));
        }
        if (!done) step(std::chrono::microseconds(0));
      }
      const SessionStatistics before = session->statistics();
      const auto more = generate(*session, 80);
      tokens.insert(tokens.end(), more.begin(), more.end());
      return std::pair(tokens, since(before, session->statistics()));
    };
    EXPECT_EQ(rest(true), rest(false)) << kind;
  }
}

// Whatever tree a text was written under, and however often its policy rested, the drafter is what it would be after
// reading the same text as a prompt. Gives what writing the text took.
SessionStatistics expect_as_fresh(const std::shared_ptr<Model>& model, const std::function<std::shared_ptr<Drafter>()>& drafter,
                     SessionOptions o, const std::vector<int32_t>& prompt, size_t length, const std::string& what) {
  const auto finish = [&](Session& session) {
    PolicySpec eagle2;
    eagle2.name = "eagle2";
    must(session.set_tree(eagle2));
    const SessionStatistics before = session.statistics();
    const auto more = generate(session, 80);
    return std::pair(more, since(before, session.statistics()));
  };
  o.drafter = drafter();
  auto session = must(Session::create(model, o));
  must(session->append(prompt));
  std::vector<int32_t> text = prompt;
  const auto written = generate(*session, length);
  const SessionStatistics writing = session->statistics();
  text.insert(text.end(), written.begin(), written.end());
  o.drafter = drafter();
  auto fresh = must(Session::create(model, o));
  must(fresh->append(text));
  EXPECT_EQ(finish(*session), finish(*fresh)) << what;
  return writing;
}

TEST_F(DrafterState, AfterAnyTreeItIsAsFresh) {
  const auto model = open_model(*target_, cpu(1));
  for (const char* kind : kHeads)
    for (const char* tree : {"chain", "static", "eagle2", "backbone", "cast", "auto"})
      expect_as_fresh(model, [&] { return open(model, kind); }, options_for(nullptr, tree, 0.7f), kOpening, 60,
                      std::string(kind) + " after " + tree);
}

// A rest that follows a tree: the features that wait lie as far apart as the tree's rows did. 60 tokens: no rest is then so
// long (64) that the drafter begins anew behind it.
TEST_F(DrafterState, AfterRestsItIsAsFresh) {
  const std::string models = source_dir() + "/samples/models/";
  const auto model = open_model(models + "demo.aerie", cpu(1));
  uint64_t rests = 0;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    SessionOptions o = options_for(nullptr, "auto", 0.8f, seed);
    o.pass_ms = [](const Drafter*, int32_t rows) { return 1 + 0.05 * rows; };  // drafting hardly pays
    const SessionStatistics s =
        expect_as_fresh(model, [&] { return open_drafter(model, "fasteagle", models + "demo-fasteagle.aerie"); }, o,
                        {260, 513, 1021, 88, 300, 47}, 60, "seed " + std::to_string(seed));
    EXPECT_GT(s.draft_passes, 1u) << "seed " << seed;
    rests += s.plain_cycles;
  }
  EXPECT_GT(rests, 40u) << "it hardly rested";
}

// Behind a drafter's pass the caches hold its weights: one pass of plain decode takes as long as drafting pays for, the ones
// behind it less. Who takes that one for plain decode drafts on for ever.
TEST_F(DrafterState, TheFirstPlainPassBehindDraftsIsNotTakenForPlainDecode) {
  const std::string models = source_dir() + "/samples/models/";
  const auto model = open_model(models + "demo.aerie", cpu(1));
  SessionOptions o = options_for(open_drafter(model, "eagle", models + "demo-eagle3.aerie"), "auto", 1.0f);
  o.ignore_eos = true;
  Session* running = nullptr;
  uint64_t drafts = 0;
  o.pass_ms = [&](const Drafter* drafter, int32_t rows) {
    if (drafter) return 0.3;
    if (rows > 1) return 1.35 + 0.15 * rows;
    if (!running) return 1.19;  // as it was measured first
    return std::exchange(drafts, running->statistics().draft_passes) < running->statistics().draft_passes ? 1.19 : 1.0;
  };
  auto session = must(Session::create(model, o));
  must(session->append(std::vector<int32_t>{260, 513, 1021, 88, 300, 47}));
  generate(*session, 8);
  running = session.get();
  uint64_t cycles = 0, plain = 0;
  for (int text = 0; text < 24; ++text) {
    must(session->rewind(6));
    const SessionStatistics before = session->statistics();
    generate(*session, 200);
    if (text < 20) continue;
    cycles += session->statistics().cycles - before.cycles;
    plain += session->statistics().plain_cycles - before.plain_cycles;
  }
  EXPECT_GT(plain, cycles * 3 / 4);
}

// Every verified node was offered, however many calls it took to offer it.
TEST_F(DrafterState, ProposedNodesAreCounted) {
  const auto model = open_model(*target_, cpu(1));
  for (const char* kind : kHeads)
    for (const char* tree : {"chain", "static", "eagle2", "backbone"}) {
      auto session = must(Session::create(model, options_for(open(model, kind), tree, 0)));
      must(session->append(kOpening));
      generate(*session, 40);
      const SessionStatistics& s = session->statistics();
      EXPECT_GE(s.proposed, s.verified) << kind << " " << tree;
    }
}

// Depth is a limit of the tree, though a one-pass drafter has deeper levels ready.
TEST_F(DrafterState, Eagle2DepthBindsOnePassDrafters) {
  const auto model = open_model(*target_, cpu(1));
  for (const char* kind : {"fasteagle", "medusa", "dflash"})
    for (const int32_t depth : {0, 1}) {
      SessionOptions o = options_for(open(model, kind), "eagle2", 0);
      o.tree.depth = depth;
      auto session = must(Session::create(model, o));
      must(session->append(kOpening));
      generate(*session, 60);
      const SessionStatistics& s = session->statistics();
      EXPECT_GT(s.verified, 0u);
      EXPECT_EQ(s.tried[depth + 1], 0u) << kind << " depth " << depth;
      EXPECT_LE(s.verified, s.cycles * static_cast<uint64_t>(depth == 0 ? o.tree.top_k : o.tree.total - 1));
    }
}

// More children asked for than the draft vocabulary has tokens.
TEST_F(DrafterState, ASmallDraftVocabularyHasFewerChildren) {
  const auto model = open_model(*target_, cpu(1));
  for (const char* tree : {"eagle2", "backbone"})
    for (const bool shared_noise : {true, false}) {
      SessionOptions o = options_for(nullptr, tree, 0.8f);
      o.shared_noise = shared_noise;
      o.tree.total = 128;
      o.tree.top_k = 100;
      auto alone = must(Session::create(model, o));
      must(alone->append(kOpening));
      o.drafter = open(model, "eagle3");
      auto session = must(Session::create(model, o));
      must(session->append(kOpening));
      EXPECT_EQ(generate(*session, 40), generate(*alone, 40));
      EXPECT_EQ(session->statistics().drafter_failures, 0u);
      EXPECT_GE(session->statistics().verified, 60 * (session->statistics().cycles - 2));
    }
}

// The papers' rule with every kind of head: the law of two tokens is that of plain sampling (two samples, chi-square).
TEST_F(DrafterState, SampledRuleHasTheTargetsLaw) {
  constexpr uint64_t kRuns = 2500;
  const auto model = open_model(*target_, cpu(1));
  using Histogram = std::map<std::vector<int32_t>, double>;
  const auto sample = [&](const char* kind, const char* tree) {
    SessionOptions o = options_for(kind ? open(model, kind) : nullptr, tree, 1.0f);
    o.sampled_rule = kind != nullptr;
    o.sampling.top_k = 5;
    auto session = must(Session::create(model, o));
    must(session->append(kOpening));
    Histogram h;
    for (uint64_t seed = 0; seed < kRuns; ++seed) {
      o.sampling.seed = seed + (kind ? 1000000 : 0);
      must(session->set_sampling(o.sampling));
      std::vector<int32_t> text;
      while (text.size() < 2) {
        StepResult r;
        must(session->step(0, std::chrono::microseconds(0), &r));
        for (const EmittedToken& t : r.tokens) text.push_back(t.id);
      }
      text.resize(2);
      h[text] += 1;
      must(session->rewind(kOpening.size()));
    }
    EXPECT_EQ(session->statistics().drafter_failures, 0u);
    EXPECT_EQ(session->statistics().verified > kRuns, kind != nullptr);
    return h;
  };
  const Histogram plain = sample(nullptr, "chain");
  ASSERT_GE(plain.size(), 20u);
  for (const auto& [kind, tree] : {std::pair<const char*, const char*>{"fasteagle", "static"}, {"eagle3", "chain"},
                                   {"eagle3", "static"}, {"medusa", "chain"}, {"medusa", "static"}, {"hydra", "static"}}) {
    const Histogram drafted = sample(kind, tree);
    double chi2 = 0;
    size_t cells = 0;
    Histogram all = plain;
    for (const auto& [text, n] : drafted) all[text] += n;
    for (const auto& [text, n] : all) {
      const auto a = plain.find(text), b = drafted.find(text);
      const double x = a == plain.end() ? 0 : a->second, y = b == drafted.end() ? 0 : b->second;
      chi2 += (x - y) * (x - y) / n;
      ++cells;
    }
    // Mean `cells - 1`, deviation sqrt(2 (cells - 1)): five deviations.
    const auto freedom = static_cast<double>(cells - 1);
    EXPECT_LT(chi2, freedom + 5 * std::sqrt(2 * freedom)) << kind << " " << tree << " over " << cells << " cells";
  }
}

}  // namespace
}  // namespace aerie::test

// Same seed, same text: whatever drafts, however it is stepped.
#include <array>
#include <cfenv>
#include <cstring>
#include <set>

#include "core/package/rope_frequencies.h"
#include "core/platform/file.h"
#include "tests/support/models.h"

namespace aerie::test {
namespace {

// A host's rounding is its own business; what a model computes when it is opened, and what is written into packages, is not.
TEST(Rounding, IsNotTheHosts) {
  RopeScaling llama3;
  llama3.kind = RopeScaling::Kind::llama3;
  llama3.factor = 8;
  llama3.low_freq_factor = 1;
  llama3.high_freq_factor = 4;
  llama3.original_context = 8192;
  const std::vector<float> plain = rope_inverse_frequencies(64, 10000, {}), scaled = rope_inverse_frequencies(128, 500000, llama3);
  const auto package = must(platform::read_file(converted(golden("mha"), "rounding-nearest", kernels::DType::int8), 1 << 30));
  for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    std::fesetround(mode);
    const std::vector<float> a = rope_inverse_frequencies(64, 10000, {}), b = rope_inverse_frequencies(128, 500000, llama3);
    const std::string other = converted(golden("mha"), "rounding-" + std::to_string(mode), kernels::DType::int8);
    const int after = std::fegetround();
    std::fesetround(FE_TONEAREST);
    EXPECT_EQ(a, plain);
    EXPECT_EQ(b, scaled);
    EXPECT_EQ(must(platform::read_file(other, 1 << 30)), package);
    EXPECT_EQ(after, mode);
  }
}

// Nor what a step computes, wherever it does: heads of 8 have a scale that is rounded.
TEST(Rounding, OfTheHostReachesNoTextAndNoLogprob) {
  const std::string target = converted(golden("mha"), "rounding-target", kernels::DType::f32);
  const auto model = open_model(target, cpu(1));
  const auto eagle = open_drafter(model, "eagle", converted(golden("eagle_mha"), "rounding-eagle", kernels::DType::f32, target));
  for (const bool sampled : {false, true}) {
    std::vector<std::pair<int32_t, float>> want;
    for (const int mode : {FE_TONEAREST, FE_UPWARD, FE_TOWARDZERO}) {
      SessionOptions o;
      o.drafter = eagle;
      if (sampled) o.sampled_rule = true, o.tree.name = "chain";
      o.sampling.temperature = 0.9f;
      o.sampling.seed = 3;
      o.ignore_eos = true;
      auto session = must(Session::create(model, o));
      std::fesetround(mode);
      const Status prompted = session->append(std::vector<int32_t>{26, 106, 150});
      std::vector<std::pair<int32_t, float>> got;
      Status stepped;
      while (stepped.ok() && got.size() < 40) {
        StepResult r;
        stepped = session->step(static_cast<int32_t>(40 - got.size()), std::chrono::microseconds(0), &r);
        for (const EmittedToken& t : r.tokens) got.emplace_back(t.id, t.logprob);
      }
      std::fesetround(FE_TONEAREST);
      must(prompted);
      must(stepped);
      if (mode == FE_TONEAREST) want = got;
      EXPECT_EQ(got, want) << (sampled ? "sampled" : "exact");
    }
  }
}

struct Setting {
  float temperature = 0, top_p = 1, min_p = 0;
  int32_t top_k = 0;
};
const Setting kSettings[] = {{0, 1, 0, 0}, {0.7f, 1, 0, 0}, {1.0f, 1, 0, 0}, {1.0f, 0.9f, 0, 0}, {0.8f, 1, 0.05f, 20}};

SessionOptions options(const Setting& s, uint64_t seed) {
  SessionOptions o;
  o.sampling.temperature = s.temperature;
  o.sampling.top_p = s.top_p;
  o.sampling.min_p = s.min_p;
  o.sampling.top_k = s.top_k;
  o.sampling.seed = seed;
  o.ignore_eos = true;
  return o;
}

std::vector<PolicySpec> trees() {
  PolicySpec chain, fixed, eagle2, small;
  chain.name = "chain";
  fixed.name = "static";
  eagle2.name = "eagle2";
  eagle2.total = 40;
  small.name = "eagle2";
  small.total = 5;
  small.depth = 2;
  small.top_k = 3;
  PolicySpec backbone;
  backbone.name = "backbone";
  backbone.top_k = 4;
  PolicySpec cast, automatic;
  cast.name = "cast";
  cast.cast.threshold = 1;
  automatic.name = "auto";
  return {chain, fixed, eagle2, small, backbone, cast, automatic};
}

const std::vector<int32_t> kPrompt = {26, 106, 150, 108, 115, 45, 37, 77, 51, 70, 119, 95, 26, 106, 150, 108};

std::vector<int32_t> plain(const std::string& path, const Setting& s, uint64_t seed, size_t n) {
  auto session = must(Session::create(open_model(path, cpu(1)), options(s, seed)));
  must(session->append(kPrompt));
  return generate(*session, n);
}

class Exactness : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    target_ = new std::string(converted(golden("mha"), "exact-target", kernels::DType::int8));
    eagle_ = new std::string(converted(golden("eagle_mha"), "exact-eagle", kernels::DType::bf16, *target_));
    small_ = new std::string(converted(golden("mha"), "exact-small", kernels::DType::int4));
  }
  static std::string *target_, *eagle_, *small_;
  struct Choice {
    const char* plugin;
    std::string package;
  };
  static std::vector<Choice> drafters() {
    std::vector<Choice> all = {{"eagle", *eagle_}, {"small_model", *small_}, {"ngram", ""}};
    for (const auto& [library, kind] : {std::pair<const char*, const char*>{"eagle", "eagle3"}, {"fasteagle", "fasteagle"},
                                        {"medusa", "medusa"}, {"hydra", "hydra"}, {"hydra", "hydra_prefix"}, {"eagle", "eagle3_norms"},
                                        {"eagle", "eagle3_narrow"}, {"eagle", "eagle3_deep"}, {"dflash", "dflash"}})
      all.push_back({library, converted(source_dir() + "/tests/golden/heads/" + kind, std::string("exact-") + kind,
                                        std::strchr(kind, '_') ? kernels::DType::bf16 : kernels::DType::q4_1, *target_)});
    return all;
  }
};
std::string *Exactness::target_, *Exactness::eagle_, *Exactness::small_;

TEST_F(Exactness, EveryDrafterTreeNoiseAndTemperature) {
  std::vector<std::vector<int32_t>> want;
  for (const Setting& setting : kSettings) want.push_back(plain(*target_, setting, 7, 60));
  for (const int threads : {1, 2}) {
    const auto model = open_model(*target_, cpu(threads));
    for (const Choice& c : drafters()) {
      const auto drafter = open_drafter(model, c.plugin, c.package);
      const auto check = [&](const PolicySpec& tree, bool shared_noise, size_t setting) {
        SessionOptions o = options(kSettings[setting], 7);
        o.drafter = drafter;
        o.tree = tree;
        o.shared_noise = shared_noise;
        auto session = must(Session::create(model, o));
        must(session->append(kPrompt));
        ASSERT_EQ(generate(*session, 60), want[setting]) << c.plugin << " " << tree.name << " shared " << shared_noise
                                                         << " temperature " << o.sampling.temperature;
        EXPECT_EQ(session->statistics().drafter_failures, 0u) << c.plugin;
      };
      for (const PolicySpec& tree : trees())
        for (const bool shared_noise : {true, false})
          for (size_t setting = 0; setting < want.size(); ++setting) {
            ASSERT_EQ(want[setting].size(), 60u);
            ASSERT_NO_FATAL_FAILURE(check(tree, shared_noise, setting));
          }
    }
  }
}

// The same model in four bits agrees often: a drafter that is never right would make the test above empty.
TEST_F(Exactness, DraftsAreAccepted) {
  const auto model = open_model(*target_, cpu(2));
  SessionOptions o = options(kSettings[2], 3);
  o.drafter = open_drafter(model, "small_model", *small_);
  o.tree.name = "chain";
  auto session = must(Session::create(model, o));
  must(session->append(kPrompt));
  generate(*session, 200);
  const SessionStatistics& s = session->statistics();
  EXPECT_GT(s.accepted, s.cycles) << "more than one accepted token a cycle";
  EXPECT_EQ(s.accepted + s.cycles, s.emitted);
}

TEST_F(Exactness, ChunksBudgetsRewindsAndLimits) {
  const auto want = plain(*target_, kSettings[1], 11, 80);
  const auto model = open_model(*target_, cpu(2));
  std::mt19937 random(5);
  for (const Choice& c : drafters()) {
    SessionOptions o = options(kSettings[1], 11);
    o.drafter = open_drafter(model, c.plugin, c.package);
    auto session = must(Session::create(model, o));
    for (int round = 0; round < 6; ++round) {
      // The prompt in random pieces, some with steps of zero work in between.
      must(session->rewind(0));
      for (size_t at = 0; at < kPrompt.size();) {
        const size_t n = std::min<size_t>(1 + random() % 5, kPrompt.size() - at);
        must(session->append({kPrompt.data() + at, n}));
        at += n;
      }
      std::vector<int32_t> got;
      while (got.size() < want.size()) {
        StepResult r;
        const auto left = static_cast<int32_t>(want.size() - got.size());
        must(session->step(std::min<int32_t>(left, 1 + static_cast<int32_t>(random() % 9)),
                           std::chrono::microseconds(random() % 3), &r));
        for (const EmittedToken& t : r.tokens) got.push_back(t.id);
        if (random() % 7 == 0 && got.size() > 3) {  // also in mid-cycle
          got.resize(got.size() - 1 - random() % 3);
          must(session->rewind(kPrompt.size() + got.size()));
        }
      }
      ASSERT_EQ(got, want) << c.plugin << " round " << round;
    }
  }
}

// What a drafter has kept decides what it proposes: accepted tokens, cycles and proposals must be those of a
// session that never went back.
TEST_F(Exactness, DrafterStateAfterRewindIsAsFresh) {
  const auto model = open_model(*target_, cpu(1));
  SessionOptions o = options(kSettings[1], 11);
  o.tree.name = "chain";
  for (const Choice& c : drafters()) {
    const auto acceptance = [&](bool rewind) {
      o.drafter = open_drafter(model, c.plugin, c.package);
      auto session = must(Session::create(model, o));
      must(session->append(kPrompt));
      if (rewind) {
        generate(*session, 40);
        must(session->rewind(kPrompt.size() - 4));
        must(session->append({kPrompt.data() + kPrompt.size() - 4, 4}));
      }
      const uint64_t before = session->statistics().accepted, cycles = session->statistics().cycles;
      generate(*session, 100);
      return std::pair(session->statistics().accepted - before, session->statistics().cycles - cycles);
    };
    EXPECT_EQ(acceptance(false), acceptance(true)) << c.plugin;
  }
}

// One token at a time leaves no room for drafts. The drafter sees the tokens all the same, and drafts afterwards as
// well as one that was there from the start.
TEST_F(Exactness, ADrafterCatchesUpAfterAPause) {
  const auto model = open_model(*target_, cpu(1));
  SessionOptions o = options(kSettings[0], 11);
  const auto want = plain(*target_, kSettings[0], 11, 90);
  for (const Choice& c : drafters()) {
    const auto rest = [&](bool pause) {
      o.drafter = open_drafter(model, c.plugin, c.package);
      auto session = must(Session::create(model, o));
      std::vector<int32_t> prompt = kPrompt;
      if (!pause) prompt.insert(prompt.end(), want.begin(), want.begin() + 30);
      must(session->append(prompt));
      if (pause) {
        EXPECT_EQ(generate(*session, 30, 1), std::vector<int32_t>(want.begin(), want.begin() + 30));
      }
      const SessionStatistics before = session->statistics();
      EXPECT_EQ(generate(*session, 60), std::vector<int32_t>(want.begin() + 30, want.end())) << c.plugin;
      const SessionStatistics& s = session->statistics();
      EXPECT_EQ(s.drafter_failures, 0u) << c.plugin;
      return std::array{s.accepted - before.accepted, s.cycles - before.cycles, s.verified - before.verified};
    };
    EXPECT_EQ(rest(true), rest(false)) << c.plugin;
  }
}

// While `auto` rests, what the drafter has not seen piles up and is shown to it later: a tree that takes over in mid-text
// is drafted as if it had been there from the start. A high temperature lets even random heads agree with the target,
// through the noise they share.
TEST_F(Exactness, ADrafterCatchesUpAfterARest) {
  const auto model = open_model(*target_, cpu(1));
  const Setting hot{3.0f, 1, 0, 0};
  PolicySpec automatic, chain;
  automatic.name = "auto";
  chain.name = "chain";
  const auto want = plain(*target_, hot, 5, 100);
  for (const Choice& c : drafters()) {
    const auto rest = [&](size_t rested) {
      SessionOptions o = options(hot, 5);
      o.drafter = open_drafter(model, c.plugin, c.package);
      o.tree = automatic;
      auto session = must(Session::create(model, o));
      std::vector<int32_t> prompt = kPrompt;
      prompt.insert(prompt.end(), want.begin(), want.begin() + 60 - static_cast<int64_t>(rested));
      must(session->append(prompt));
      generate(*session, rested);
      must(session->set_tree(chain));
      const SessionStatistics before = session->statistics();
      EXPECT_EQ(generate(*session, 40), std::vector<int32_t>(want.begin() + 60, want.end())) << c.plugin;
      const SessionStatistics& s = session->statistics();
      EXPECT_EQ(s.drafter_failures, 0u) << c.plugin;
      return std::array{s.accepted - before.accepted, s.cycles - before.cycles};
    };
    const auto fresh = rest(0);
    EXPECT_EQ(rest(60), fresh) << c.plugin;
    if (std::string(c.plugin) != "ngram") {
      EXPECT_GT(fresh[0], 5u) << c.plugin << ": nothing was accepted, nothing compared";
    }
  }
}

// Sessions that share a drafter do not disturb each other: texts and acceptance are those of a session alone, however
// their steps interleave.
TEST_F(Exactness, SessionsShareADrafter) {
  const auto model = open_model(*target_, cpu(2));
  std::vector<Choice> all = drafters();
  all.push_back({"lookahead", ""});
  for (const Choice& c : all) {
    const auto start = [&](const std::shared_ptr<Drafter>& drafter, uint64_t seed) {
      SessionOptions o = options(kSettings[1], seed);
      o.drafter = drafter;
      auto session = must(Session::create(model, o));
      must(session->append({kPrompt.data(), 6 + static_cast<size_t>(seed)}));
      return session;
    };
    std::vector<std::vector<int32_t>> want;
    std::vector<uint64_t> accepted;
    for (uint64_t seed = 0; seed < 3; ++seed) {
      auto alone = start(open_drafter(model, c.plugin, c.package), seed);
      want.push_back(generate(*alone, 40));
      accepted.push_back(alone->statistics().accepted);
    }
    const auto drafter = open_drafter(model, c.plugin, c.package);
    std::vector<std::unique_ptr<Session>> sessions;
    for (uint64_t seed = 0; seed < 3; ++seed) sessions.push_back(start(drafter, seed));
    std::vector<std::vector<int32_t>> got(3);
    for (bool more = true; more;) {
      more = false;
      for (size_t i = 0; i < 3; ++i) {
        if (got[i].size() >= 40) continue;
        StepResult r;  // a slice at a time: the others run in mid-cycle
        must(sessions[i]->step(static_cast<int32_t>(40 - got[i].size()), std::chrono::microseconds(1), &r));
        for (const EmittedToken& t : r.tokens) got[i].push_back(t.id);
        more = true;
      }
    }
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(got[i], want[i]) << c.plugin;
      EXPECT_EQ(sessions[i]->statistics().accepted, accepted[i]) << c.plugin;
    }
  }
}

// All levels of a one-pass drafter come from one call; a level-by-level one needs a call each.
TEST_F(Exactness, OnePassDraftersAreAskedOnceACycle) {
  const auto model = open_model(*target_, cpu(1));
  for (const Choice& c : drafters())
    for (const PolicySpec& tree : trees()) {
      SessionOptions o = options(kSettings[0], 11);
      o.drafter = open_drafter(model, c.plugin, c.package);
      o.tree = tree;
      auto session = must(Session::create(model, o));
      must(session->append(kPrompt));
      generate(*session, 40);
      const SessionStatistics& s = session->statistics();
      if (o.drafter->needs().levels > 1) {
        EXPECT_LE(s.draft_passes, s.cycles) << c.plugin << " " << tree.name;
      }
      const bool own_size = tree.name == "cast" || tree.name == "auto";  // may choose no draft at all
      if (!o.drafter->host_tokens() && !own_size) {
        EXPECT_GT(s.verified, s.cycles) << c.plugin << " " << tree.name;
      }
    }
}

TEST_F(Exactness, StopsLimitsAndContext) {
  const auto model = open_model(*target_, cpu(1));
  SessionOptions o = options(kSettings[0], 1);
  o.drafter = open_drafter(model, "small_model", *small_);
  const auto want = plain(*target_, kSettings[0], 1, 30);
  o.stop_tokens = {want[10]};
  auto session = must(Session::create(model, o));
  must(session->append(kPrompt));
  const auto got = generate(*session, 30);
  const auto first = static_cast<size_t>(std::find(want.begin(), want.end(), want[10]) - want.begin());
  EXPECT_EQ(got, std::vector<int32_t>(want.begin(), want.begin() + static_cast<int64_t>(first) + 1));
  o.stop_tokens.clear();
  o.max_context = 24;
  session = must(Session::create(model, o));
  must(session->append(kPrompt));
  EXPECT_EQ(generate(*session, 30).size(), 24 - kPrompt.size());
  StepResult r;
  must(session->step(0, std::chrono::microseconds(0), &r));
  EXPECT_EQ(r.state, StepState::done);
  EXPECT_EQ(r.finish, Finish::context);
  EXPECT_EQ(session->append(kPrompt).code(), Code::limit);
}

TEST_F(Exactness, CancelLosesNothing) {
  const auto model = open_model(*target_, cpu(1));
  const auto want = plain(*target_, kSettings[1], 2, 20);
  auto session = must(Session::create(model, options(kSettings[1], 2)));
  must(session->append(kPrompt));
  std::vector<int32_t> got = generate(*session, 5);
  session->request_cancel();
  StepResult r;
  EXPECT_EQ(session->step(0, std::chrono::microseconds(0), &r).code(), Code::cancelled);
  const auto rest = generate(*session, 15);
  got.insert(got.end(), rest.begin(), rest.end());
  EXPECT_EQ(got, want);
}

TEST_F(Exactness, KvBudgetIsAnErrorAndNothingIsLost) {
  ModelOptions m;
  m.kv_positions = 192;  // 128 of them are tree slots
  const auto model = open_model(*target_, cpu(1), m);
  auto session = must(Session::create(model, options(kSettings[1], 2)));
  must(session->append(std::vector<int32_t>(40, 5)));
  std::vector<int32_t> got;
  Status s;
  while (s.ok() && got.size() < 60) {
    StepResult r;
    s = session->step(0, std::chrono::microseconds(0), &r);
    for (const EmittedToken& t : r.tokens) got.push_back(t.id);
  }
  EXPECT_EQ(s.code(), Code::limit) << s.message();
  EXPECT_EQ(session->tokens().size(), 40 + got.size());
  must(session->rewind(30));  // room again
  EXPECT_EQ(generate(*session, 5).size(), 5u);
}

TEST_F(Exactness, SampledRuleRunsAndRefusesRerankedTrees) {
  const auto model = open_model(*target_, cpu(1));
  SessionOptions o = options(kSettings[2], 4);
  o.drafter = open_drafter(model, "small_model", *small_);
  o.sampled_rule = true;
  EXPECT_EQ(Session::create(model, o).status().code(), Code::unsupported);
  for (const char* tree : {"chain", "static"}) {
    o.tree.name = tree;
    auto session = must(Session::create(model, o));
    must(session->append(kPrompt));
    EXPECT_EQ(generate(*session, 100).size(), 100u);
    EXPECT_GT(session->statistics().accepted, 0u);
    EXPECT_EQ(session->statistics().drafter_failures, 0u);
  }
}

TEST_F(Exactness, WrongPackagesAreRefusedByName) {
  const auto other = open_model(converted(golden("gqa_tied"), "other", kernels::DType::f32), cpu(1));
  auto kinds = must(load_plugin(drafter_library("eagle")));
  const auto r = Drafter::open(other, kinds[0], must(Package::open(*eagle_)), {});
  EXPECT_EQ(r.status().code(), Code::mismatch);
  EXPECT_NE(r.status().message().find("target fingerprint"), std::string::npos) << r.status().message();
  kinds = must(load_plugin(drafter_library("small_model")));
  const auto v = Drafter::open(other, kinds[0], must(Package::open(*small_)), {});
  EXPECT_EQ(v.status().code(), Code::mismatch);
  EXPECT_NE(v.status().message().find("vocabulary"), std::string::npos) << v.status().message();
}

}  // namespace
}  // namespace aerie::test

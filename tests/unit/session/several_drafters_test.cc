// A session with several drafters: the text is the same, `auto` goes to the better one, and no one falls behind.
#include <array>
#include <random>

#include "tests/support/models.h"

namespace aerie::test {
namespace {

const std::vector<int32_t> kStart = {26, 106, 150, 108, 115, 45, 37, 77, 51, 70, 119, 95, 26, 106, 150, 108};

std::string several_target() {
  static const std::string path = converted(golden("mha"), "several-target", kernels::DType::int8);
  return path;
}
std::shared_ptr<Drafter> head(const std::shared_ptr<Model>& model, const std::string& kind) {
  return open_drafter(model, library_of(kind),
                      converted(source_dir() + "/tests/golden/heads/" + kind, "several-" + kind, kernels::DType::bf16, several_target()));
}
// The target as its own draft model: at temperature 0 nearly always right.
std::shared_ptr<Drafter> itself(const std::shared_ptr<Model>& model) { return open_drafter(model, "small_model", several_target()); }

std::shared_ptr<Drafter> test_plugin(const std::shared_ptr<Model>& model, const std::string& id, const DrafterOptions& options = {}) {
  const auto kinds = must(load_plugin(bad_plugin("hostile")));
  for (const PluginKind& k : kinds)
    if (k.desc.id == id) return must(Drafter::open(model, k, nullptr, options));
  ADD_FAILURE() << id;
  return nullptr;
}

SessionOptions with(std::vector<std::shared_ptr<Drafter>> drafters, float temperature, const char* tree = "auto") {
  SessionOptions o = options_for(drafters.empty() ? nullptr : drafters[0], tree, temperature, 5);
  if (drafters.size() > 1) o.more_drafters.assign(drafters.begin() + 1, drafters.end());
  return o;
}

std::vector<int32_t> text_with(const std::shared_ptr<Model>& model, const SessionOptions& o, size_t n, SessionStatistics* stats = nullptr) {
  auto session = must(Session::create(model, o));
  must(session->append(kStart));
  const auto out = generate(*session, n);
  if (stats) *stats = session->statistics();
  return out;
}

TEST(SeveralDrafters, TheTextIsTheSame) {
  const auto model = open_model(several_target(), cpu(1));
  for (const float temperature : {0.0f, 0.8f}) {
    const auto want = text_with(model, with({}, temperature), 200);
    const std::vector<std::shared_ptr<Drafter>> all = {head(model, "eagle"), open_drafter(model, "ngram", ""), head(model, "fasteagle"),
                                                       itself(model), open_drafter(model, "lookahead", ""), head(model, "eagle3")};
    SessionStatistics s;
    EXPECT_EQ(text_with(model, with(all, temperature), 200, &s), want);
    EXPECT_EQ(s.drafter_failures, 0u);
    uint64_t cycles = s.plain_cycles;
    for (const uint64_t n : s.chosen_cycles) cycles += n;
    EXPECT_EQ(cycles, s.cycles) << "every cycle has an owner";
    for (const char* tree : {"chain", "eagle2", "cast"}) {
      EXPECT_EQ(text_with(model, with(all, temperature, tree), 200, &s), want) << tree;
      EXPECT_EQ(s.chosen_cycles[0] + s.plain_cycles, s.cycles) << tree << ": only the first one is used";
    }
  }
}

// What a drafter on the host takes is a cost, too: one that is slower than a pass is soon asked no more, and its time is no pass's.
TEST(SeveralDrafters, ASlowOneOnTheHostIsSeldomAsked) {
  const auto model = open_model(several_target(), cpu(1));
  const auto want = text_with(model, with({}, 0), 150);
  constexpr uint64_t kSleep = 20'000'000;  // ns, of every proposal
  uint64_t asked = 0;
  DrafterOptions options;
  options.log = [&](int32_t, const std::string& message) { asked += message.ends_with("asked"); };
  const auto slow = [&] { return test_plugin(model, "slow", options); };
  for (const auto& drafters : {std::vector{slow()}, std::vector{slow(), itself(model)}, std::vector{itself(model), slow()}}) {
    SessionStatistics s;
    asked = 0;
    EXPECT_EQ(text_with(model, with(drafters, 0), 150, &s), want);
    EXPECT_GE(asked, 1u);
    EXPECT_LE(asked, 12u);
    EXPECT_GE(s.draft_ns, asked * kSleep);
  }
}

// Switches in mid-text, rewinds, little budgets: whoever drafts, nothing is lost.
TEST(SeveralDrafters, NoStepLosesAnything) {
  const auto model = open_model(several_target(), cpu(1));
  const auto want = text_with(model, with({}, 0.8f), 240);
  auto session = must(Session::create(model, with({head(model, "eagle3"), itself(model), head(model, "medusa"), open_drafter(model, "ngram", "")}, 0.8f)));
  std::mt19937 random(3);
  must(session->append(kStart));
  std::vector<int32_t> got;
  while (got.size() < want.size()) {
    StepResult r;
    must(session->step(0, std::chrono::microseconds(random() % 3 ? 0 : 20), &r));
    for (const EmittedToken& t : r.tokens) got.push_back(t.id);
    if (random() % 9 == 0 && got.size() > 8) {
      got.resize(got.size() - random() % 8);
      must(session->rewind(kStart.size() + got.size()));
    }
    if (random() % 11 == 0) {
      PolicySpec tree;
      tree.name = std::array{"auto", "eagle2", "chain"}[random() % 3];
      must(session->set_tree(tree));
    }
  }
  got.resize(want.size());
  EXPECT_EQ(got, want);
  EXPECT_EQ(session->statistics().drafter_failures, 0u);
}

// One that has only watched is as good as one that reads the text anew.
TEST(SeveralDrafters, WhoOnlyWatchedIsUpToDate) {
  const auto model = open_model(several_target(), cpu(1));
  for (const char* kind : {"eagle", "eagle3", "fasteagle", "dflash", "hydra"}) {
    const auto accepted = [&](Session& session) {
      PolicySpec eagle2;
      eagle2.name = "eagle2";
      must(session.set_tree(eagle2));
      const SessionStatistics before = session.statistics();
      const auto more = generate(session, 80);
      return std::pair(more, std::array{session.statistics().accepted - before.accepted, session.statistics().cycles - before.cycles});
    };
    auto watching = must(Session::create(model, with({head(model, kind), itself(model), open_drafter(model, "ngram", "")}, 0)));
    must(watching->append(kStart));
    auto text = kStart;
    const auto written = generate(*watching, 150);
    text.insert(text.end(), written.begin(), written.end());
    auto fresh = must(Session::create(model, with({head(model, kind)}, 0)));
    must(fresh->append(text));
    EXPECT_EQ(accepted(*watching), accepted(*fresh)) << kind;
  }
}

// Passes cost what they are said to cost: who is chosen is a matter of who is right, not of the machine, nor of the list.
TEST(SeveralDrafters, ABadNeighbourIsLeftAlone) {
  const auto model = open_model(several_target(), cpu(1));
  const auto want = text_with(model, with({}, 0), 300);
  for (const char* id : {"random", "throw", "token", "device_silent"}) {
    std::array<uint64_t, 2> asked{};
    for (const size_t at : {0u, 1u}) {
      // Fresh ones: a drafter keeps what policies have learned about it.
      std::vector<std::shared_ptr<Drafter>> both = {itself(model), test_plugin(model, id)};
      if (at == 0) std::swap(both[0], both[1]);
      SessionStatistics s;
      SessionOptions o = with(both, 0);
      o.pass_ms = steady_ms;
      EXPECT_EQ(text_with(model, o, 300, &s), want) << id;
      asked[at] = s.chosen_cycles[at];
      EXPECT_LT(asked[at], s.cycles / 2) << id << " has " << asked[at] << " of " << s.cycles;
    }
    EXPECT_EQ(asked[0], asked[1]) << id << ": wherever it is listed";
  }
}

TEST(SeveralDrafters, RefusesWhatCannotBe) {
  const auto model = open_model(several_target(), cpu(1));
  const auto other = open_model(several_target(), cpu(1));
  const auto ngram = open_drafter(model, "ngram", "");
  EXPECT_EQ(Session::create(model, with({ngram, ngram}, 0)).status().code(), Code::invalid_argument);
  EXPECT_EQ(Session::create(model, with({ngram, open_drafter(other, "ngram", "")}, 0)).status().code(), Code::mismatch);
  EXPECT_EQ(Session::create(model, with({ngram, nullptr}, 0)).status().code(), Code::invalid_argument);
}

// A fork and a restored session have all drafters too, those that rest with what waits for them, and say the same.
TEST(SeveralDrafters, ForkAndRestoreTakeAllOfThem) {
  const auto model = open_model(several_target(), cpu(1));
  for (const float temperature : {0.0f, 0.8f}) {
    const SessionOptions o = with({head(model, "eagle"), open_drafter(model, "ngram", ""), itself(model), head(model, "eagle3")}, temperature);
    const auto want = text_with(model, with({}, temperature), 160);
    for (const size_t at : {1u, 40u, 110u}) {
      auto session = must(Session::create(model, o));
      must(session->append(kStart));
      std::vector<int32_t> begun = generate(*session, at);
      const auto fork = must(session->fork(o.sampling.stream));
      size_t size = 0;
      must(session->save({}, &size));
      std::vector<uint8_t> bytes(size);
      must(session->save(bytes, &size));
      const auto restored = must(Session::restore(model, o, bytes));
      must(fork->set_sampling(o.sampling));
      for (Session* s : {fork.get(), restored.get(), session.get()}) {
        std::vector<int32_t> out = begun;
        const auto rest = generate(*s, 160 - at);
        out.insert(out.end(), rest.begin(), rest.end());
        EXPECT_EQ(out, want) << "after " << at << (s == fork.get() ? ", fork" : s == session.get() ? ", parent" : ", restored");
        EXPECT_EQ(s->statistics().drafter_failures, 0u);
      }
    }
  }
}

}  // namespace
}  // namespace aerie::test

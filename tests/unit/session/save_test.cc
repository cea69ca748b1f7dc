// A restored session goes on as if nothing had happened: the same text, in the same cycles.
#include "core/session/batch.h"
#include "kernels/device.h"
#include "tests/unit/session/save_support.h"

namespace aerie::kernels {
std::unique_ptr<Device> make_mock_device(std::unique_ptr<Device> inner);
}

namespace aerie::test {
namespace {

using std::chrono::microseconds;

constexpr size_t kCycles = 24;

class Save : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    target_ = new std::string(converted(golden("mha"), "save-target", kernels::DType::int8));
    small_ = new std::string(converted(golden("mha"), "save-small", kernels::DType::int4));
  }
  static std::string *target_, *small_;

  static std::shared_ptr<Drafter> open(const std::shared_ptr<Model>& model, const std::string& kind) {
    if (kind == "none") return nullptr;
    if (kind == "small_model") return open_drafter(model, kind, *small_);
    if (kind == "ngram" || kind == "lookahead") return open_drafter(model, kind, "");
    return open_drafter(model, library_of(kind),
                        converted(source_dir() + "/tests/golden/heads/" + kind, "save-" + kind, kernels::DType::bf16, *target_));
  }

  // Saved after `cycles` cycles and `slices` slices of the next one: what was saved and what was not go on alike.
  // Gives the tokens a cycle.
  static double expect_seamless(const std::shared_ptr<Model>& model, const SessionOptions& o, size_t cycles, int slices,
                                const std::string& what) {
    Cycles want;
    {
      auto plain = must(Session::create(model, o));
      must(plain->append(kSavedPrompt));
      run_cycles(*plain, kCycles, &want);
    }
    auto session = must(Session::create(model, o));
    must(session->append(kSavedPrompt));
    Cycles got;
    run_cycles(*session, cycles, &got);
    for (int i = 0; i < slices; ++i) {
      StepResult r;
      must(session->step(0, microseconds(1), &r));
      add_cycle(r, &got);
    }
    const Bytes bytes = saved(*session);
    Cycles went_on = got;
    run_cycles(*session, kCycles, &went_on);
    EXPECT_EQ(went_on, want) << what << ": the session that was saved";
    const size_t length = session->tokens().size();
    session.reset();  // drafters have few sequences
    auto restored = must(Session::restore(model, o, bytes));
    run_cycles(*restored, kCycles, &got);
    EXPECT_EQ(got, want) << what << ": the session that was restored";
    EXPECT_EQ(restored->tokens().size(), length);
    EXPECT_EQ(restored->statistics().drafter_failures, 0u) << what;
    // It has read no more than the row that its drafter needs to be shown again.
    if (cycles > 0 && slices == 0) {
      EXPECT_LE(restored->statistics().prefill_tokens, 1u) << what;
    }
    return static_cast<double>(length - kSavedPrompt.size()) / static_cast<double>(want.size());
  }
};
std::string *Save::target_, *Save::small_;

TEST_F(Save, EveryDrafterTreeAndTemperature) {
  const auto model = open_model(*target_, cpu(1));
  for (const char* kind : {"none", "eagle", "eagle3", "fasteagle", "dflash", "medusa", "hydra", "hydra_prefix", "small_model", "ngram"})
    for (const char* tree : {"chain", "static", "eagle2", "backbone"})
      for (const float temperature : {0.0f, 0.8f})
        expect_seamless(model, options_for(open(model, kind), tree, temperature), 9, 0,
                        std::string(kind) + " " + tree + " " + std::to_string(temperature));
}

// Drafters that are often right.
TEST_F(Save, TrainedDrafters) {
  const std::string models = source_dir() + "/samples/models/";
  const auto model = open_model(models + "demo.aerie", cpu(2));
  for (const auto& [plugin, name] : {std::pair("eagle", "eagle"), std::pair("eagle", "eagle3"), std::pair("fasteagle", "fasteagle"),
                                     std::pair("dflash", "dflash"), std::pair("medusa", "medusa"), std::pair("hydra", "hydra"),
                                     std::pair("small_model", "small")})
    for (const auto& [temperature, slices] : {std::pair(0.0f, 0), std::pair(0.8f, 5)}) {
      const SessionOptions o =
          options_for(open_drafter(model, plugin, models + "demo-" + name + ".aerie"), "eagle2", temperature);
      EXPECT_GT(expect_seamless(model, o, 11, slices, std::string(name) + " " + std::to_string(temperature)), 1.4) << name;
    }
}

TEST_F(Save, AtAnyPoint) {
  const auto model = open_model(*target_, cpu(1));
  for (const char* kind : {"none", "eagle", "fasteagle", "small_model"})
    for (const size_t cycles : {0, 1, 5})
      for (const int slices : {0, 1, 3, 20})
        expect_seamless(model, options_for(open(model, kind), "eagle2", 0.8f), cycles, slices,
                        std::string(kind) + " after " + std::to_string(cycles) + " cycles and " + std::to_string(slices) + " slices");
}

// The pool of guesses that Lookahead has gathered goes with its process: the text does not need it.
TEST_F(Save, LookaheadBeginsAnew) {
  const auto model = open_model(*target_, cpu(1));
  const SessionOptions o = options_for(open(model, "lookahead"), "chain", 0.8f);
  auto session = must(Session::create(model, o));
  must(session->append(kSavedPrompt));
  generate(*session, 30);
  const Bytes bytes = saved(*session);
  const auto want = generate(*session, 60);
  session.reset();
  auto restored = must(Session::restore(model, o, bytes));
  EXPECT_EQ(generate(*restored, 60), want);
}

TEST_F(Save, OnADeviceThatTheHostCannotRead) {
  for (const auto dtype : {kernels::DType::f32, kernels::DType::bf16, kernels::DType::int8}) {
    ModelOptions m;
    m.kv_dtype = dtype;
    const auto model = open_model(*target_, kernels::make_mock_device(must(kernels::make_cpu_device({.threads = 1}))), m);
    for (const char* kind : {"eagle", "medusa", "small_model"})
      for (const int slices : {0, 4})
        expect_seamless(model, options_for(open(model, kind), "eagle2", 0.8f), 6, slices, std::string("mock ") + kind);
  }
}

// A drafter that has rested has features waiting for it; they are saved.
TEST_F(Save, FeaturesThatWait) {
  const auto model = open_model(*target_, cpu(1));
  for (const char* kind : {"eagle", "eagle3", "hydra", "hydra_prefix"}) {
    const SessionOptions o = options_for(open(model, kind), "chain", 0.8f);
    auto session = must(Session::create(model, o));
    must(session->append(kSavedPrompt));
    Cycles got;
    run_cycles(*session, 4, &got);
    const Bytes bytes = saved(*session);
    const Snapshot s = must(decode_snapshot(bytes));
    ASSERT_EQ(s.drafters.size(), 1u);
    EXPECT_GT(s.drafters[0].waiting, 0) << kind;
    EXPECT_EQ(s.drafters[0].observed + s.drafters[0].waiting, static_cast<int64_t>(s.text.size()));
    session.reset();
    auto restored = must(Session::restore(model, o, bytes));
    run_cycles(*restored, 8, &got);
    EXPECT_EQ(restored->statistics().prefill_tokens, 0u) << kind;
  }
}

TEST_F(Save, AnotherDrafterOrNone) {
  const auto model = open_model(*target_, cpu(1));
  auto session = must(Session::create(model, options_for(open(model, "eagle"), "eagle2", 0.8f)));
  must(session->append(kSavedPrompt));
  generate(*session, 30);
  const Bytes bytes = saved(*session);
  const auto want = generate(*session, 50);
  for (const char* kind : {"none", "eagle3", "fasteagle", "dflash", "medusa", "hydra", "small_model", "ngram", "lookahead"}) {
    auto restored = must(Session::restore(model, options_for(open(model, kind), "eagle2", 0.8f), bytes));
    EXPECT_EQ(generate(*restored, 50), want) << kind;
    EXPECT_EQ(restored->statistics().drafter_failures, 0u) << kind;
  }
}

TEST_F(Save, TheSampledRuleToo) {
  const auto model = open_model(*target_, cpu(1));
  SessionOptions o = options_for(open(model, "eagle"), "static", 0.8f);
  o.sampled_rule = true;
  expect_seamless(model, o, 9, 0, "sampled rule");
}

TEST_F(Save, FromABatch) {
  const auto model = open_model(*target_, cpu(1));
  const SessionOptions o = options_for(open(model, "eagle"), "eagle2", 0.8f);
  auto alone = must(Session::create(model, options_for(nullptr, "chain", 0.8f)));
  must(alone->append(kSavedPrompt));
  const auto want = generate(*alone, 80);
  auto a = must(Session::create(model, o)), b = must(Session::create(model, o));
  auto batch = must(Batch::create(model));
  for (Session* s : {a.get(), b.get()}) {
    must(s->append(kSavedPrompt));
    must(batch->add(*s));
  }
  for (int step = 0; step < 12; ++step) {
    must(batch->step(0, microseconds(step % 3)));
    auto restored = must(Session::restore(model, o, saved(*a)));
    must(batch->add(*restored));
    while (restored->tokens().size() < kSavedPrompt.size() + 40) must(batch->step(0, microseconds(0)));
    for (Session* s : {a.get(), b.get(), restored.get()}) {
      std::vector<int32_t> got(s->tokens().begin() + static_cast<std::ptrdiff_t>(kSavedPrompt.size()), s->tokens().end());
      got.resize(std::min<size_t>(got.size(), 80));
      EXPECT_TRUE(std::equal(got.begin(), got.end(), want.begin())) << step;
    }
    if (a->tokens().size() > kSavedPrompt.size() + 30) must(a->rewind(kSavedPrompt.size() + 3));
    if (b->tokens().size() > kSavedPrompt.size() + 30) must(b->rewind(kSavedPrompt.size() + 3));
  }
}

TEST_F(Save, RewindAndAppendAfterRestore) {
  const auto model = open_model(*target_, cpu(1));
  for (const char* kind : {"eagle", "small_model", "medusa"}) {
    const SessionOptions o = options_for(open(model, kind), "eagle2", 0.8f);
    auto session = must(Session::create(model, o));
    must(session->append(kSavedPrompt));
    generate(*session, 40);
    const Bytes bytes = saved(*session);
    const auto edit = [](Session& s) {
      must(s.rewind(s.tokens().size() - 17));
      must(s.append(std::vector<int32_t>{3, 1, 4, 1, 5}));
      Cycles got;
      run_cycles(s, 12, &got);
      return got;
    };
    const Cycles want = edit(*session);
    session.reset();
    EXPECT_EQ(edit(*must(Session::restore(model, o, bytes))), want) << kind;
  }
}

TEST_F(Save, AnEmptyTextAndAnEndedOne) {
  const auto model = open_model(*target_, cpu(1));
  SessionOptions o = options_for(open(model, "eagle"), "chain", 0);
  auto session = must(Session::create(model, o));
  auto empty = must(Session::restore(model, o, saved(*session)));
  EXPECT_TRUE(empty->tokens().empty());
  must(empty->append(kSavedPrompt));
  must(session->append(kSavedPrompt));
  const auto text = generate(*empty, 30);
  EXPECT_EQ(generate(*session, 30), text);
  // It ends at the 31st token for who says so.
  const int32_t stop = generate(*empty, 1)[0];
  SessionOptions stops = o;
  stops.stop_tokens = {stop};
  auto ended = must(Session::create(model, stops));
  must(ended->append(kSavedPrompt));
  generate(*ended, 100);
  ASSERT_EQ(ended->result().finish, Finish::stop_token);
  const Bytes bytes = saved(*ended);
  auto same = must(Session::restore(model, stops, bytes)), goes_on = must(Session::restore(model, o, bytes));
  EXPECT_TRUE(generate(*same, 1).empty());
  EXPECT_EQ(same->result().finish, Finish::stop_token);
  EXPECT_EQ(generate(*goes_on, 1).size(), 1u);
}

// A stop string that had begun when the session was saved ends the text where it would have.
TEST_F(Save, StopStringsReachBack) {
  const auto model = open_model(*target_, cpu(1));
  const SessionOptions o = options_for(nullptr, "chain", 0.8f);
  auto session = must(Session::create(model, o));
  must(session->append(kSavedPrompt));
  generate(*session, 20);
  const Bytes bytes = saved(*session);
  const auto next = generate(*session, 1);
  const auto& text = session->tokens();
  static std::vector<std::string> names(256);
  for (size_t i = 0; i < names.size(); ++i) names[i] = std::string("<") + std::to_string(i) + ">";
  const auto name = [](int32_t token, int32_t, std::string_view* out) {
    *out = names[static_cast<size_t>(token)];
    return true;
  };
  const std::string stop = names[static_cast<size_t>(text[text.size() - 3])] + names[static_cast<size_t>(text[text.size() - 2])] +
                           names[static_cast<size_t>(next[0])];
  auto restored = must(Session::restore(model, o, bytes));
  restored->set_stop_strings({stop}, name);
  EXPECT_EQ(generate(*restored, 40), next);
  EXPECT_EQ(restored->result().finish, Finish::stop_string);
  EXPECT_EQ(restored->result().stop_bytes, static_cast<int32_t>(stop.size()));
  auto ended = must(Session::restore(model, o, saved(*restored)));
  EXPECT_TRUE(generate(*ended, 1).empty());
  EXPECT_EQ(ended->result().finish, Finish::stop_string);
  EXPECT_EQ(ended->result().stop_bytes, static_cast<int32_t>(stop.size()));
}

// What no restore would take is not written.
TEST_F(Save, AStopStringWithMoreBehindItThanTheFormatHolds) {
  const auto model = open_model(*target_, cpu(1));
  auto session = must(Session::create(model, options_for(nullptr, "chain", 0)));
  must(session->append(kSavedPrompt));
  static const std::string token = "." + std::string(kMaxStopBytes, 'x');
  session->set_stop_strings({"."}, [](int32_t, int32_t, std::string_view* out) { return *out = token, true; });
  EXPECT_EQ(generate(*session, 2).size(), 1u);
  ASSERT_EQ(session->result().stop_bytes, kMaxStopBytes + 1);
  size_t size = 0;
  const Status s = session->save({}, &size);
  EXPECT_EQ(s.code(), Code::limit);
  EXPECT_EQ(s.message(), "save: stop bytes: 1048577, the most is 1048576");
}

}  // namespace
}  // namespace aerie::test

// Mixtures of experts: rows of one pass go different ways through a model, and the promise is the same.
#include <array>
#include <functional>
#include <set>

#include "core/session/batch.h"
#include "tests/support/forward.h"
#include "tests/support/mixture.h"
#include "tests/unit/session/save_support.h"
#include "tests/unit/session/seeing_device.h"

namespace aerie::kernels {
std::unique_ptr<Device> make_mock_device(std::unique_ptr<Device> inner);
}

namespace aerie::test {
namespace {

using kernels::DType;
using std::chrono::microseconds;

// One of 4 bits that drafts for such a one.
std::string drafting_for(DType dtype) { return with_experts(golden("mha"), {8, 2, true, DType::q4_1, dtype == DType::mxfp4}); }
// What has MXFP4 has gpt-oss's layers.
Mixture mixture_of(int32_t experts, int32_t used, DType dtype, bool normed = true) {
  return {experts, used, normed, dtype, dtype == DType::mxfp4};
}
std::string mixture_in(DType dtype) { return with_experts(golden("mha"), mixture_of(8, 2, dtype, dtype != DType::int8)); }
// The same weights, but for those that departures which are no more would have.
std::string less(const std::string& path, const std::function<void(Departures*)>& change) {
  static int made = 0;
  const auto from = must(Package::open(path));
  const std::string to = scratch_dir() + "/less-" + std::to_string(made++) + ".aerie";
  LlamaConfig c = *from->target();
  change(&c.departures);
  auto writer = must(PackageWriter::create(to));
  writer->set_name("less");
  writer->set_fingerprint(from->fingerprint());
  writer->set_target(c);
  for (const package::ExpectedTensor& e : package::expected_tensors(c)) must(writer->add_tensor(e.name, must(from->tensor(e.name))));
  must(writer->finish());
  return to;
}
std::string head_for(const char* kind, const std::string& target) {
  return converted(source_dir() + "/tests/golden/heads/" + kind, std::string("experts-") + kind, DType::bf16, target);
}

std::unique_ptr<Session> begun_mixture(const std::shared_ptr<Model>& model, const SessionOptions& o) {
  auto session = must(Session::create(model, o));
  must(session->append(kSavedPrompt));
  return session;
}

class Experts : public testing::TestWithParam<DType> {};

TEST_P(Experts, DraftsChangeNoToken) {
  const std::string path = mixture_in(GetParam());
  const auto one = open_model(path, cpu(1)), model = open_model(path, cpu(2));
  const auto own = open_drafter(model, "small_model", drafting_for(GetParam()));
  const auto dense = open_drafter(model, "small_model", converted(golden("mha"), "experts-dense", DType::int8));
  const auto eagle = open_drafter(model, "eagle", head_for("eagle3", path)), cascade = open_drafter(model, "fasteagle", head_for("fasteagle", path));
  const auto repeats = open_drafter(model, "ngram", "");
  for (const float temperature : {0.0f, 1.0f}) {
    const auto want = generate(*begun_mixture(one, options_for({}, "chain", temperature)), 50);
    EXPECT_GT(std::set<int32_t>(want.begin(), want.end()).size(), 3u) << "the same all over again";
    for (const auto& [drafter, tree] : {std::pair{own, "chain"}, {own, "eagle2"}, {own, "auto"}, {dense, "static"}, {eagle, "eagle2"},
                                        {eagle, "cast"}, {cascade, "backbone"}, {repeats, "static"}}) {
      const std::string what = std::string(drafter->id()) + " " + tree + ", temperature " + std::to_string(temperature);
      SessionOptions o = options_for(drafter, tree, temperature);
      o.pass_ms = steady_ms;
      auto session = begun_mixture(model, o);
      EXPECT_EQ(generate(*session, 50), want) << what;
      if (drafter == own && std::string(tree) == "chain") {
        EXPECT_GT(session->statistics().accepted, 5u) << what << ": nothing was accepted, nothing compared";
      }
      must(session->rewind(kSavedPrompt.size() + 10));
      EXPECT_EQ(generate(*session, 40), std::vector<int32_t>(want.begin() + 10, want.end())) << what << ", again";
      EXPECT_EQ(session->statistics().drafter_failures, 0u) << what;
    }
  }
}

// Of one row, of a few, and of so many that each expert has several.
TEST_P(Experts, BitsDoNotDependOnWhatIsBeside) {
  const std::string path = with_experts(with_long_context("mha", 512), mixture_of(8, 3, GetParam()));
  const auto ids = random_tokens(200, 160, 7);
  const Forward want(*open_model(path, cpu(1)), ids, 200, {});
  EXPECT_TRUE(std::all_of(want.logits.begin(), want.logits.end(), [](float v) { return std::isfinite(v); }));
  const auto one = open_model(path, cpu(1)), two = open_model(path, cpu(2));
  for (const int64_t chunk : {1, 3, 16, 61}) EXPECT_TRUE(Forward(chunk % 2 ? *one : *two, ids, chunk, {}).logits == want.logits) << chunk;
  EXPECT_TRUE(Forward(*two, ids, 200, {}).logits == want.logits) << "by two threads";
}

INSTANTIATE_TEST_SUITE_P(All, Experts, testing::Values(DType::f32, DType::bf16, DType::fp8, DType::int8, DType::int4, DType::q4_1, DType::mxfp4),
                         [](const auto& info) {
                           return std::string(std::array{"f32", "bf16", "int8", "int4", "i32", "fp8", "q4_1", "mxfp4"}[static_cast<size_t>(info.param)]);
                         });

// All experts at once, one alone, and weights that do not add up to 1 are models of their own.
TEST(ExpertsOf, AnotherNumberIsAnotherModel) {
  const auto ids = random_tokens(20, 160, 3);
  std::set<std::vector<float>> all;
  for (const Mixture& m : {Mixture{8, 1}, {8, 2}, {8, 2, false}, {8, 8}, {1, 1}, {19, 2}}) {
    const std::string path = with_experts(golden("mha"), m);
    EXPECT_TRUE(all.insert(Forward(*open_model(path, cpu(1)), ids, 20, {}).logits).second) << m.used << " of " << m.experts;
  }
}

TEST(ExpertsOf, EachOfGptOssPiecesCounts) {
  const auto ids = random_tokens(20, 160, 3);
  std::set<std::vector<float>> all;
  const std::string whole = with_experts(golden("mha"), {8, 2, true, DType::f32, true});
  EXPECT_TRUE(all.insert(Forward(*open_model(whole, cpu(1)), ids, 20, {}).logits).second);
  const auto without = [&](const char* what, const std::function<void(Departures*)>& change) {
    EXPECT_TRUE(all.insert(Forward(*open_model(less(whole, change), cpu(1)), ids, 20, {}).logits).second) << what;
  };
  without("sinks", [](Departures* d) { d->sinks = false; });
  without("bias of attention", [](Departures* d) { d->o_bias = false; });
  without("biases of experts", [](Departures* d) { d->expert_bias = false; });
  without("limit", [](Departures* d) { d->glu_limit = 0; });
  without("a higher limit", [](Departures* d) { d->glu_limit = 4; });
}

class ExpertSession : public testing::TestWithParam<DType> {};

TEST_P(ExpertSession, IsCutForkedAndSaved) {
  const std::string path = mixture_in(GetParam());
  const auto model = open_model(path, cpu(2));
  std::mt19937 random(3);
  for (const auto& drafter : {std::shared_ptr<Drafter>(), open_drafter(model, "small_model", drafting_for(GetParam())),
                              open_drafter(model, "eagle", head_for("eagle3", path)), open_drafter(model, "ngram", "")})
    for (const float temperature : {0.0f, 1.0f}) {
      const std::string what = std::string(drafter ? drafter->id() : "none") + ", temperature " + std::to_string(temperature);
      SessionOptions o = options_for(drafter, "eagle2", temperature);
      o.sampling.stream = 5;
      SessionOptions plain = o;
      plain.drafter = nullptr;
      const auto want = generate(*begun_mixture(model, plain), 60);
      auto session = must(Session::create(model, o));
      append_in_pieces(*session, random);
      EXPECT_EQ(generate_in_slices(*session, 20), std::vector<int32_t>(want.begin(), want.begin() + 20)) << what;
      const std::vector<int32_t> rest(want.begin() + 20, want.end());
      const Bytes bytes = saved(*session);
      auto fork = must(session->fork(5));
      EXPECT_EQ(generate(*fork, 40), rest) << what << ": the fork";
      EXPECT_EQ(generate(*session, 40), rest) << what;
      fork.reset(), session.reset();
      EXPECT_EQ(generate(*must(Session::restore(model, o, bytes)), 40), rest) << what << ": restored";
    }
}

// Which experts a row takes is known there alone; so are the trees, which it draws, too.
TEST_P(ExpertSession, OnADeviceWhoseMemoryTheHostCannotRead) {
  const std::string path = mixture_in(GetParam());
  const auto here = open_model(path, cpu(1));
  const std::shared_ptr<kernels::Device> device = kernels::make_mock_device(must(kernels::make_cpu_device({})));
  const auto model = open_model(path, device);
  for (const auto& drafter : {std::shared_ptr<Drafter>(), open_drafter(model, "small_model", drafting_for(GetParam())),
                              open_drafter(model, "eagle", head_for("eagle3", path))})
    for (const char* tree : {"chain", "eagle2"})
      for (const float temperature : {0.0f, 1.0f}) {
        const auto want = generate(*begun_mixture(here, options_for({}, "chain", temperature)), 40);
        SessionOptions o = options_for(drafter, tree, temperature);
        o.drafts_on_device = true;
        auto session = begun_mixture(model, o);
        EXPECT_EQ(generate(*session, 40), want) << (drafter ? drafter->id() : "none") << " " << tree << ", temperature " << temperature;
        EXPECT_EQ(session->statistics().drafter_failures, 0u);
      }
}

INSTANTIATE_TEST_SUITE_P(Of, ExpertSession, testing::Values(DType::int8, DType::mxfp4),
                         [](const auto& info) { return info.param == DType::int8 ? "int8" : "mxfp4"; });

size_t most_rows(const std::vector<SeenPass>& passes) {
  size_t most = 0;
  for (const SeenPass& p : passes) most = std::max(most, p.tokens.size());
  return most;
}

// So that an expert has many of its rows at once; in company fewer, so that nobody waits for them.
TEST(ExpertsOf, ALongPromptIsReadInPassesOfManyRows) {
  const std::string path = with_experts(with_long_context("mha", 2048), {16, 2, true, DType::int8});
  const auto prompt = random_tokens(600, 160, 9);
  const auto device = std::make_shared<SeeingDevice>(cpu(2));
  ModelOptions options;
  options.keep_prefixes = false;
  const auto model = open_model(path, device, options);
  const auto begun = [&](const std::shared_ptr<Drafter>& drafter, uint64_t stream) {
    auto session = must(Session::create(model, options_for(drafter, "eagle2", 1.0f, stream)));
    must(session->append(prompt));
    return session;
  };
  std::vector<int32_t> want;
  {
    auto batch = must(Batch::create(model));
    auto session = begun({}, 1), company = begun({}, 2);
    must(batch->add(*session)), must(batch->add(*company));
    while (want.size() < 30) {
      must(batch->step(0, microseconds(0)));
      for (const EmittedToken& t : session->result().tokens) want.push_back(t.id);
    }
    want.resize(30);
    EXPECT_EQ(most_rows(device->passes), 2u * kPrefillRows);
  }
  for (const auto& drafter : {std::shared_ptr<Drafter>(), open_drafter(model, "small_model", mixture_in(DType::int4)),
                              open_drafter(model, "eagle", head_for("eagle3", path))}) {
    device->passes.clear();
    auto session = begun(drafter, 1);
    EXPECT_EQ(generate(*session, 30), want) << (drafter ? drafter->id() : "none");
    EXPECT_EQ(most_rows(device->passes), static_cast<size_t>(kMostPrefillRows));
    EXPECT_EQ(session->statistics().drafter_failures, 0u);
    session = begun(drafter, 1);
    StepResult r;
    for (int i = 0; i < 40; ++i) must(session->step(0, microseconds(1), &r));  // in the middle of such a pass
    must(session->rewind(prompt.size() - 50));
    must(session->append({prompt.data() + prompt.size() - 50, 50}));
    EXPECT_EQ(generate(*session, 30), want) << (drafter ? drafter->id() : "none") << ", cut";
  }
}

TEST(ExpertsOf, WorkingMemoryBoundsThePassesOfAPrompt) {
  const auto model = open_model(with_experts(with_long_context("mha", 2048), {16, 2}), cpu(1));
  EXPECT_EQ(prefill_rows(*model, 900), kMostPrefillRows);
  EXPECT_EQ(prefill_rows(*model, 1900), kMostPrefillRows / 2);
  EXPECT_EQ(prefill_rows(*model, 100000), kPrefillRows);
  EXPECT_EQ(prefill_rows(*open_model(with_experts(golden("mha"), {8, 8}), cpu(1)), 900), kPrefillRows);
  EXPECT_EQ(prefill_rows(*open_model(converted(golden("mha"), "experts-dense", DType::int8), cpu(1)), 900), kPrefillRows);
}

TEST(ExpertsOf, SessionsInABatch) {
  const std::string path = mixture_in(DType::int4);
  const auto model = open_model(path, cpu(2));
  const std::array drafters = {std::shared_ptr<Drafter>(), open_drafter(model, "small_model", mixture_in(DType::int4)),
                               open_drafter(model, "eagle", head_for("eagle3", path)), open_drafter(model, "ngram", "")};
  for (const float temperature : {0.0f, 1.0f}) {
    auto batch = must(Batch::create(model));
    std::vector<std::unique_ptr<Session>> sessions;
    std::vector<std::vector<int32_t>> want, got(drafters.size());
    for (size_t i = 0; i < drafters.size(); ++i) {
      const std::span<const int32_t> prompt(kSavedPrompt.data() + 3 * i, 10 + 5 * i);
      auto alone = must(Session::create(model, options_for({}, "chain", temperature, i)));
      must(alone->append(prompt));
      want.push_back(generate(*alone, 40));
      sessions.push_back(must(Session::create(model, options_for(drafters[i], "eagle2", temperature, i))));
      must(sessions[i]->append(prompt));
      must(batch->add(*sessions[i]));
    }
    for (bool more = true; more;) {
      must(batch->step(0, microseconds(0)));
      more = false;
      for (size_t i = 0; i < sessions.size(); ++i) {
        must(sessions[i]->status());
        for (const EmittedToken& t : sessions[i]->result().tokens) got[i].push_back(t.id);
        more = more || got[i].size() < 40;
      }
    }
    for (size_t i = 0; i < sessions.size(); ++i) {
      got[i].resize(40);
      EXPECT_EQ(got[i], want[i]) << i << ", temperature " << temperature;
    }
  }
}

}  // namespace
}  // namespace aerie::test

// Recurrent layers: what a model knows of a text goes no way back, and the promise is the same.
#include <array>
#include <set>

#include "core/model/evaluate.h"
#include "core/session/batch.h"
#include "tests/support/forward.h"
#include "tests/support/remade.h"
#include "tests/unit/session/save_support.h"

namespace aerie::kernels {
std::unique_ptr<Device> make_mock_device(std::unique_ptr<Device> inner);
}

namespace aerie::test {
namespace {

using kernels::DType;
using std::chrono::microseconds;

std::string recurrent_head(const char* kind, const std::string& target) {
  return converted(source_dir() + "/tests/golden/heads/" + kind, std::string("recurrent-") + kind, DType::bf16, target);
}

std::unique_ptr<Session> begun_recurrent(const std::shared_ptr<Model>& model, const SessionOptions& o) {
  auto session = must(Session::create(model, o));
  must(session->append(kSavedPrompt));
  return session;
}

struct Drafts {
  std::shared_ptr<Drafter> drafter;
  const char* tree;
  std::string what() const { return std::string(drafter ? drafter->id() : "none") + " " + tree; }
};

// Of every kind: chains and trees, walked on the device and on the host, with rows beside the tree, and none.
std::vector<Drafts> all_drafts(const std::shared_ptr<Model>& model, const std::string& path) {
  const auto dense = open_drafter(model, "small_model", converted(golden("mha"), "recurrent-dense", DType::int8));
  const auto eagle = open_drafter(model, "eagle", recurrent_head("eagle3", path)), cascade = open_drafter(model, "fasteagle", recurrent_head("fasteagle", path));
  const auto repeats = open_drafter(model, "ngram", ""), ahead = open_drafter(model, "lookahead", "");
  return {{nullptr, "chain"}, {dense, "chain"}, {dense, "eagle2"}, {dense, "auto"}, {eagle, "eagle2"}, {eagle, "cast"}, {eagle, "static"},
          {cascade, "backbone"}, {repeats, "static"}, {ahead, "static"}};
}

class Recurrent : public testing::TestWithParam<DType> {};

TEST_P(Recurrent, DraftsChangeNoToken) {
  const std::string path = recurrent_model(GetParam());
  const auto one = open_model(path, cpu(1)), model = open_model(path, cpu(2));
  for (const float temperature : {0.0f, 1.0f}) {
    const auto want = generate(*begun_recurrent(one, options_for({}, "chain", temperature)), 60);
    EXPECT_GT(std::set<int32_t>(want.begin(), want.end()).size(), 3u) << "the same all over again";
    uint64_t accepted = 0;
    for (const Drafts& d : all_drafts(model, path)) {
      const std::string what = d.what() + ", temperature " + std::to_string(temperature);
      SessionOptions o = options_for(d.drafter, d.tree, temperature);
      o.pass_ms = steady_ms;
      auto session = begun_recurrent(model, o);
      EXPECT_EQ(generate(*session, 60), want) << what;
      accepted += session->statistics().accepted;
      EXPECT_EQ(session->statistics().drafter_failures, 0u) << what;
      must(session->rewind(kSavedPrompt.size() + 10));  // to where no state is kept
      EXPECT_EQ(generate(*session, 50), std::vector<int32_t>(want.begin() + 10, want.end())) << what << ", again";
      must(session->rewind(kSavedPrompt.size()));
      const uint64_t read = session->statistics().prefill_tokens;
      EXPECT_EQ(generate(*session, 60), want) << what << ", from the prompt";
      // A state was kept there; what a drafter reads of the newest row is made once more.
      EXPECT_EQ(session->statistics().prefill_tokens - read, d.drafter && !d.drafter->taps().empty() ? 1u : 0u) << what;
      must(session->rewind(kSavedPrompt.size() + 30)), must(session->rewind(kSavedPrompt.size() + 20));
      EXPECT_EQ(generate(*session, 40), std::vector<int32_t>(want.begin() + 20, want.end())) << what << ", once more";
      must(session->rewind(kSavedPrompt.size()));
      const uint64_t then = session->statistics().prefill_tokens;
      EXPECT_EQ(generate(*session, 5), std::vector<int32_t>(want.begin(), want.begin() + 5)) << what;
      EXPECT_LE(session->statistics().prefill_tokens - then, 1u) << what << ": reading again keeps no other state in its place";
    }
    EXPECT_GT(accepted, 20u) << "nothing was accepted, nothing compared";
  }
}

// The first pass of a text reads two rows or all of them; trees that draw on the host keep states of their own.
TEST_P(Recurrent, BitsDoNotDependOnWhatIsBeside) {
  const std::string path = recurrent_model(GetParam(), with_long_context("mha", 512));
  const auto ids = random_tokens(200, 160, 7);
  const Forward want(*open_model(path, cpu(1)), ids, 200, {});
  EXPECT_TRUE(std::all_of(want.logits.begin(), want.logits.end(), [](float v) { return std::isfinite(v); }));
  const auto one = open_model(path, cpu(1)), two = open_model(path, cpu(2));
  for (const int64_t chunk : {1, 3, 16, 61}) EXPECT_TRUE(Forward(chunk % 2 ? *one : *two, ids, chunk, {}).logits == want.logits) << chunk;
  std::vector<float> logits(want.logits.size());
  EvaluateOptions e;
  e.logits = logits.data();
  must(evaluate(*two, ids, e));
  EXPECT_TRUE(logits == want.logits);
}

INSTANTIATE_TEST_SUITE_P(All, Recurrent, testing::Values(DType::f32, DType::bf16, DType::int8, DType::int4),
                         [](const auto& info) { return std::string(std::array{"f32", "bf16", "int8", "int4"}[static_cast<size_t>(info.param)]); });

TEST(RecurrentSession, TheSampledRuleKeepsItsLaw) {
  const std::string path = recurrent_model();
  const auto model = open_model(path, cpu(2)), other = open_model(path, cpu(1));
  SessionOptions o = options_for(open_drafter(model, "small_model", converted(golden("mha"), "recurrent-dense", DType::f32)), "static", 0.9f);
  o.sampled_rule = true;
  auto session = begun_recurrent(model, o);
  const auto text = generate(*session, 60);
  EXPECT_GT(session->statistics().accepted, 3u);
  // States behind what was walked through on the host are those of the text: another session reads on as this one.
  const auto rest = generate(*session, 1);
  auto again = must(Session::create(other, options_for({}, "chain", 0.0f)));
  must(again->append(session->tokens()));
  must(session->set_sampling({}));
  EXPECT_EQ(generate(*again, 30), generate(*session, 30));
}

TEST(RecurrentSession, IsCutForkedAndSaved) {
  const std::string path = recurrent_model(DType::int8);
  const auto model = open_model(path, cpu(2));
  std::mt19937 random(3);
  for (const Drafts& d : all_drafts(model, path))
    for (const float temperature : {0.0f, 1.0f}) {
      const std::string what = d.what() + ", temperature " + std::to_string(temperature);
      SessionOptions o = options_for(d.drafter, d.tree, temperature);
      o.sampling.stream = 5;
      o.pass_ms = steady_ms;
      SessionOptions plain = o;
      plain.drafter = nullptr;
      const auto want = generate(*begun_recurrent(model, plain), 60);
      auto session = must(Session::create(model, o));
      append_in_pieces(*session, random);
      EXPECT_EQ(generate_in_slices(*session, 20), std::vector<int32_t>(want.begin(), want.begin() + 20)) << what;
      const std::vector<int32_t> rest(want.begin() + 20, want.end());
      const Bytes bytes = saved(*session);
      auto fork = must(session->fork(5));
      EXPECT_EQ(generate(*fork, 40), rest) << what << ": the fork";
      EXPECT_LT(fork->statistics().prefill_tokens, 16u) << what << ": no more than the last cycle's is read again";
      EXPECT_EQ(generate(*session, 40), rest) << what;
      must(fork->rewind(kSavedPrompt.size()));
      EXPECT_EQ(generate(*fork, 60), want) << what << ": the fork, from the prompt";
      fork.reset(), session.reset();
      auto restored = must(Session::restore(model, o, bytes));
      EXPECT_EQ(generate(*restored, 40), rest) << what << ": restored";
      EXPECT_LT(restored->statistics().prefill_tokens, 16u) << what << ": restored";
    }
}

// A walk that an end or a stop string cuts has gone further than the text.
TEST(RecurrentSession, GoesOnBehindAnEnd) {
  const std::string path = recurrent_model();
  const auto model = open_model(path, cpu(2));
  const auto want = generate(*begun_recurrent(model, options_for({}, "chain", 0.0f)), 60);
  const auto drafter = open_drafter(model, "small_model", converted(golden("mha"), "recurrent-dense", DType::int8));
  for (size_t at = 3; at < 30; ++at) {
    SessionOptions o = options_for(drafter, "eagle2", 0.0f);
    o.stop_tokens = {want[at]};
    auto session = begun_recurrent(model, o);
    std::vector<int32_t> got;
    while (got.size() < 60) {
      const auto some = generate(*session, 60 - got.size());
      got.insert(got.end(), some.begin(), some.end());
      if (got.size() < 60) {  // it has stopped: the last token is said again, and it goes on
        const int32_t last = got.back();
        must(session->rewind(session->tokens().size() - 1));
        must(session->append({&last, 1}));
      }
    }
    EXPECT_EQ(got, want) << at;
  }
}

TEST(RecurrentSession, SessionsInABatch) {
  const std::string path = recurrent_model(DType::int4);
  const auto model = open_model(path, cpu(2));
  const auto drafts = all_drafts(model, path);
  for (const float temperature : {0.0f, 1.0f}) {
    auto batch = must(Batch::create(model));
    std::vector<std::unique_ptr<Session>> sessions;
    std::vector<std::vector<int32_t>> want, got(drafts.size());
    for (size_t i = 0; i < drafts.size(); ++i) {
      const std::span<const int32_t> prompt(kSavedPrompt.data() + i, 10 + 2 * i);
      auto alone = must(Session::create(model, options_for({}, "chain", temperature, i)));
      must(alone->append(prompt));
      want.push_back(generate(*alone, 40));
      SessionOptions o = options_for(drafts[i].drafter, drafts[i].tree, temperature, i);
      o.pass_ms = steady_ms;
      sessions.push_back(must(Session::create(model, o)));
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
      EXPECT_EQ(got[i], want[i]) << drafts[i].what() << ", temperature " << temperature;
    }
  }
}

// A pass under way has its results in memory of the plan that the batch outgrows.
TEST(RecurrentSession, SessionsJoinABatchAmidAPass) {
  std::mt19937 random(11);
  for (const std::string& path : {recurrent_model(DType::int8), converted(golden("mha"), "recurrent-target", DType::f32)}) {
    const auto model = open_model(path, cpu(2));
    const auto drafter = open_drafter(model, "lookahead", "");
    for (const bool ruled : {false, true}) {
      const auto options = [&](const std::shared_ptr<Drafter>& with, uint64_t stream) {
        SessionOptions o = options_for(with, "static", 0.8f, stream);
        if (ruled) o.logits.penalties.repetition = 1.1f;  // the host walks
        return o;
      };
      std::vector<std::vector<int32_t>> want;
      for (uint64_t i = 0; i < 8; ++i) want.push_back(generate(*begun_recurrent(model, options({}, i)), 30));
      for (int round = 0; round < 6; ++round) {
        auto batch = must(Batch::create(model));
        std::vector<std::unique_ptr<Session>> sessions;
        std::vector<std::vector<int32_t>> got(want.size());
        for (bool more = true; more;) {
          if (sessions.size() < want.size() && random() % 4 == 0) {
            sessions.push_back(begun_recurrent(model, options(drafter, sessions.size())));
            must(batch->add(*sessions.back()));
          }
          if (sessions.empty()) continue;
          must(batch->step(0, sessions.size() < want.size() ? microseconds(1) : microseconds(0)));
          more = sessions.size() < want.size();
          for (size_t i = 0; i < sessions.size(); ++i) {
            must(sessions[i]->status());
            for (const EmittedToken& t : sessions[i]->result().tokens) got[i].push_back(t.id);
            more = more || got[i].size() < 30;
          }
        }
        for (size_t i = 0; i < want.size(); ++i) {
          got[i].resize(30);
          ASSERT_EQ(got[i], want[i]) << path << ", ruled " << ruled << ", session " << i;
        }
      }
    }
  }
}

// What ops are told of is memory of the device's, all of it.
TEST(RecurrentSession, OnADeviceWhoseMemoryTheHostCannotRead) {
  const std::string path = recurrent_model(DType::int8);
  const auto here = open_model(path, cpu(1));
  const std::shared_ptr<kernels::Device> device = kernels::make_mock_device(must(kernels::make_cpu_device({})));
  const auto model = open_model(path, device);
  for (const Drafts& d : all_drafts(model, path))
    for (const float temperature : {0.0f, 1.0f}) {
      const auto want = generate(*begun_recurrent(here, options_for({}, "chain", temperature)), 40);
      SessionOptions o = options_for(d.drafter, d.tree, temperature);
      o.drafts_on_device = true;
      o.pass_ms = steady_ms;
      auto session = begun_recurrent(model, o);
      EXPECT_EQ(generate(*session, 40), want) << d.what() << ", temperature " << temperature;
      EXPECT_EQ(session->statistics().drafter_failures, 0u);
    }
}

TEST(RecurrentSession, DraftsForNobody) {
  const auto model = open_model(converted(golden("mha"), "recurrent-target", DType::f32), cpu(1));
  const auto kinds = must(load_plugin(drafter_library("small_model")));
  const auto drafter = Drafter::open(model, kinds[0], must(Package::open(recurrent_model())), {});
  ASSERT_FALSE(drafter.ok());
  EXPECT_NE(drafter.status().message().find("recurrent layers"), std::string::npos) << drafter.status().message();
}

// ---- the order of rows --------------------------------------------------------------------------------

// Every row once, from its parent's state, which nobody has overwritten by then.
TEST(DeltaSteps, FindWhatTheyGoOnFrom) {
  std::mt19937 random(5);
  for (int round = 0; round < 400; ++round) {
    const auto n = static_cast<int32_t>(1 + random() % 128), first = static_cast<int32_t>(random() % 3 * 50);
    const uint32_t reach = 1 + random() % 20;
    std::vector<int32_t> parents = {-1};
    for (int32_t i = 1; i < n; ++i) parents.push_back(first + std::max(0, i - 1 - static_cast<int32_t>(random() % reach)));
    std::vector<kernels::DeltaStep> steps;
    const int32_t buffers = order_delta_steps(first, parents, &steps);
    ASSERT_EQ(steps.size(), parents.size());
    EXPECT_LE(buffers, 8);  // log2(128) and one
    std::vector<int32_t> holds(static_cast<size_t>(buffers), -1);  // whose state
    std::set<int32_t> rows;
    for (const kernels::DeltaStep& s : steps) {
      EXPECT_TRUE(rows.insert(s.row).second);
      const int32_t parent = parents[static_cast<size_t>(s.row - first)];
      ASSERT_LT(s.to, buffers);
      EXPECT_EQ(s.from < 0 ? -1 : holds.at(static_cast<size_t>(s.from)), parent);
      holds[static_cast<size_t>(s.to)] = s.row;
    }
  }
  std::vector<kernels::DeltaStep> steps;
  const std::vector<int32_t> chain = {-1, 0, 1, 2, 3};
  EXPECT_EQ(order_delta_steps(0, chain, &steps), 1);
}

}  // namespace
}  // namespace aerie::test

// The KV budget: kept prefixes go first, then the host is asked, then it is an error and nothing is lost.
#include "core/session/batch.h"
#include "tests/unit/session/reuse_fixtures.h"

namespace aerie::test {
namespace {

class BudgetTest : public ReuseTest {
 protected:
  static std::shared_ptr<Model> open_with(int64_t positions, std::function<bool(int32_t)> full = {}) {
    ModelOptions m;
    m.kv_positions = positions;
    m.kv_full = std::move(full);
    return open_model(*target_, cpu(1), m);
  }
  // What a step says, until `n` tokens are there or it fails.
  static Status until(Session& s, size_t n, std::vector<int32_t>* out) {
    while (out->size() < n) {
      StepResult r;
      AERIE_TRY(s.step(static_cast<int32_t>(n - out->size()), std::chrono::microseconds(0), &r));
      for (const EmittedToken& t : r.tokens) out->push_back(t.id);
    }
    return {};
  }
};

TEST_F(BudgetTest, KeptPrefixesGoBeforeAnyoneIsAsked) {
  int asked = 0;
  const auto model = open_with(128 + 96, [&](int32_t) { return ++asked, false; });
  for (int i = 0; i < 5; ++i) {
    auto text = prompt(70);
    text[0] = 20 + i;
    generate(*begun(model, options(nullptr, 0), text), 20);
  }
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(model->pool()->free_positions(), 224);
}

// A host that promises room and gives none is asked again and again, until it cancels.
TEST_F(BudgetTest, CancelEndsAPromiseThatIsNotKept) {
  Session* session = nullptr;
  int asked = 0;
  const auto model = open_with(128 + 32, [&](int32_t) {
    if (++asked == 5) session->request_cancel();
    return true;
  });
  const auto s = begun(model, options(nullptr, 0), prompt(20));
  session = s.get();
  std::vector<int32_t> out;
  EXPECT_EQ(until(*s, 300, &out).code(), Code::cancelled);
  EXPECT_EQ(asked, 5);
  EXPECT_EQ(s->tokens().size(), 20 + out.size());
}

TEST_F(BudgetTest, AnErrorLosesNothingAndTheSessionGoesOn) {
  for (const Kind& kind : kinds())
    for (const bool sampled : {false, true}) {
      const auto model = open_with(2 * 128 + 96), roomy = open_with(4096);
      const auto start = [&](const std::shared_ptr<Model>& of) {
        SessionOptions o = options(open(of, kind), 0.8f);
        if (sampled) o.tree.name = "chain";
        o.sampled_rule = sampled;
        return begun(of, o, prompt(20));
      };
      const auto drafter = open(model, kind);
      if (sampled && drafter->host_tokens()) continue;
      const auto want = generate(*start(roomy), 80);
      auto other = begun(model, options(nullptr, 0), prompt(50));  // two pages and scratch
      generate(*other, 5);
      auto s = start(model);
      std::vector<int32_t> got;
      const Status full = until(*s, 80, &got);
      EXPECT_EQ(full.code(), Code::limit) << kind.plugin;
      EXPECT_NE(full.message().find("KV budget"), std::string::npos);
      if (!sampled) { EXPECT_EQ(got.size(), 13u) << kind.plugin << ": 32 rows, and the root after them"; }
      EXPECT_EQ(until(*s, 80, &got).code(), Code::limit);
      EXPECT_EQ(s->tokens().size(), 20 + got.size());
      other.reset();
      must(until(*s, 80, &got));
      EXPECT_EQ(got, want) << kind.plugin;
      EXPECT_EQ(s->statistics().drafter_failures, 0u) << kind.plugin;
    }
}

TEST_F(BudgetTest, TheHostMakesRoom) {
  std::vector<std::unique_ptr<Session>> idle;
  std::vector<int32_t> wanted;
  const auto model = open_with(3 * 128 + 128, [&](int32_t positions) {
    wanted.push_back(positions);
    if (idle.empty()) return false;
    if (wanted.size() % 2 == 1) must(idle.back()->rewind(1));  // frees its pages, not its scratch
    else idle.pop_back();
    return true;
  });
  for (int i = 0; i < 2; ++i) {
    idle.push_back(begun(model, options(nullptr, 0), prompt(40 + static_cast<size_t>(i))));
    generate(*idle.back(), 2);
  }
  const auto want = generate(*begun(open_with(4096), options(nullptr, 0.8f), prompt(60)), 60);
  auto s = begun(model, options(open(model, kinds()[0]), 0.8f), prompt(60));
  EXPECT_EQ(generate(*s, 60), want);
  EXPECT_FALSE(wanted.empty());
  for (const int32_t n : wanted) EXPECT_TRUE(n > 0 && n % 32 == 0);
  // Nobody is left to let go: an error, after all.
  auto t = begun(model, options(nullptr, 0), prompt(120)), u = begun(model, options(nullptr, 0), prompt(121));
  idle.clear();
  generate(*t, 4);
  std::vector<int32_t> none;
  EXPECT_EQ(until(*u, 4, &none).code(), Code::limit);
  t.reset();
  s.reset();
  must(until(*u, 4, &none));
}

// The sampled rule cannot cut a tree, so room for all of it is asked for before anything is drawn.
TEST_F(BudgetTest, TheHostMakesRoomForALongSampledChain) {
  std::unique_ptr<Session> idle;
  int asked = 0;
  const auto full = [&](int32_t) { return ++asked, idle ? (idle.reset(), true) : false; };
  const auto start = [&](const std::shared_ptr<Model>& of) {
    SessionOptions o = options(open(of, kinds()[0]), 0.8f);
    o.sampled_rule = true;
    o.tree.name = "chain";
    o.tree.length = 100;
    return begun(of, o, prompt(20));
  };
  const auto want = generate(*start(open_with(4096)), 100);
  const auto model = open_with(2 * 128 + 64 + 96, full);  // 64 tokens of another one, 96 here: 20 and 64 more, but not 100
  idle = begun(model, options(nullptr, 0), prompt(50));
  generate(*idle, 5);
  EXPECT_EQ(generate(*start(model), 100), want);
  EXPECT_EQ(asked, 1);
}

// In a batch the one that asks may outlive any of its neighbours.
TEST_F(BudgetTest, NeighboursInABatchMayGo) {
  std::vector<std::unique_ptr<Session>> members;
  int asked = 0;
  const auto model = open_with(4 * 128 + 8 * 32, [&](int32_t) {
    for (const size_t i : {1u, 0u, 2u})
      if (members[i]) {
        ++asked;
        members[i].reset();
        return true;
      }
    return false;
  });
  auto batch = must(Batch::create(model));
  const auto all = kinds();
  for (size_t i = 0; i < 4; ++i) {
    members.push_back(begun(model, options(i == 2 ? nullptr : open(model, all[i]), 0.8f), prompt(40 + i)));
    must(batch->add(*members.back()));
  }
  const auto want = generate(*begun(open_with(4096), options(nullptr, 0.8f), prompt(43)), 80);
  std::vector<int32_t> got;
  while (got.size() < 80) {
    must(batch->step(0, std::chrono::microseconds(0)));
    must(members[3]->status());
    for (const EmittedToken& t : members[3]->result().tokens) got.push_back(t.id);
  }
  got.resize(80);
  EXPECT_EQ(got, want);
  EXPECT_GT(asked, 0);
}

}  // namespace
}  // namespace aerie::test

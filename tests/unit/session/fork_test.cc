// Forks: the text, and the drafter's luck, of a session that was never forked; neither side sees the other.
#include <set>

#include "core/session/batch.h"
#include "tests/unit/session/reuse_fixtures.h"

namespace aerie::test {
namespace {

class ForkTest : public ReuseTest {};

// Nothing kept: a fork has what it has from the session, not from what others left.
std::shared_ptr<Model> without_prefixes(const std::string& path) {
  ModelOptions m;
  m.keep_prefixes = false;
  return open_model(path, cpu(1), m);
}

TEST_F(ForkTest, GoesOnAsTheSessionWould) {
  const auto model = without_prefixes(*target_);
  for (const Kind& kind : kinds())
    for (const float temperature : {0.0f, 0.8f})
      for (const size_t length : {11u, 12u, 33u}) {
        const std::string what = kind.plugin + " " + kind.package + " at " + std::to_string(temperature) + " after " + std::to_string(length);
        const SessionOptions o = options(open(model, kind), temperature);
        auto alone = begun(model, o, prompt(length));
        const auto start = more(*alone, 20);
        const auto want = more(*alone, 40);
        auto parent = begun(model, o, prompt(length));
        EXPECT_EQ(more(*parent, 20), start) << what;
        auto fork = must(parent->fork(5)), second = must(fork->fork(5));
        EXPECT_EQ(fork->tokens(), parent->tokens());
        EXPECT_EQ(more(*fork, 40), want) << what;
        EXPECT_EQ(more(*parent, 40), want) << what;
        parent.reset();
        EXPECT_EQ(more(*second, 40), want) << what;
        EXPECT_EQ(second->statistics().drafter_failures, 0u) << what;
      }
}

// Its text is that of a session of its stream that was given the text as a prompt; the parent's does not change.
TEST_F(ForkTest, DrawsFromAStreamOfItsOwn) {
  const auto model = without_prefixes(*target_);
  const SessionOptions o = options(open(model, kinds()[0]), 0.9f);
  const auto want = generate(*begun(model, o, prompt(20)), 60);
  auto parent = begun(model, o, prompt(20));
  std::vector<int32_t> got = generate(*parent, 10);
  std::set<std::vector<int32_t>> twins;
  for (const uint32_t stream : {0u, 0u, 0u, 77u}) {
    auto fork = must(parent->fork(stream));
    const auto text = generate(*fork, 30);
    EXPECT_TRUE(twins.insert(text).second);
    if (stream == 0) continue;
    SessionOptions own = o;
    own.sampling.stream = stream;
    EXPECT_EQ(text, generate(*begun(model, own, parent->tokens()), 30));
  }
  const auto rest = generate(*parent, 50);
  got.insert(got.end(), rest.begin(), rest.end());
  EXPECT_EQ(got, want);
  EXPECT_TRUE(twins.insert(std::vector<int32_t>(want.begin() + 10, want.begin() + 40)).second);
  // The same streams at the next run, in families too.
  const auto family = [&] {
    auto first = begun(model, o, prompt(20));
    auto a = must(first->fork(0)), b = must(a->fork(0)), c = must(first->fork(0));
    std::vector<std::vector<int32_t>> texts;
    for (Session* s : {first.get(), a.get(), b.get(), c.get()}) texts.push_back(generate(*s, 20));
    return texts;
  };
  const auto texts = family();
  EXPECT_EQ(texts, family());
  EXPECT_EQ(std::set(texts.begin(), texts.end()).size(), 4u);
}

// At any slice of a prompt or cycle; in and out of a batch.
TEST_F(ForkTest, InTheMiddleOfACycleNoTokenIsLost) {
  const auto model = without_prefixes(*target_);
  for (const Kind& kind : kinds()) {
    const SessionOptions o = options(open(model, kind), 0.7f);
    const auto want = generate(*begun(model, o, prompt(90)), 40);
    auto batch = must(Batch::create(model));
    for (size_t slices = 1; slices < 200; slices += 1 + slices / 3) {
      auto parent = begun(model, o, prompt(90));
      if (slices % 2 == 0) must(batch->add(*parent));
      std::vector<int32_t> had;
      for (size_t i = 0; i < slices && had.size() < 20; ++i) {
        if (slices % 2 == 0) must(batch->step(0, std::chrono::microseconds(1)));
        else {
          StepResult r;
          must(parent->step(0, std::chrono::microseconds(1), &r));
        }
        for (const EmittedToken& t : parent->result().tokens) had.push_back(t.id);
      }
      auto fork = must(parent->fork(5));
      StepResult r;
      must(fork->step(1, std::chrono::microseconds(0), &r));  // in no batch
      must(fork->rewind(fork->tokens().size() - r.tokens.size()));
      if (slices % 2 == 0) must(batch->remove(*parent));
      for (Session* s : {fork.get(), parent.get()}) {
        std::vector<int32_t> got = had;
        const auto rest = generate(*s, 40 - had.size());
        got.insert(got.end(), rest.begin(), rest.end());
        EXPECT_EQ(got, want) << kind.plugin << " after " << slices;
      }
    }
  }
}

TEST_F(ForkTest, EachMayRewindAppendAndEnd) {
  const auto model = without_prefixes(*target_);
  for (const Kind& kind : kinds()) {
    const SessionOptions o = options(open(model, kind), 0);
    auto parent = begun(model, o, prompt(70));
    generate(*parent, 10);
    const std::vector<int32_t> text = parent->tokens();
    auto a = must(parent->fork(0)), b = must(parent->fork(0));
    must(a->rewind(40));
    must(a->append(prompt(9)));
    must(b->append(prompt(12)));
    const auto fresh = [&](size_t keep, size_t appended) {
      std::vector<int32_t> t(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(keep));
      for (const int32_t x : prompt(appended)) t.push_back(x);
      return generate(*begun(model, o, t), 40);
    };
    EXPECT_EQ(generate(*a, 40), fresh(40, 9)) << kind.plugin;
    EXPECT_EQ(generate(*b, 40), fresh(text.size(), 12)) << kind.plugin;
    EXPECT_EQ(generate(*parent, 40), fresh(text.size(), 0)) << kind.plugin;
  }
  SessionOptions o = options(nullptr, 0);
  o.max_context = 40;
  auto ended = begun(model, o, prompt(30));
  generate(*ended, 20);
  auto fork = must(ended->fork(0));
  StepResult r;
  must(fork->step(0, std::chrono::microseconds(0), &r));
  EXPECT_EQ(r.finish, Finish::context);
  EXPECT_TRUE(r.tokens.empty());
}

TEST_F(ForkTest, AThousandForksTakeNoRoom) {
  ModelOptions m;
  m.kv_positions = 1024;
  m.keep_prefixes = false;
  const auto model = open_model(*target_, cpu(1), m);
  const SessionOptions o = options(open(model, kinds()[0]), 0.5f);
  auto parent = begun(model, o, prompt(100));
  generate(*parent, 5);
  const int64_t room = model->pool()->free_positions(), drafts = o.drafter->resources().pool->free_positions();
  for (int i = 0; i < 1000; ++i) {
    auto fork = must(parent->fork(0));
    EXPECT_EQ(model->pool()->free_positions(), room);
    if (i % 100 == 0) { EXPECT_EQ(generate(*fork, 3).size(), 3u); }
  }
  EXPECT_EQ(model->pool()->free_positions(), room);
  EXPECT_EQ(o.drafter->resources().pool->free_positions(), drafts);
  // All of the drafter's sequences are taken: a clear error, and the session goes on.
  std::vector<std::unique_ptr<Session>> forks;
  Result<std::unique_ptr<Session>> last = parent->fork(0);
  for (; last.ok() && forks.size() < 100; last = parent->fork(0)) forks.push_back(std::move(*last));
  EXPECT_EQ(last.status().code(), Code::limit);
  EXPECT_EQ(forks.size(), 7u);
  EXPECT_EQ(generate(*parent, 5).size(), 5u);
}

}  // namespace
}  // namespace aerie::test

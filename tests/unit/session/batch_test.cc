// Sessions in a batch: each one's text is what it is alone, whoever joins, leaves or fails beside it.
#include <atomic>

#include "core/session/batch.h"
#include "tests/support/models.h"
#include "tests/support/wrapped_device.h"

namespace aerie::test {
namespace {

constexpr std::chrono::microseconds kNoLimit{0};

class BatchTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    target_ = new std::string(converted(golden("mha"), "batch-target", kernels::DType::int8));
    eagle_ = new std::string(converted(golden("eagle_mha"), "batch-eagle", kernels::DType::bf16, *target_));
    small_ = new std::string(converted(golden("mha"), "batch-small", kernels::DType::int4));
  }
  static std::string *target_, *eagle_, *small_;

  struct Choice {
    std::string plugin, package;
  };
  static std::vector<Choice> choices() {
    std::vector<Choice> all = {{"eagle", *eagle_}, {"small_model", *small_}, {"ngram", ""}, {"lookahead", ""}};
    for (const auto& [library, kind] : {std::pair<const char*, const char*>{"eagle", "eagle3"}, {"fasteagle", "fasteagle"},
                                        {"medusa", "medusa"}, {"hydra", "hydra"}, {"hydra", "hydra_prefix"}, {"dflash", "dflash"}})
      all.push_back({library, converted(source_dir() + "/tests/golden/heads/" + kind, std::string("batch-") + kind,
                                        kernels::DType::bf16, *target_)});
    return all;
  }
  static std::vector<std::shared_ptr<Drafter>> drafters(const std::shared_ptr<Model>& model) {
    std::vector<std::shared_ptr<Drafter>> all;
    for (const Choice& c : choices()) all.push_back(open_drafter(model, c.plugin, c.package));
    return all;
  }
  static PolicySpec tree(const std::string& name, int32_t total = 20) {
    PolicySpec p;
    p.name = name;
    p.total = total;
    return p;
  }
  // A plain greedy session with a prompt of its own.
  static std::unique_ptr<Session> start(const std::shared_ptr<Model>& model, uint64_t seed, SessionOptions o = {}) {
    o.ignore_eos = true;
    o.sampling.seed = seed;
    auto s = must(Session::create(model, o));
    std::mt19937 random(static_cast<uint32_t>(seed));
    std::vector<int32_t> prompt(3 + seed % 9);
    for (int32_t& t : prompt) t = 20 + static_cast<int32_t>(random() % 100);
    must(s->append(prompt));
    return s;
  }
};
std::string *BatchTest::target_, *BatchTest::eagle_, *BatchTest::small_;

void collect(const Session& s, std::vector<int32_t>* out) {
  for (const EmittedToken& t : s.result().tokens) out->push_back(t.id);
}

// Requests of every kind come and go; steps are cut anywhere; some leave to be stepped alone, rewind or are cancelled.
TEST_F(BatchTest, EverySessionIsAsAlone) {
  const float temperatures[] = {0, 0.7f, 1};
  const char* const trees[] = {"chain", "static", "eagle2", "backbone", "cast", "auto"};
  for (const int threads : {1, 2}) {
    const auto model = open_model(*target_, cpu(threads));
    const auto all = drafters(model);
    std::mt19937 random(static_cast<uint32_t>(threads));
    struct Request {
      std::unique_ptr<Session> session;
      std::vector<int32_t> prompt, want, got;
      std::string what;
    };
    std::vector<Request> running;
    auto batch = must(Batch::create(model, {threads == 2 ? 24 : 0}));
    uint64_t together = 0;
    for (int left = 60; left > 0 || !running.empty();) {
      if (left > 0 && running.size() < 6 && random() % 3 != 0) {
        --left;
        Request r;
        SessionOptions o;
        o.ignore_eos = true;
        o.sampling.seed = random();
        o.sampling.temperature = temperatures[random() % 3];
        if (random() % 3 == 0) o.sampling.top_p = 0.9f;
        if (random() % 3 == 0) o.sampling.top_k = 20;
        r.prompt.resize(random() % 4 == 0 ? 65 + random() % 15 : 1 + random() % 30);
        for (int32_t& t : r.prompt) t = static_cast<int32_t>(random() % 160);
        auto alone = must(Session::create(model, o));
        must(alone->append(r.prompt));
        r.want = generate(*alone, 5 + random() % 40);
        const size_t d = random() % (all.size() + 1);
        if (d < all.size()) o.drafter = all[d];
        o.tree = tree(trees[random() % 6]);
        o.shared_noise = random() % 2 == 0;
        r.what = (o.drafter ? o.drafter->id() : "none") + (" " + o.tree.name);
        auto made = Session::create(model, o);
        if (!made.ok() && made.status().code() == Code::limit) continue;  // all of the drafter's sequences are taken
        r.session = must(std::move(made));
        must(r.session->append(r.prompt));
        must(batch->add(*r.session));
        running.push_back(std::move(r));
      }
      const auto budget = random() % 2 ? kNoLimit : std::chrono::microseconds(1 + random() % 50);
      must(batch->step(static_cast<int32_t>(random() % 4 == 0 ? 1 + random() % 5 : 0), budget));
      together += running.size() > 1;
      for (Request& r : running) {
        if (r.session->status().code() != Code::cancelled) must(r.session->status());
        collect(*r.session, &r.got);
      }
      for (size_t i = running.size(); i-- > 0;) {
        Request& r = running[i];
        switch (random() % 24) {
          case 0:
            r.session->request_cancel();
            break;
          case 1:
            if (r.got.size() < 3) break;
            r.got.resize(r.got.size() - 1 - random() % 2);
            must(r.session->rewind(r.prompt.size() + r.got.size()));
            break;
          case 2: {
            must(batch->remove(*r.session));
            const auto more = generate(*r.session, 3);
            r.got.insert(r.got.end(), more.begin(), more.end());
            must(batch->add(*r.session));
            break;
          }
          default: break;
        }
        if (r.got.size() < r.want.size()) continue;
        r.got.resize(r.want.size());
        EXPECT_EQ(r.got, r.want) << r.what << ", " << threads << " threads";
        EXPECT_EQ(r.session->statistics().drafter_failures, 0u) << r.what;
        running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));  // leaves by ending, in mid-pass too
      }
      ASSERT_FALSE(HasFailure());
    }
    EXPECT_GT(together, 100u);
  }
}

// What is drafted and accepted is what it is alone, not only the text.
TEST_F(BatchTest, AcceptanceIsAsAlone) {
  const auto model = open_model(*target_, cpu(2));
  for (const Choice& c : choices())
    for (const char* name : {"chain", "eagle2", "sampled"}) {
      SessionOptions o;
      o.sampled_rule = name == std::string("sampled");
      if (o.sampled_rule && (c.plugin == "ngram" || c.plugin == "lookahead")) continue;
      o.tree = tree(o.sampled_rule ? "static" : name);
      const auto differ = [&o](uint64_t seed) {  // in one call, with noise and without
        o.sampling.temperature = seed % 2 ? 1 : o.sampled_rule ? 0.5f : 0;
        o.shared_noise = seed != 3;
      };
      const auto counts = [](const Session& s) {
        const SessionStatistics& k = s.statistics();
        return std::vector<uint64_t>{k.accepted, k.proposed, k.verified, k.cycles, k.drafter_failures};
      };
      std::vector<std::vector<uint64_t>> want;
      std::vector<std::vector<int32_t>> texts;
      for (uint64_t seed = 0; seed < 4; ++seed) {
        differ(seed);
        o.drafter = open_drafter(model, c.plugin, c.package);
        const auto s = start(model, seed, o);
        std::vector<int32_t> text;
        StepResult r;
        while (s->statistics().cycles < 12) {
          must(s->step(0, kNoLimit, &r));
          collect(*s, &text);
        }
        want.push_back(counts(*s));
        texts.push_back(text);
      }
      o.drafter = open_drafter(model, c.plugin, c.package);
      auto batch = must(Batch::create(model));
      std::vector<std::unique_ptr<Session>> sessions;
      for (uint64_t seed = 0; seed < 4; ++seed) {
        differ(seed);
        sessions.push_back(start(model, seed, o));
        must(batch->add(*sessions.back()));
      }
      std::vector<std::vector<int32_t>> got(4);
      for (int i = 0; i < 12; ++i) {
        must(batch->step(0, kNoLimit));
        for (size_t k = 0; k < 4; ++k) collect(*sessions[k], &got[k]);
      }
      for (size_t k = 0; k < 4; ++k) {
        EXPECT_EQ(got[k], texts[k]) << c.plugin << " " << name;
        EXPECT_EQ(counts(*sessions[k]), want[k]) << c.plugin << " " << name;
      }
    }
}

// What a device is asked to do.
struct DeviceCounts {
  std::atomic<int> plans{0}, top_k{0}, walks{0}, rows{0};
};
class CountingQueue final : public WrappedQueue {
 public:
  CountingQueue(std::unique_ptr<kernels::Queue> inner, DeviceCounts* counts) : WrappedQueue(std::move(inner)), counts_(counts) {}
  Status submit(std::span<const kernels::Op> ops) override {
    ++counts_->plans;
    for (const kernels::Op& op : ops) {
      counts_->top_k += std::holds_alternative<kernels::TopK>(op) || std::holds_alternative<kernels::MergeTopK>(op);
      if (const auto* walk = std::get_if<kernels::Walk>(&op)) {
        ++counts_->walks;
        counts_->rows = static_cast<int>(walk->logits.rows);
      }
    }
    return inner_->submit(ops);
  }

 private:
  DeviceCounts* counts_;
};
class CountingDevice final : public WrappedDevice {
 public:
  using WrappedDevice::WrappedDevice;
  DeviceCounts counts;

 private:
  std::unique_ptr<kernels::Queue> wrap(std::unique_ptr<kernels::Queue> inner) override {
    return std::make_unique<CountingQueue>(std::move(inner), &counts);
  }
};

TEST_F(BatchTest, OneForwardServesAll) {
  const auto device = std::make_shared<CountingDevice>(cpu(1));
  const auto model = open_model(*target_, device);
  auto batch = must(Batch::create(model));
  std::vector<std::unique_ptr<Session>> sessions;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    sessions.push_back(start(model, seed));
    must(batch->add(*sessions.back()));
  }
  must(batch->step(0, kNoLimit));  // the prompts, and the first tokens
  device->counts.plans = 0;
  for (int i = 0; i < 10; ++i) {
    must(batch->step(0, kNoLimit));
    for (const auto& s : sessions) EXPECT_EQ(s->result().tokens.size(), 1u);
  }
  EXPECT_EQ(device->counts.plans, 10);

  SessionOptions o;
  o.drafter = open_drafter(model, "eagle", *eagle_);
  o.tree = tree("chain");
  o.tree.length = 3;
  sessions.clear();
  for (uint64_t seed = 0; seed < 8; ++seed) {
    sessions.push_back(start(model, seed, o));
    must(batch->add(*sessions.back()));
  }
  must(batch->step(0, kNoLimit));
  device->counts.plans = 0;
  device->counts.top_k = device->counts.walks = 0;
  for (int i = 0; i < 10; ++i) must(batch->step(0, kNoLimit));
  EXPECT_EQ(device->counts.top_k, 10 * 3) << "one propose a level";
  EXPECT_EQ(device->counts.walks, 10);
  EXPECT_GE(device->counts.plans, 10 * 4);
  EXPECT_LE(device->counts.plans, 10 * 5);  // three levels, the target, what was accepted
}

// A budget of rows goes to the best nodes of all; the texts are the same.
TEST_F(BatchTest, SessionsShareABudgetOfRows) {
  const auto device = std::make_shared<CountingDevice>(cpu(1));
  const auto model = open_model(*target_, device);
  auto batch = must(Batch::create(model, {20}));
  SessionOptions o;
  o.drafter = open_drafter(model, "small_model", *small_);
  o.tree = tree("eagle2", 40);
  std::vector<std::unique_ptr<Session>> sessions;
  std::vector<std::vector<int32_t>> got(4);
  for (uint64_t seed = 0; seed < 4; ++seed) {
    o.sampling.temperature = seed == 0 ? 0 : 2;  // confident drafts, and others
    o.shared_noise = false;
    sessions.push_back(start(model, seed, o));
    must(batch->add(*sessions.back()));
  }
  for (int i = 0; i < 20; ++i) {
    must(batch->step(0, kNoLimit));
    if (i > 0) {
      EXPECT_EQ(device->counts.rows, 20);
    }
    for (size_t k = 0; k < 4; ++k) collect(*sessions[k], &got[k]);
  }
  uint64_t least = UINT64_MAX, most = 0;
  for (const auto& s : sessions) {
    least = std::min(least, s->statistics().verified);
    most = std::max(most, s->statistics().verified);
  }
  EXPECT_GT(most, least);
  // One more comes with a prompt: the others go on beside it, within the budget.
  o.drafter = nullptr;
  auto late = must(Session::create(model, o));
  must(late->append(std::vector<int32_t>(60, 7)));
  must(batch->add(*late));
  int steps = 0;
  for (; late->statistics().emitted == 0; ++steps) {
    ASSERT_LT(steps, 60);
    must(batch->step(0, kNoLimit));
    for (size_t k = 0; k < 4; ++k) collect(*sessions[k], &got[k]);
    EXPECT_LE(device->counts.rows, 20);
  }
  EXPECT_GT(steps, 5) << "59 rows, at most 16 a pass";
  for (uint64_t seed = 0; seed < 4; ++seed) {
    SessionOptions plain;
    plain.sampling.temperature = seed == 0 ? 0 : 2;
    EXPECT_EQ(got[seed], generate(*start(model, seed, plain), got[seed].size()));
  }
}

TEST_F(BatchTest, OnesFailureIsItsOwn) {
  ModelOptions m;
  m.kv_positions = 384;  // 256 of them are tree slots
  const auto model = open_model(*target_, cpu(1), m), roomy = open_model(*target_, cpu(1));
  const auto long_one = [&](const std::shared_ptr<Model>& of) {
    auto s = start(of, 0);
    must(s->append(std::vector<int32_t>(42, 5)));
    return s;
  };
  auto batch = must(Batch::create(model));
  auto idle = must(Session::create(model, {}));  // has no prompt
  auto first = long_one(model), second = start(model, 1);
  for (Session* s : {idle.get(), first.get(), second.get()}) must(batch->add(*s));
  std::vector<int32_t> got[2];
  int failed = 0;
  for (int i = 0; i < 45; ++i) {
    must(batch->step(0, kNoLimit));
    EXPECT_EQ(idle->status().code(), Code::invalid_argument);
    must(first->status());
    collect(*first, &got[0]);
    collect(*second, &got[1]);
    if (second->status().ok()) continue;
    EXPECT_EQ(second->status().code(), Code::limit) << second->status().message();
    ++failed;
  }
  EXPECT_GT(failed, 0);
  EXPECT_EQ(got[0], generate(*long_one(roomy), 45));
  must(batch->remove(*first));
  first.reset();  // its positions are free: the other goes on where it was
  for (int i = 0; i < 20; ++i) {
    must(batch->step(0, kNoLimit));
    must(second->status());
    collect(*second, &got[1]);
  }
  EXPECT_EQ(got[1].size(), static_cast<size_t>(45 - failed + 20));
  EXPECT_EQ(got[1], generate(*start(roomy, 1), got[1].size()));
}

TEST_F(BatchTest, CancelStopsTheStepOrOneSession) {
  const auto model = open_model(*target_, cpu(1));
  auto batch = must(Batch::create(model));
  auto a = start(model, 1), b = start(model, 2);
  must(batch->add(*a));
  must(batch->add(*b));
  batch->request_cancel();
  EXPECT_EQ(batch->step(0, kNoLimit).code(), Code::cancelled);
  must(batch->step(0, kNoLimit));
  EXPECT_EQ(a->result().tokens.size(), 1u);
  a->request_cancel();
  must(batch->step(0, kNoLimit));
  EXPECT_EQ(a->status().code(), Code::cancelled);
  must(b->status());
  must(batch->step(0, kNoLimit));
  must(a->status());
  EXPECT_EQ(a->result().tokens.size(), 1u);
  EXPECT_EQ(b->result().tokens.size(), 1u);
}

TEST_F(BatchTest, MembershipIsChecked) {
  const auto model = open_model(*target_, cpu(1));
  auto batch = must(Batch::create(model)), other = must(Batch::create(model));
  must(batch->step(0, kNoLimit));  // nobody: nothing to do
  auto a = start(model, 1);
  must(batch->add(*a));
  EXPECT_EQ(batch->add(*a).code(), Code::busy);
  EXPECT_EQ(other->add(*a).code(), Code::busy);
  EXPECT_EQ(other->remove(*a).code(), Code::not_found);
  StepResult r;
  EXPECT_EQ(a->step(0, kNoLimit, &r).code(), Code::busy);
  const auto stranger = start(open_model(*target_, cpu(1)), 1);
  EXPECT_EQ(batch->add(*stranger).code(), Code::mismatch);
  batch.reset();
  must(a->step(0, kNoLimit, &r));
  EXPECT_EQ(r.tokens.size(), 1u);
}

// Notes in how much company it was told to be at each cycle.
class ToldCompany final : public TreePolicy {
 public:
  explicit ToldCompany(std::vector<int32_t>* told) : told_(told), inner_(make_chain_policy(2)) {}
  const char* name() const override { return "told company"; }
  std::unique_ptr<TreePolicy> clone() const override { return std::make_unique<ToldCompany>(told_); }
  int32_t width() const override { return inner_->width(); }
  bool draw_order() const override { return false; }
  bool wants_costs() const override { return true; }
  void begin(const CycleLimits& limits) override { inner_->begin(limits); }
  void costs(const CycleCosts& c) override { told_->push_back(c.beside); }
  bool expand(const DraftTree& tree, std::vector<int32_t>* frontier) override { return inner_->expand(tree, frontier); }
  void select(const DraftTree& tree, std::vector<int32_t>* selected) override { inner_->select(tree, selected); }

 private:
  std::vector<int32_t>* told_;
  std::unique_ptr<TreePolicy> inner_;
};

// Offers chains of two levels, the second for so many tokens; or (rows) has them drafted anyway, to be verified for as many
// milliseconds each. A draft pass takes 1 ms, of more than `most` rows 100, a verify pass 1 ms, or (rows) 1 ms for each four.
class Offering final : public TreePolicy {
 public:
  explicit Offering(double tokens, bool rows = false, int32_t most = 1000)
      : tokens_(tokens), rows_(rows), most_(most), inner_(make_chain_policy(2)) {}
  const char* name() const override { return "offering"; }
  std::unique_ptr<TreePolicy> clone() const override { return std::make_unique<Offering>(tokens_, rows_, most_); }
  int32_t width() const override { return inner_->width(); }
  bool draw_order() const override { return false; }
  void begin(const CycleLimits& limits) override { inner_->begin(limits); }
  bool expand(const DraftTree& tree, std::vector<int32_t>* frontier) override { return inner_->expand(tree, frontier); }
  bool offer(const DraftTree& tree, std::vector<int32_t>* frontier, LevelOffer* offer) override {
    if (!expand(tree, frontier)) return false;
    *offer = tree.size() > 1 && !rows_ ? LevelOffer{tokens_, 1, 1, 1, false, {}, {&tokens_, 1}, {1}} : LevelOffer{};
    return true;
  }
  bool offer_rows(const DraftTree& tree, std::vector<double>* worth) override {
    if (rows_) worth->assign(static_cast<size_t>(tree.size() - 1 > 2 ? 2 : tree.size() - 1), tokens_);
    inner_->select(tree, &best_);
    return rows_;
  }
  void rows_decided(int32_t nodes, double, std::vector<int32_t>* selected) override {
    selected->assign(best_.begin(), best_.begin() + nodes);
  }
  double level_ms(int32_t rows) const override { return rows > most_ ? 100 : 1; }
  double verify_ms(int32_t rows) const override { return rows_ ? (rows + 3) / 4 : 1; }
  void select(const DraftTree& tree, std::vector<int32_t>* selected) override { inner_->select(tree, selected); }

 private:
  double tokens_;
  bool rows_;
  int32_t most_;
  std::vector<int32_t> best_;
  std::unique_ptr<TreePolicy> inner_;
};

TEST_F(BatchTest, RowsGoToTheSessionsWhoseNodesAreWorthMost) {
  const auto model = open_model(*target_, cpu(1));
  const auto drafter = open_drafter(model, "eagle", *eagle_);
  const auto nodes = [&](const std::vector<double>& worth) {  // verified in a cycle, by session
    std::vector<std::unique_ptr<Session>> sessions;
    auto batch = must(Batch::create(model));
    for (size_t i = 0; i < worth.size(); ++i) {
      SessionOptions o;
      o.drafter = drafter;
      o.policy = [&worth, i] { return std::make_unique<Offering>(worth[i], true); };
      sessions.push_back(start(model, i, o));
      must(batch->add(*sessions.back()));
    }
    for (int n = 0; n < 6; ++n) must(batch->step(0, kNoLimit));
    std::vector<int32_t> out;
    for (const auto& s : sessions) out.push_back(s->statistics().chosen_nodes);
    return out;
  };
  using Nodes = std::vector<int32_t>;
  EXPECT_EQ(nodes({4, 4, 4}), (Nodes{2, 2, 2})) << "a third millisecond for one row is worth 3 x 1";
  EXPECT_EQ(nodes({4, 2, 1.5}), (Nodes{2, 2, 1})) << "a second four of rows, and it is filled";
  EXPECT_EQ(nodes({2, 0.7, 1.5}), (Nodes{2, 1, 2}));
  EXPECT_EQ(nodes({0.2, 1, 0.2}), (Nodes{0, 1, 0})) << "a row is free, and goes to the best";
}

TEST_F(BatchTest, SessionsDecideTogetherOnALevelThatAllWaitFor) {
  const auto model = open_model(*target_, cpu(1));
  const auto drafter = open_drafter(model, "eagle", *eagle_);
  const auto passes = [&](const std::vector<double>& tokens) {  // each session's draft passes in a cycle
    std::vector<std::unique_ptr<Session>> sessions;
    auto batch = must(Batch::create(model));
    for (size_t i = 0; i < tokens.size(); ++i) {
      SessionOptions o;
      o.drafter = drafter;
      o.policy = [&tokens, i] { return std::make_unique<Offering>(tokens[i]); };
      sessions.push_back(start(model, i, o));
      must(batch->add(*sessions.back()));
    }
    for (int n = 0; n < 5; ++n) must(batch->step(0, kNoLimit));
    std::vector<uint64_t> before, after;
    for (const auto& s : sessions) before.push_back(s->statistics().draft_passes);
    must(batch->step(0, kNoLimit));
    for (size_t i = 0; i < sessions.size(); ++i) after.push_back(sessions[i]->statistics().draft_passes - before[i]);
    return after;
  };
  using Passes = std::vector<uint64_t>;
  EXPECT_EQ(passes({1.1}), Passes{2});
  EXPECT_EQ(passes({0.9}), Passes{1});
  EXPECT_EQ(passes({1.1, 1.1, 1.1}), (Passes{2, 2, 2}));
  EXPECT_EQ(passes({2.4, 0.1, 0.1}), (Passes{1, 1, 1})) << "three wait for what one gains";
  EXPECT_EQ(passes({2.5, 0.6, 0.1}), (Passes{2, 2, 2})) << "rows are free here";
}

// EAGLE-2's ten rows of the second level come, whatever they cost.
TEST_F(BatchTest, WhoDecidesKnowsTheRowsOfThoseWhoDoNot) {
  const auto model = open_model(*target_, cpu(1));
  const auto drafter = open_drafter(model, "eagle", *eagle_);
  const auto passes = [&](int32_t most) {
    SessionOptions o, beside;
    o.drafter = beside.drafter = drafter;
    o.policy = [most] { return std::make_unique<Offering>(5, false, most); };
    beside.policy = [] { return must(make_eagle2_policy({})); };
    const auto session = start(model, 0, o), other = start(model, 1, beside);
    auto batch = must(Batch::create(model));
    must(batch->add(*session));
    must(batch->add(*other));
    for (int n = 0; n < 5; ++n) must(batch->step(0, kNoLimit));
    const uint64_t before = session->statistics().draft_passes;
    must(batch->step(0, kNoLimit));
    return session->statistics().draft_passes - before;
  };
  EXPECT_EQ(passes(11), 2u);
  EXPECT_EQ(passes(10), 1u) << "an eleventh row is dear";
}

// Passes for several cost more than for one: who takes the first cycle for one of its own would find that drafting loses.
TEST_F(BatchTest, EveryCycleKnowsItsCompanyAlsoTheFirst) {
  const auto model = open_model(*target_, cpu(1));
  const auto drafter = open_drafter(model, "eagle", *eagle_);
  std::vector<std::vector<int32_t>> told(3);
  std::vector<std::unique_ptr<Session>> sessions;
  auto batch = must(Batch::create(model));
  const auto join = [&](size_t i) {
    SessionOptions o;
    o.drafter = drafter;
    o.pass_ms = steady_ms;
    o.policy = [&told, i] { return std::make_unique<ToldCompany>(&told[i]); };
    sessions.push_back(start(model, i, o));
    must(batch->add(*sessions.back()));
  };
  const auto steps = [&](int n) {
    while (n-- > 0) must(batch->step(0, kNoLimit));
  };
  join(0);
  join(1);
  steps(2);
  EXPECT_EQ(told[0], (std::vector<int32_t>{2, 2}));
  EXPECT_EQ(told[1], told[0]);
  join(2);
  steps(3);
  EXPECT_EQ(told[2].at(0), 3);
  EXPECT_EQ(told[0].back(), 3);
  sessions.erase(sessions.begin());
  steps(1);
  EXPECT_EQ(told[2].back(), 2);
}

}  // namespace
}  // namespace aerie::test

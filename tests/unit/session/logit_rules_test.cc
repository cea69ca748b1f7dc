// Biases, penalties and constraints: what they do to a text, and that drafters change nothing of it.
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "core/model/evaluate.h"
#include "core/session/batch.h"
#include "tests/support/models.h"

namespace aerie::test {
namespace {

// Allows what a hash of the last two tokens says, a fraction of the vocabulary, and nothing once the text has `length` tokens.
struct HashConstraint final : Constraint {
  struct State final : ConstraintState {
    const HashConstraint* of;
    std::vector<int32_t> text;
    explicit State(const HashConstraint* c) : of(c) {}
    Result<std::unique_ptr<ConstraintState>> copy() const override {
      return std::unique_ptr<ConstraintState>(std::make_unique<State>(*this));
    }
    Status allowed(std::span<uint32_t> mask) override {
      if (of->fails == 1) return error(Code::limit, "too deep");
      if (of->fails == 2) throw std::runtime_error("no idea");
      if (text.size() >= of->fails_behind) {
        if (of->throws) throw std::runtime_error("no idea");
        return error(Code::limit, "too deep");
      }
      for (size_t t = 0; t < mask.size() * 32; ++t)
        if (of->allows(text, static_cast<int32_t>(t))) mask[t / 32] |= 1u << (t % 32);
      return {};
    }
    Status accept(int32_t token) override {
      if (!of->allows(text, token) || of->fails == 3) return error(Code::mismatch, "not here");
      text.push_back(token);
      return {};
    }
  };
  Result<std::unique_ptr<ConstraintState>> begin() const override {
    return std::unique_ptr<ConstraintState>(std::make_unique<State>(this));
  }
  bool allows(std::span<const int32_t> text, int32_t token) const {
    if (text.size() >= length) return false;
    uint32_t h = static_cast<uint32_t>(token) * 2654435761u + static_cast<uint32_t>(text.size());
    for (size_t i = text.size() > 2 ? text.size() - 2 : 0; i < text.size(); ++i) h = (h ^ static_cast<uint32_t>(text[i])) * 2246822519u;
    return (h >> 16) % 4 == 0;
  }
  size_t length = std::numeric_limits<size_t>::max();
  int fails = 0;
  size_t fails_behind = std::numeric_limits<size_t>::max();
  bool throws = false;
};

struct EverythingConstraint final : Constraint {
  struct State final : ConstraintState {
    Result<std::unique_ptr<ConstraintState>> copy() const override { return std::unique_ptr<ConstraintState>(std::make_unique<State>()); }
    Status allowed(std::span<uint32_t> mask) override {
      std::memset(mask.data(), 0xff, mask.size() * 4);
      return {};
    }
    Status accept(int32_t) override { return {}; }
  };
  Result<std::unique_ptr<ConstraintState>> begin() const override { return std::unique_ptr<ConstraintState>(std::make_unique<State>()); }
};

const std::vector<int32_t> kRuledPrompt = {26, 106, 150, 108, 115, 45, 37, 77, 51, 70, 119, 95, 26, 106, 150, 108};

using Tokens = std::vector<std::pair<int32_t, float>>;

struct Rules {
  const char* name;
  LogitOptions logits;
  bool constrained = false;
};

std::vector<Rules> all_rules() {
  Rules repetition{"repetition", {}}, counted{"presence and frequency", {}}, bias{"biases", {}}, constraint{"constraint", {}, true}, all{"all", {}, true};
  repetition.logits.penalties = {1.3f, 0, 0, 12};
  counted.logits.penalties = {1, 0.4f, 0.3f, 0};
  bias.logits.biases = {{26, -INFINITY}, {37, 1.5f}, {37, 0.5f}, {150, -2}};
  all.logits = {bias.logits.biases, {1.2f, 0.2f, 0.1f, 9}};
  return {repetition, counted, bias, constraint, all};
}

struct LogitRulesTest : testing::Test {
  static void SetUpTestSuite() {
    target_ = new std::string(converted(golden("mha"), "rules-target", kernels::DType::f32));
    model_ = new std::shared_ptr<Model>(open_model(*target_, cpu(2)));
    for (const auto& [plugin, package] : std::vector<std::pair<std::string, std::string>>{
             {"eagle", converted(golden("eagle_mha"), "rules-eagle", kernels::DType::f32, *target_)},
             {"fasteagle", converted(source_dir() + "/tests/golden/heads/fasteagle", "rules-fasteagle", kernels::DType::bf16, *target_)},
             {"small_model", *target_},
             {"ngram", ""},
             {"lookahead", ""}})
      drafters().push_back(open_drafter(*model_, plugin, package));
  }
  static void TearDownTestSuite() {
    drafters().clear();
    delete model_;
    delete target_;
  }
  static std::vector<std::shared_ptr<Drafter>>& drafters() {
    static std::vector<std::shared_ptr<Drafter>> all;
    return all;
  }
  static SessionOptions options(const Rules& rules, float temperature, std::shared_ptr<Drafter> drafter = nullptr, const char* tree = "eagle2") {
    SessionOptions o = options_for(std::move(drafter), tree, temperature);
    o.logits = rules.logits;
    o.pass_ms = steady_ms;
    return o;
  }
  std::unique_ptr<Session> begun(const Rules& rules, const SessionOptions& o) const {
    auto s = must(Session::create(*model_, o));
    if (rules.constrained) must(s->set_constraint(hash_));
    must(s->append(kRuledPrompt));
    return s;
  }
  static Tokens more(Session& s, size_t n, std::chrono::microseconds budget = {}) {
    Tokens out;
    while (out.size() < n) {
      StepResult r;
      must(s.step(static_cast<int32_t>(n - out.size()), budget, &r));
      for (const EmittedToken& t : r.tokens) out.emplace_back(t.id, t.logprob);
      if (r.state == StepState::done) break;
    }
    return out;
  }
  // Next tokens, from the model's logits for the whole text and what the words say.
  std::vector<int32_t> by_hand(const Rules& rules, size_t n) const {
    std::vector<int32_t> text = kRuledPrompt, out;
    const auto v = static_cast<size_t>((*model_)->config().vocab_size);
    while (out.size() < n) {
      std::vector<float> all(text.size() * v);
      must(evaluate(**model_, text, {{}, nullptr, all.data(), {}}));
      std::vector<float> x(all.end() - static_cast<std::ptrdiff_t>(v), all.end());
      for (const LogitBias& b : rules.logits.biases) x[static_cast<size_t>(b.token)] += b.bias;
      const PenaltyOptions& p = rules.logits.penalties;
      const size_t from = p.window > 0 && text.size() > static_cast<size_t>(p.window) ? text.size() - static_cast<size_t>(p.window) : 0;
      for (size_t t = 0; t < v; ++t) {
        int seen = 0, made = 0;
        for (size_t i = from; i < text.size(); ++i) {
          if (text[i] != static_cast<int32_t>(t)) continue;
          ++seen;
          made += i >= kRuledPrompt.size();
        }
        if (seen > 0) x[t] = x[t] > 0 ? x[t] / p.repetition : x[t] * p.repetition;
        if (made > 0) x[t] -= p.frequency * static_cast<float>(made) + p.presence;
        if (rules.constrained && !hash_->allows(out, static_cast<int32_t>(t))) x[t] = -INFINITY;
      }
      out.push_back(static_cast<int32_t>(std::max_element(x.begin(), x.end()) - x.begin()));
      text.push_back(out.back());
    }
    return out;
  }
  static std::vector<int32_t> ids(const Tokens& tokens) {
    std::vector<int32_t> out;
    for (const auto& t : tokens) out.push_back(t.first);
    return out;
  }
  std::shared_ptr<HashConstraint> hash_ = std::make_shared<HashConstraint>();
  static std::string* target_;
  static std::shared_ptr<Model>* model_;
};
std::string* LogitRulesTest::target_;
std::shared_ptr<Model>* LogitRulesTest::model_;

TEST_F(LogitRulesTest, DoWhatTheirWordsSay) {
  const auto plain = by_hand({"none", {}}, 40);
  for (const Rules& rules : all_rules()) {
    SCOPED_TRACE(rules.name);
    const auto want = by_hand(rules, 40);
    EXPECT_NE(want, plain) << "they have something to do";
    EXPECT_EQ(ids(more(*begun(rules, options(rules, 0)), 40)), want);
  }
}

TEST_F(LogitRulesTest, ThatChangeNothingLeaveEveryBit) {
  Rules nothing{"nothing", {{{7, 0.0f}}, {}}, false};
  for (const auto& setting : {kernels::Sampling{11, 0, 0, 1, 0, 0}, kernels::Sampling{11, 0, 0.9f, 1, 0, 0}, kernels::Sampling{3, 1, 0.9f, 0.8f, 0, 0},
                              kernels::Sampling{3, 1, 0.9f, 1, 0.05f, 20}}) {
    SessionOptions o = options({"none", {}}, 0);
    o.sampling = setting;
    const Tokens want = more(*begun({"none", {}}, o), 48);
    o.logits = nothing.logits;
    EXPECT_EQ(more(*begun(nothing, o), 48), want);
    o.logits = {};
    auto all = must(Session::create(*model_, o));
    must(all->append(kRuledPrompt));
    must(all->set_constraint(std::make_shared<EverythingConstraint>()));
    EXPECT_EQ(more(*all, 48), want);
  }
}

TEST_F(LogitRulesTest, SayTheSameWithEveryDrafterTreeAndTemperature) {
  for (const Rules& rules : all_rules())
    for (const float temperature : {0.0f, 0.9f}) {
      const Tokens want = more(*begun(rules, options(rules, temperature)), 40);
      uint64_t accepted = 0;
      for (const auto& drafter : drafters())
        for (const char* tree : {"chain", "static", "eagle2", "backbone", "cast", "auto"})
          for (const bool on_device : {false, true}) {
            SessionOptions o = options(rules, temperature, drafter, tree);
            o.drafts_on_device = on_device;
            auto s = begun(rules, o);
            ASSERT_EQ(more(*s, 40), want) << rules.name << ", " << drafter->id() << ", " << tree << ", " << temperature;
            ASSERT_EQ(s->statistics().drafter_failures, 0u);
            accepted += s->statistics().accepted;
          }
      EXPECT_GT(accepted, 100u) << rules.name << ": drafts come true under them, too";
    }
}

TEST_F(LogitRulesTest, SayTheSameInSlicesBatchesForksRewindsAndRestoredSessions) {
  for (const Rules& rules : all_rules()) {
    SCOPED_TRACE(rules.name);
    const Tokens want = more(*begun(rules, options(rules, 0.9f)), 48);
    const SessionOptions o = options(rules, 0.9f, drafters()[0]);
    EXPECT_EQ(more(*begun(rules, o), 48, std::chrono::microseconds(1)), want);

    auto s = begun(rules, o);
    Tokens got = more(*s, 30);
    auto fork = must(s->fork(o.sampling.stream + 1));
    const Tokens forked = more(*fork, 12);
    must(s->rewind(s->tokens().size() - 7));
    got.resize(got.size() - 7);
    std::vector<uint8_t> image;
    for (size_t size = 0; image.size() < size || size == 0;) {
      image.resize(size);
      const Status saved = s->save(image, &size);
      if (saved.ok() && size == image.size()) break;
    }
    auto restored = must(Session::restore(*model_, o, image));
    const Tokens rest(want.begin() + 23, want.end());
    EXPECT_EQ(more(*s, 25), rest);
    if (!rules.constrained) {
      EXPECT_EQ(more(*restored, 25), rest);
    }
    // A fork's text is that of a session of its stream.
    SessionOptions other = options(rules, 0.9f);
    auto twin = begun(rules, o);
    more(*twin, 30);
    other.sampling.stream = o.sampling.stream + 1;
    must(twin->set_sampling(other.sampling, other.logits));
    EXPECT_EQ(more(*twin, 12), forked);

    auto batch = must(Batch::create(*model_));
    std::vector<std::unique_ptr<Session>> members;
    for (size_t i = 0; i < 3; ++i) {
      members.push_back(begun(rules, options(rules, 0.9f, drafters()[i])));
      must(batch->add(*members.back()));
    }
    std::vector<Tokens> texts(3);
    while (texts[0].size() < 48 || texts[1].size() < 48 || texts[2].size() < 48) {
      must(batch->step(0, std::chrono::microseconds(0)));
      for (size_t i = 0; i < 3; ++i) {
        must(members[i]->status());
        for (const EmittedToken& t : members[i]->result().tokens) texts[i].emplace_back(t.id, t.logprob);
      }
    }
    for (Tokens& t : texts) {
      t.resize(48);
      EXPECT_EQ(t, want);
    }
  }
}

TEST_F(LogitRulesTest, ConstraintThatAllowsNothingMoreEndsTheText) {
  for (const bool drafted : {false, true}) {
    const Rules rules{"constraint", {}, true};
    hash_->length = 9;
    auto s = begun(rules, options(rules, 0.9f, drafted ? drafters()[0] : nullptr));
    EXPECT_EQ(more(*s, 40).size(), 9u);
    EXPECT_EQ(s->result().finish, Finish::constraint);
    EXPECT_FALSE(s->result().tokens.empty()) << "it ends with its last token";
    StepResult r;
    must(s->step(0, {}, &r));
    EXPECT_EQ(r.state, StepState::done);
    EXPECT_TRUE(r.tokens.empty());
    // The same end again, and what is appended is the beginning of another text.
    must(s->rewind(s->tokens().size()));
    must(s->step(0, {}, &r));
    EXPECT_EQ(r.finish, Finish::constraint);
    EXPECT_TRUE(r.tokens.empty());
    must(s->append(kRuledPrompt));
    EXPECT_EQ(more(*s, 40).size(), 9u);
    must(s->set_constraint(nullptr));
    EXPECT_EQ(more(*s, 40).size(), 40u);
  }
}

TEST_F(LogitRulesTest, ConstraintIsSetAmidAText) {
  const Rules none{"none", {}};
  hash_->length = 5;
  auto s = begun(none, options(none, 0.9f, drafters()[0]));
  more(*s, 20);
  must(s->set_constraint(hash_));
  const Tokens five = more(*s, 40);
  ASSERT_EQ(five.size(), 5u);
  const auto said = ids(five);
  for (size_t i = 0; i < 5; ++i) EXPECT_TRUE(hash_->allows(std::span(said).first(i), said[i]));
  must(s->rewind(kRuledPrompt.size() + 22));  // it goes on behind its second token
  EXPECT_EQ(more(*s, 40), Tokens(five.begin() + 2, five.end()));
  must(s->rewind(kRuledPrompt.size() + 10));  // and begins anew in front of its first
  EXPECT_EQ(more(*s, 40).size(), 5u);
}

TEST_F(LogitRulesTest, ConstraintThatFailsFailsTheStepAndLosesNothing) {
  const Rules rules{"constraint", {}, true};
  const Tokens want = more(*begun(rules, options(rules, 0)), 24);
  for (int how = 1; how <= 3; ++how) {
    auto s = begun(rules, options(rules, 0, drafters()[0]));
    Tokens got = more(*s, 8);
    hash_->fails = how;
    StepResult r;
    Status failed;
    for (int i = 0; i < 3 && failed.ok(); ++i) failed = s->step(0, {}, &r);
    const Code codes[] = {Code::limit, Code::internal, Code::mismatch};
    EXPECT_EQ(failed.code(), codes[how - 1]);
    EXPECT_NE(failed.message().find(how == 2 ? "no idea" : "constraint"), std::string::npos) << failed.message();
    EXPECT_EQ(s->statistics().drafter_failures, 0u) << "it is not the drafter's fault";
    hash_->fails = 0;
    const size_t lost = s->tokens().size() - kRuledPrompt.size();
    const Tokens rest = more(*s, 24 - lost);
    EXPECT_EQ(std::vector<int32_t>(s->tokens().begin() + static_cast<std::ptrdiff_t>(kRuledPrompt.size()), s->tokens().end()), ids(want));
  }
}

// Whatever the tree that was walked: so many tokens come, and then it is told, as often as it is asked.
TEST_F(LogitRulesTest, ConstraintThatFailsBehindATokenFailsThereWithAnyDrafter) {
  const Rules rules{"constraint", {}, true};
  const auto want = ids(more(*begun(rules, options(rules, 0)), 24));
  for (const bool throws : {false, true})
    for (const size_t behind : {1, 6, 7, 11}) {
      hash_->fails_behind = behind;
      hash_->throws = throws;
      for (size_t d = 0; d <= drafters().size(); ++d) {
        auto s = begun(rules, options(rules, 0, d > 0 ? drafters()[d - 1] : nullptr));
        std::vector<int32_t> got;
        Status status;
        for (StepResult r; status.ok() && got.size() < 24;) {
          status = s->step(0, {}, &r);
          for (const EmittedToken& t : r.tokens) got.push_back(t.id);
        }
        EXPECT_EQ(got, std::vector<int32_t>(want.begin(), want.begin() + static_cast<std::ptrdiff_t>(behind))) << d;
        EXPECT_EQ(status.code(), throws ? Code::internal : Code::limit);
        EXPECT_NE(status.message().find("constraint: "), std::string::npos) << status.message();
        StepResult r;
        EXPECT_EQ(s->step(0, {}, &r).code(), status.code());
        hash_->fails_behind = std::numeric_limits<size_t>::max();
        more(*s, 24 - behind);
        EXPECT_EQ(std::vector<int32_t>(s->tokens().begin() + static_cast<std::ptrdiff_t>(kRuledPrompt.size()), s->tokens().end()), want);
        hash_->fails_behind = behind;
      }
    }
}

// The outcome is that of the biases of now, however they came about.
TEST_F(LogitRulesTest, BiasesThatForbidAllThatAConstraintAllowsEndTheTextUntilTheyGo) {
  struct OneToken final : Constraint {
    struct State final : ConstraintState {
      Result<std::unique_ptr<ConstraintState>> copy() const override { return std::unique_ptr<ConstraintState>(std::make_unique<State>()); }
      Status allowed(std::span<uint32_t> mask) override {
        mask[0] = 1u << 9;
        return {};
      }
      Status accept(int32_t token) override { return token == 9 ? Status() : error(Code::mismatch, "not 9"); }
    };
    Result<std::unique_ptr<ConstraintState>> begin() const override { return std::unique_ptr<ConstraintState>(std::make_unique<State>()); }
  };
  LogitOptions forbids;
  forbids.biases = {{9, -INFINITY}};
  const Rules none{"none", {}};
  for (const bool drafted : {false, true}) {
    auto s = begun(none, options(none, 0.9f, drafted ? drafters()[0] : nullptr));
    must(s->set_constraint(std::make_shared<OneToken>()));
    EXPECT_EQ(ids(more(*s, 3)), std::vector<int32_t>(3, 9));
    must(s->set_sampling({}, forbids));
    StepResult r;
    must(s->step(0, {}, &r));
    EXPECT_EQ(r.finish, Finish::constraint);
    auto fork = must(s->fork(0));
    must(fork->step(0, {}, &r));
    EXPECT_EQ(r.finish, Finish::constraint);
    EXPECT_EQ(s->set_constraint(std::make_shared<OneToken>()).code(), Code::mismatch);
    must(s->set_sampling({}));
    EXPECT_EQ(ids(more(*s, 3)), std::vector<int32_t>(3, 9));
  }
}

TEST_F(LogitRulesTest, ThatLeaveNothingToDrawSaySo) {
  const Rules none{"none", {}};
  auto s = begun(none, options(none, 0.9f));
  hash_->length = 0;
  EXPECT_EQ(s->set_constraint(hash_).code(), Code::mismatch);
  EXPECT_EQ(more(*s, 3).size(), 3u) << "the one before, none, stays";
  LogitOptions forbid;
  for (int32_t t = 0; t < (*model_)->config().vocab_size; ++t) forbid.biases.push_back({t, -INFINITY});
  must(s->set_sampling({}, forbid));
  StepResult r;
  EXPECT_EQ(s->step(0, {}, &r).code(), Code::invalid_argument);
  must(s->set_sampling({}));
  EXPECT_EQ(more(*s, 3).size(), 3u);
}

TEST_F(LogitRulesTest, OutOfRangeAreRefusedByName) {
  const Rules none{"none", {}};
  auto s = begun(none, options(none, 0));
  const auto refused = [&](const LogitOptions& logits, const char* what) {
    const Status status = s->set_sampling({}, logits);
    EXPECT_EQ(status.code(), Code::invalid_argument);
    EXPECT_NE(status.message().find(what), std::string::npos) << status.message();
  };
  refused({{{-1, 0.0f}}, {}}, "token -1");
  refused({{{(*model_)->config().vocab_size, 0.0f}}, {}}, "vocabulary");
  refused({{{1, NAN}}, {}}, "logit_bias");
  refused({{{1, INFINITY}}, {}}, "logit_bias");
  must(s->set_sampling({}, {{}, {0.01f, 100, -100, 1}}));
  refused({{}, {0, 0, 0, 0}}, "repetition_penalty");
  refused({{}, {NAN, 0, 0, 0}}, "repetition_penalty");
  refused({{}, {1, 1e9f, 0, 0}}, "presence_penalty");
  refused({{}, {1, 0, -1e9f, 0}}, "frequency_penalty");
  refused({{}, {1, 0, 0, -1}}, "penalty_window");
}

// Under the papers' rule the law is what is left of the target's.
TEST_F(LogitRulesTest, HoldUnderTheSampledRule) {
  Rules rules{"all", {{{26, -INFINITY}}, {1.2f, 0, 0, 0}}, true};
  hash_->length = 30;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    SessionOptions o = options(rules, 1, drafters()[0], "static");
    o.sampled_rule = true;
    o.sampling.seed = seed;
    const std::vector<int32_t> got = ids(more(*begun(rules, o), 60));
    ASSERT_EQ(got.size(), 30u);
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_TRUE(hash_->allows(std::span(got).first(i), got[i]));
      EXPECT_NE(got[i], 26);
    }
  }
}

}  // namespace
}  // namespace aerie::test

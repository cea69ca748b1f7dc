// Foresight: what a constraint forces, or has usually come, is verified without a drafter; it changes nothing but the number of
// passes, whatever the constraint says about itself.
#include <stdexcept>

#include "core/model/evaluate.h"
#include "core/session/batch.h"
#include "tests/support/models.h"

namespace aerie::test {
namespace {

// Of each six tokens two are free, among a quarter of the vocabulary; the other four are one token each.
struct FormConstraint final : Constraint {
  enum Says { nothing, truth, other_tokens, no_tokens, too_many, an_error, a_throw };
  struct State final : ConstraintState {
    const FormConstraint* of;
    size_t n = 0;
    explicit State(const FormConstraint* c) : of(c) {}
    Result<std::unique_ptr<ConstraintState>> copy() const override {
      return std::unique_ptr<ConstraintState>(std::make_unique<State>(*this));
    }
    Status allowed(std::span<uint32_t> mask) override {
      for (int32_t t = 0; t < of->vocab; ++t)
        if (of->allows(n, t)) mask[static_cast<size_t>(t) / 32] |= 1u << (t % 32);
      return {};
    }
    Status accept(int32_t token) override {
      if (!of->allows(n, token)) return error(Code::mismatch, "not here");
      ++n;
      return {};
    }
    Status forced(size_t most, std::vector<int32_t>* tokens) override {
      if (of->says == an_error) return error(Code::internal, "no idea");
      if (of->says == a_throw) throw std::runtime_error("no idea");
      for (size_t i = n; of->says != nothing && i % 6 > 1 && tokens->size() < most; ++i)
        tokens->push_back(of->says == no_tokens ? (i % 2 ? -5 : of->vocab + 7) : of->only(i) + (of->says == other_tokens));
      if (of->says == too_many) tokens->resize(most + 100, 3);
      return {};
    }
  };
  Result<std::unique_ptr<ConstraintState>> begin() const override {
    return std::unique_ptr<ConstraintState>(std::make_unique<State>(this));
  }
  int32_t only(size_t n) const { return static_cast<int32_t>((n * 37 + 11) % 120) + 20; }
  bool allows(size_t n, int32_t t) const {
    return n % 6 > 1 ? t == only(n) : (static_cast<uint32_t>(t) * 2654435761u + static_cast<uint32_t>(n) * 977) >> 16 & 3 ? false : true;
  }
  int32_t vocab = 0;
  Says says = truth;
};

const std::vector<int32_t> kFormPrompt = {26, 106, 150, 108, 115, 45, 37, 77};

struct ForesightTest : testing::Test {
  void SetUp() override {
    target = converted(golden("mha"), "form-target", kernels::DType::f32);
    model = open_model(target, cpu(2));
    drafters = {open_drafter(model, "eagle", converted(golden("eagle_mha"), "form-eagle", kernels::DType::f32, target)),
                open_drafter(model, "fasteagle", converted(source_dir() + "/tests/golden/heads/fasteagle", "form-fasteagle", kernels::DType::bf16, target)),
                open_drafter(model, "small_model", target), open_drafter(model, "ngram", ""), open_drafter(model, "lookahead", "")};
    form->vocab = model->config().vocab_size;
  }
  SessionOptions options(float temperature, std::shared_ptr<Drafter> drafter = nullptr, const char* tree = "eagle2") const {
    SessionOptions o = options_for(std::move(drafter), tree, temperature);
    o.pass_ms = steady_ms;
    o.ignore_eos = true;
    return o;
  }
  std::unique_ptr<Session> begun(const SessionOptions& o) const {
    auto s = must(Session::create(model, o));
    must(s->set_constraint(form));
    must(s->append(kFormPrompt));
    return s;
  }
  using Tokens = std::vector<std::pair<int32_t, float>>;
  // step: most tokens of one; with 1 there is nothing to foresee.
  static Tokens more(Session& s, size_t n, size_t step = 1000, std::chrono::microseconds budget = {}) {
    Tokens out;
    while (out.size() < n) {
      StepResult r;
      must(s.step(static_cast<int32_t>(std::min(step, n - out.size())), budget, &r));
      for (const EmittedToken& t : r.tokens) out.emplace_back(t.id, t.logprob);
      if (r.state == StepState::done) break;
    }
    return out;
  }
  std::string target;
  std::shared_ptr<Model> model;
  std::vector<std::shared_ptr<Drafter>> drafters;
  std::shared_ptr<FormConstraint> form = std::make_shared<FormConstraint>();
};

TEST_F(ForesightTest, WhatIsForcedTakesNoPassOfItsOwn) {
  auto plain = begun(options(0));
  const Tokens want = more(*plain, 60, 1);
  ASSERT_EQ(plain->statistics().cycles, 60u);
  ASSERT_EQ(plain->statistics().foreseen_verified, 0u);
  auto s = begun(options(0));
  EXPECT_EQ(more(*s, 60), want);
  const SessionStatistics& st = s->statistics();
  EXPECT_LE(st.cycles, 21u) << "two of six tokens, and the first";
  EXPECT_GE(st.foreseen_accepted, 38u);
  EXPECT_EQ(st.accepted, st.foreseen_accepted);
  EXPECT_EQ(st.plain_cycles, st.cycles);
}

TEST_F(ForesightTest, SaysTheSameWithEveryDrafterTreeAndTemperatureWhateverTheConstraintSays) {
  for (const float temperature : {0.0f, 0.9f}) {
    form->says = FormConstraint::nothing;
    const Tokens want = more(*begun(options(temperature)), 50, 1);
    for (const auto says : {FormConstraint::truth, FormConstraint::other_tokens, FormConstraint::no_tokens, FormConstraint::too_many,
                            FormConstraint::an_error, FormConstraint::a_throw}) {
      form->says = says;
      ASSERT_EQ(more(*begun(options(temperature)), 50), want) << says;
      for (const auto& drafter : drafters)
        for (const char* tree : {"chain", "static", "eagle2", "backbone", "cast", "auto"}) {
          auto s = begun(options(temperature, drafter, tree));
          ASSERT_EQ(more(*s, 50), want) << says << ", " << drafter->id() << ", " << tree << ", " << temperature;
          ASSERT_EQ(s->statistics().drafter_failures, 0u);
          if (says == FormConstraint::truth) {
            ASSERT_GT(s->statistics().foreseen_accepted, 0u) << drafter->id() << ", " << tree;
          }
        }
    }
  }
}

TEST_F(ForesightTest, SaysTheSameInSlicesForksRewindsLimitsAndBatches) {
  const Tokens want = more(*begun(options(0.9f)), 60, 1);
  for (const auto& drafter : {std::shared_ptr<Drafter>(), drafters[0], drafters[3]}) {
    EXPECT_EQ(more(*begun(options(0.9f, drafter)), 60, 1000, std::chrono::microseconds(1)), want);
    for (const size_t step : {2, 3, 5}) EXPECT_EQ(more(*begun(options(0.9f, drafter)), 60, step), want);
    auto s = begun(options(0.9f, drafter));
    more(*s, 33);
    auto fork = must(s->fork(0));
    more(*fork, 9);
    must(s->rewind(kFormPrompt.size() + 21));
    EXPECT_EQ(more(*s, 39), Tokens(want.begin() + 21, want.end()));
    // A context that ends amid what is forced.
    SessionOptions o = options(0.9f, drafter);
    o.max_context = static_cast<int64_t>(kFormPrompt.size()) + 16;
    auto small = begun(o);
    EXPECT_EQ(more(*small, 60), Tokens(want.begin(), want.begin() + 16));
    EXPECT_EQ(small->result().finish, Finish::context);
    // A stop token there: what is behind it has not come.
    o = options(0.9f, drafter);
    o.stop_tokens = {form->only(10)};
    auto stopped = begun(o);
    const Tokens until = more(*stopped, 60);
    EXPECT_EQ(stopped->result().finish, Finish::stop_token);
    EXPECT_EQ(until, Tokens(want.begin(), want.begin() + static_cast<std::ptrdiff_t>(until.size())));
    EXPECT_EQ(until.back().first, form->only(10));
  }
  for (const int32_t rows : {0, 4, 9}) {  // the last two have no room for all that is foreseen
    auto batch = must(Batch::create(model, BatchOptions{rows}));
    std::vector<std::unique_ptr<Session>> members;
    for (size_t i = 0; i < 3; ++i) {
      members.push_back(begun(options(0.9f, i < 2 ? drafters[i] : nullptr, i == 1 ? "auto" : "eagle2")));
      must(batch->add(*members.back()));
    }
    std::vector<Tokens> texts(3);
    for (int step = 0; step < 60; ++step) {
      must(batch->step(0, std::chrono::microseconds(0)));
      for (size_t i = 0; i < 3; ++i) {
        must(members[i]->status());
        for (const EmittedToken& t : members[i]->result().tokens) texts[i].emplace_back(t.id, t.logprob);
      }
    }
    uint64_t foreseen = 0;
    for (size_t i = 0; i < 3; ++i) {
      texts[i].resize(60);
      EXPECT_EQ(texts[i], want) << rows;
      foreseen += members[i]->statistics().foreseen_accepted;
    }
    EXPECT_GT(foreseen, 0u) << rows;
  }
}

// Who says nothing about itself, too: the model writes what it is left the same way each time, and later sessions know.
TEST_F(ForesightTest, WhatHasUsuallyComeIsForeseen) {
  form->says = FormConstraint::nothing;
  auto first = begun(options(0)), second = begun(options(0));
  const Tokens want = more(*first, 120);
  EXPECT_EQ(more(*second, 120), want);
  EXPECT_GT(second->statistics().foreseen_accepted, 20u);
  EXPECT_LT(second->statistics().cycles, first->statistics().cycles);
  auto free = must(Session::create(model, options(0)));  // a text of no form has none of it
  must(free->append(kFormPrompt));
  more(*free, 60);
  EXPECT_EQ(free->statistics().foreseen_verified, 0u);
}

// Where keys and values have no room for all that is foreseen, there is as much text as token by token.
TEST_F(ForesightTest, UsesTheRoomThatThereIs) {
  const Tokens want = more(*begun(options(0)), 120, 1);
  ModelOptions few;
  few.kv_positions = 192;  // 128 of them are tree slots
  few.keep_prefixes = false;
  const auto small = open_model(target, cpu(2), few);
  std::vector<size_t> lengths;
  for (const int32_t step : {1, 1000}) {
    auto s = must(Session::create(small, options(0)));
    must(s->set_constraint(form));
    must(s->append(kFormPrompt));
    Status status;
    for (StepResult r; status.ok();) status = s->step(step, {}, &r);
    EXPECT_EQ(status.code(), Code::limit);
    const std::vector<int32_t> said(s->tokens().begin() + static_cast<std::ptrdiff_t>(kFormPrompt.size()), s->tokens().end());
    for (size_t i = 0; i < said.size(); ++i) EXPECT_EQ(said[i], want[i].first);
    lengths.push_back(said.size());
  }
  EXPECT_EQ(lengths[0], lengths[1]);
  EXPECT_GT(lengths[0], 40u);
}

TEST_F(ForesightTest, UnderTheSampledRuleNothingIsForeseen) {
  SessionOptions o = options(0.9f, drafters[0], "chain");
  o.sampled_rule = true;
  auto s = begun(o);
  const Tokens got = more(*s, 40);
  ASSERT_EQ(got.size(), 40u);
  for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(form->allows(i, got[i].first));
  EXPECT_EQ(s->statistics().foreseen_verified, 0u);
}

}  // namespace
}  // namespace aerie::test

// A target's candidate head: the full head's answers from fewer columns, and never another text.
#include "core/drafter/services.h"
#include "tests/support/models.h"

namespace aerie::test::candidate_head {

using kernels::DType;

const std::string kDemo = source_dir() + "/samples/models/demo.aerie";
const std::string kHeads = source_dir() + "/samples/models/demo-";

std::string with_rank(int32_t rank, DType dtype) {
  ConvertOptions o;
  o.source = kDemo;
  o.output = scratch_dir() + "/candidates-" + std::to_string(rank) + "-" + std::to_string(static_cast<int>(dtype)) + ".aerie";
  o.dtype = dtype;
  o.candidate_rank = rank;
  if (!exists(o.output)) must(convert(o));
  return o.output;
}

// What a drafter that proposes these hidden rows is answered.
Candidates propose(const std::shared_ptr<Model>& model, const std::vector<float>& hidden, int32_t width, float temperature,
                   bool want_logits = false) {
  DrafterResources own(model, nullptr);
  own.id = "test";
  auto plan = must(Plan::create(model->device(), 1 << 16));
  auto queue = must(model->device()->make_queue());
  const int64_t h = model->config().hidden, rows = static_cast<int64_t>(hidden.size()) / h;
  const kernels::Tensor x = plan->scratch(rows, h);
  plan->add(kernels::Upload{x.data, hidden.data(), static_cast<int64_t>(hidden.size()) * 4});
  Candidates c;
  c.rows = static_cast<int32_t>(rows);
  c.levels = 1;
  c.width = width;
  c.want_logits = want_logits;
  c.token.assign(static_cast<size_t>(rows * width), -1);
  c.logp.assign(c.token.size(), 0.0f);
  std::vector<kernels::DrawKey> keys;
  for (int64_t r = 0; r < rows; ++r) keys.push_back({7, 1, 100 + r, temperature, 0});
  aerie_candidates out{&c, temperature > 0 ? plan->stage(std::span<const kernels::DrawKey>(keys)) : nullptr};
  aerie_plan handle{plan.get(), &own};
  const aerie_tensor t = to_abi(x);
  const auto* compute = static_cast<const aerie_service_compute*>(drafter_service(nullptr, AERIE_SERVICE_COMPUTE));
  compute->propose_hidden(&handle, &t, &out);
  must(plan->submit(*queue));
  EXPECT_EQ(must(queue->advance(kernels::kNoDeadline)), kernels::RunState::done);
  return c;
}

// Rows that look like the model's own: mixtures of what it has for tokens.
std::vector<float> hidden_rows(const Model& model, int64_t rows) {
  const int64_t h = model.config().hidden;
  std::mt19937 random(3);
  std::vector<float> x(static_cast<size_t>(rows * h));
  for (int64_t r = 0; r < rows; ++r)
    for (const float share : {60.0f, 30.0f, 15.0f}) {
      const auto token = static_cast<int64_t>(random() % 4096);
      for (int64_t i = 0; i < h; ++i)
        x[static_cast<size_t>(r * h + i)] += share * kernels::panel16_at(model.lm_head(), token, i);
    }
  return x;
}

TEST(CandidateHead, OfFullRankIsTheFullHead) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const auto full = open_model(kDemo, cpu(2)), twin = open_model(with_rank(192, dtype), cpu(2));
    const auto plain = dtype == DType::bf16 ? full : open_model(with_rank(-1, dtype), cpu(2));
    EXPECT_FALSE(plain->candidate_head());
    ASSERT_TRUE(twin->candidate_head());
    const auto x = hidden_rows(*full, 9);
    for (const float temperature : {0.0f, 0.8f})
      for (const int32_t width : {1, 4, 10, 32}) {
        const Candidates want = propose(plain, x, width, temperature), got = propose(twin, x, width, temperature);
        EXPECT_EQ(got.token, want.token) << "width " << width << " temperature " << temperature;
        for (size_t i = 0; i < want.logp.size(); ++i)
          ASSERT_NEAR(got.logp[i], want.logp[i], dtype == DType::f32 ? 2e-4 : 0.05) << i;
      }
  }
}

TEST(CandidateHead, ScoresWhatItFindsWithTheRealRows) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::fp8, DType::int8, DType::int4, DType::q4_1, DType::mxfp4}) {
    const auto plain = open_model(with_rank(-1, dtype), cpu(2));
    std::vector<float> x(5 * 192);  // in no direction that tokens share
    std::mt19937 random(5);
    for (float& v : x) v = std::normal_distribution<float>()(random);
    const Candidates all = propose(plain, x, 128, 0), best = propose(plain, x, 10, 0);
    for (const int32_t rank : {1, 180}) {
      const Candidates got = propose(open_model(with_rank(rank, dtype), cpu(2)), x, 10, 0);
      size_t found = 0;
      for (size_t i = 0; i < 50; ++i) {
        const auto row = best.token.begin() + static_cast<int64_t>(i / 10 * 10);
        found += std::count(row, row + 10, got.token[i]) ? 1 : 0;
      }
      EXPECT_EQ(found >= 40, rank == 180) << found << ": one column cannot know everything, 180 miss little";
      for (size_t row = 0; row < 5; ++row) {
        std::vector<float> exact;  // log-probabilities of the full head, for those it has in its 128
        for (size_t i = 0; i < 10; ++i)
          for (size_t j = row * 128; j < (row + 1) * 128; ++j)
            if (all.token[j] == got.token[row * 10 + i]) exact.push_back(all.logp[j] - got.logp[row * 10 + i]);
        for (const float difference : exact)  // the same normaliser for all of a row
          ASSERT_NEAR(difference, exact[0], 2e-5f) << "rank " << rank;
        if (rank == 180) {
          EXPECT_GE(exact.size(), 8u);
        }
      }
    }
  }
}

TEST(CandidateHead, GivesWayWhereItCannotServe) {
  const auto plain = open_model(kDemo, cpu(1)), model = open_model(with_rank(8, DType::bf16), cpu(1));
  const auto x = hidden_rows(*plain, 2);
  EXPECT_EQ(propose(model, x, 33, 0).token, propose(plain, x, 33, 0).token) << "too wide to retrieve four for one";
  const Candidates sampled = propose(model, x, 4, 0, true);
  EXPECT_EQ(sampled.token, propose(plain, x, 4, 0).token) << "the sampled rule needs the whole distribution";
  EXPECT_EQ(sampled.logits.size(), 2u * 4096u);
}

TEST(CandidateHead, NotANumberIsNoCandidate) {
  const auto model = open_model(with_rank(8, DType::int8), cpu(1));
  auto x = hidden_rows(*model, 2);
  x[5] = NAN;
  const Candidates c = propose(model, x, 4, 0);
  EXPECT_EQ(c.token[0], -1);
  EXPECT_GE(c.token[4], 0);
}

TEST(CandidateHead, NeverChangesTheText) {
  const std::vector<int32_t> prompt = {26, 106, 150, 108, 115, 45, 37, 77, 51, 70, 119, 95};
  const auto mock = [] { return std::shared_ptr<kernels::Device>(kernels::make_mock_device(must(kernels::make_cpu_device({.threads = 2})))); };
  for (const float temperature : {0.0f, 0.9f}) {
    SessionOptions o;
    o.sampling.temperature = temperature;
    o.sampling.seed = 4;
    o.ignore_eos = true;
    o.pass_ms = steady_ms;
    const auto run = [&](const std::shared_ptr<Model>& model, const std::string& plugin, const std::string& head,
                         const std::string& tree, uint64_t* accepted) {
      o.drafter = plugin.empty() ? nullptr : open_drafter(model, plugin, head);
      o.tree.name = tree;
      auto session = must(Session::create(model, o));
      must(session->append(prompt));
      auto out = generate(*session, 48);
      EXPECT_EQ(session->statistics().drafter_failures, 0u) << plugin;
      if (accepted) *accepted = session->statistics().accepted;
      return out;
    };
    const auto want = run(open_model(kDemo, cpu(2)), "", "", "chain", nullptr);
    const std::pair<const char*, const char*> drafters[] = {{"eagle", "eagle"}, {"fasteagle", "fasteagle"}, {"medusa", "medusa"},
                                                            {"hydra", "hydra"}, {"eagle", "eagle3"}};
    for (const auto& [rank, asynchronous] : {std::pair(4, false), std::pair(64, true)}) {
      const auto model = open_model(with_rank(rank, DType::bf16), asynchronous ? mock() : cpu(2));
      EXPECT_EQ(run(model, "", "", "chain", nullptr), want);
      for (const auto& [plugin, head] : drafters)
        for (const char* tree : {"chain", "eagle2", "auto"}) {
          uint64_t accepted = 0;
          EXPECT_EQ(run(model, plugin, kHeads + head + ".aerie", tree, &accepted), want) << head << " " << tree << " rank " << rank;
          if (rank == 64 && std::string(head) == "eagle" && std::string(tree) == "eagle2") {
            EXPECT_GT(accepted, 20u);
          }
        }
    }
  }
}

// A draft model may have a candidate head of its own.
TEST(CandidateHead, OfADraftModel) {
  const auto target = open_model(kDemo, cpu(2));
  SessionOptions o;
  o.ignore_eos = true;
  o.tree.name = "chain";
  uint64_t accepted[2] = {};
  for (const int32_t rank : {-1, 64}) {
    o.drafter = open_drafter(target, "small_model", with_rank(rank, DType::int8));
    auto session = must(Session::create(target, o));
    must(session->append(std::vector<int32_t>{26, 106, 150, 108}));
    generate(*session, 60);
    accepted[rank > 0] = session->statistics().accepted;
  }
  EXPECT_GT(accepted[0], 30u);
  EXPECT_GT(accepted[1], accepted[0] / 2);
}

}  // namespace aerie::test::candidate_head

// Medusa and Hydra heads with several blocks and LM heads of their own, which the golden ones lack, against the papers'
// formulas in double; and a single head, which is a tree of depth one.
#include <cmath>
#include <map>

#include "tests/support/models.h"

namespace aerie::test {
namespace {

constexpr int32_t kHidden = 32, kVocab = 160, kWidth = 6;
const std::vector<int32_t> kIds = {26, 106, 150, 108, 115, 45, 37, 77, 51, 70};

using Vector = std::vector<double>;

// Random heads: what the package holds, and the same numbers for the reference.
class RandomHeads {
 public:
  RandomHeads(const std::string& kind, int32_t heads, int32_t blocks, bool own, const Package& target) : kind_(kind), blocks_(blocks) {
    path_ = scratch_dir() + "/" + kind + std::to_string(heads) + std::to_string(blocks) + std::to_string(own) + ".aerie";
    auto writer = must(PackageWriter::create(path_));
    for (int32_t i = 0; i < heads; ++i) {
      const std::string at = "heads." + std::to_string(i) + ".";
      const int64_t wide = kind == "hydra" ? int64_t{i + 2} * kHidden : kHidden;
      const auto linear = [&](const std::string& name, int64_t rows, int64_t cols, bool bias) {
        add(*writer, at + name, rows, cols);
        if (bias) add(*writer, at + name + ".bias", 1, rows);
      };
      if (kind == "hydra") linear("res_connection", kHidden, wide, true);
      for (int32_t b = 0; b < blocks; ++b) linear(std::to_string(b) + ".linear", kHidden, b == 0 ? wide : kHidden, true);
      if (own) linear("lm_head", kVocab, kHidden, kind == "hydra");
    }
    DrafterConfig c;
    c.plugin_id = kind;
    c.target_fingerprint = target.fingerprint();
    c.params = {{"hidden", kHidden}, {"vocab_size", kVocab}, {"heads", static_cast<double>(heads)},
                {"blocks", static_cast<double>(blocks)}, {"own_lm_heads", own ? 1.0 : 0.0}};
    writer->set_name(kind);
    writer->set_fingerprint("fedcba9876543210");
    writer->set_drafter(c);
    must(writer->finish());
  }
  const std::string& path() const { return path_; }

  // Log-probabilities of head i. x: the feature; for Hydra the embeddings of the tokens after it behind it.
  Vector head(int32_t i, const Vector& x) const {
    const std::string at = "heads." + std::to_string(i) + ".";
    Vector h = kind_ == "hydra" ? apply(at + "res_connection", x) : x;
    for (int32_t b = 0; b < blocks_; ++b) {
      const Vector y = apply(at + std::to_string(b) + ".linear", b == 0 ? x : h);
      for (size_t k = 0; k < h.size(); ++k) h[k] += y[k] / (1 + std::exp(-y[k]));
    }
    Vector logits = apply(at + "lm_head", h);
    double sum = 0;
    for (const double l : logits) sum += std::exp(l);
    for (double& l : logits) l -= std::log(sum);
    return logits;
  }

 private:
  void add(PackageWriter& writer, const std::string& name, int64_t rows, int64_t cols) {
    std::vector<float>& values = values_[name];
    const bool vector = rows == 1;
    const float width = vector ? 0.5f : 2 / std::sqrt(static_cast<float>(cols));
    for (int64_t i = 0; i < rows * cols; ++i) values.push_back(std::uniform_real_distribution<float>(-width, width)(random_));
    if (vector) return must(writer.add_tensor(name, kernels::matrix(values.data(), 1, cols)));
    std::vector<char> data(static_cast<size_t>(kernels::data_bytes(kernels::DType::f32, kernels::Layout::panel16, rows, cols)));
    const kernels::Tensor t{data.data(), nullptr, rows, cols, 0, kernels::DType::f32, kernels::Layout::panel16};
    kernels::pack_panel16(values.data(), rows, cols, t.dtype, t.data, t.scales);
    must(writer.add_tensor(name, t));
  }
  Vector apply(const std::string& name, const Vector& x) const {
    const std::vector<float>& w = values_.at(name);
    const auto bias = values_.find(name + ".bias");
    Vector y(w.size() / x.size());
    for (size_t r = 0; r < y.size(); ++r) {
      y[r] = bias == values_.end() ? 0 : static_cast<double>(bias->second[r]);
      for (size_t k = 0; k < x.size(); ++k) y[r] += static_cast<double>(w[r * x.size() + k]) * x[k];
    }
    return y;
  }

  std::string kind_, path_;
  int32_t blocks_;
  std::mt19937 random_{5};
  std::map<std::string, std::vector<float>> values_;
};

class OwnHeads : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { model_ = open_model(converted(golden("mha"), "own-heads-target", kernels::DType::f32), cpu(1)); }

  // The drafter has seen kIds; the newest row's feature comes back.
  Vector show(Plan& plan, kernels::Queue& queue, DraftSequence& draft, const Drafter& drafter) {
    const auto n = static_cast<int64_t>(kIds.size()) - 1;
    KvSequence kv(model_->pool(), 64, 0);
    must(kv.reserve(n));
    RowsBuilder rows;
    rows.sequence(kv);
    for (int64_t i = 0; i < n; ++i) rows.plain(kIds[static_cast<size_t>(i)], i);
    const kernels::Tensor features = plan.scratch(n, kHidden);
    model_->forward(plan, rows.stage(plan), drafter.taps(), features);
    must(draft.observe(plan, kIds, n + 1, features));
    std::vector<float> all(static_cast<size_t>(n * kHidden));
    plan.add(kernels::Download{all.data(), features.data, n * kHidden * 4});
    run(plan, queue);
    draft.observed_to(n + 1);
    return Vector(all.end() - kHidden, all.end());
  }
  static void run(Plan& plan, kernels::Queue& queue) {
    must(plan.submit(queue));
    ASSERT_EQ(must(queue.advance(kernels::kNoDeadline)), kernels::RunState::done);
    plan.clear();
  }
  void append_embedding(int32_t token, Vector* x) const {
    const kernels::Tensor e = must(model_->package().tensor("embed"));
    for (int64_t c = 0; c < kHidden; ++c) x->push_back(static_cast<double>(kernels::panel16_at(e, token, c)));
  }
  std::shared_ptr<Model> model_;
};

TEST_P(OwnHeads, CandidatesAreTheFormulas) {
  const std::string kind = GetParam();
  const bool hydra = kind == "hydra";
  for (const int32_t blocks : {1, 2, 4}) {
    SCOPED_TRACE(blocks);
    constexpr int32_t kHeads = 3;
    const RandomHeads heads(kind, kHeads, blocks, true, model_->package());
    const auto drafter = open_drafter(model_, kind, heads.path());
    auto plan = must(Plan::create(model_->device(), 1 << 20));
    auto queue = must(model_->device()->make_queue());
    auto draft = must(DraftSequence::create(drafter, 64));
    Vector x = show(*plan, *queue, *draft, *drafter);
    if (hydra) append_embedding(kIds.back(), &x);

    DraftTree tree;
    tree.reset(kIds.back());
    draft->begin_cycle(static_cast<int64_t>(kIds.size()));
    int32_t node = 0;
    for (int32_t level = 0; level < kHeads; ++level) {
      if (hydra || level == 0) {
        must(draft->propose(*plan, tree, {&node, 1}, kWidth, {}));
        run(*plan, *queue);
        must(draft->check_candidates(kVocab));
      }
      const Candidates& c = draft->candidates();
      const size_t row = hydra ? 0 : static_cast<size_t>(level);
      Vector want = heads.head(level, x);
      for (size_t i = 0; i < kWidth; ++i) {
        const int32_t token = c.token[row * kWidth + i];
        const auto best = std::max_element(want.begin(), want.end());
        EXPECT_EQ(token, best - want.begin()) << "level " << level << " rank " << i;
        EXPECT_NEAR(c.logp[row * kWidth + i], *best, 2e-5) << "level " << level << " rank " << i;
        *best = -INFINITY;
      }
      if (!hydra) continue;
      const int32_t token = c.token[1];  // not the likeliest: what follows depends on what was drafted
      const float confidence = 0.5f;
      ASSERT_EQ(tree.add_children(node, {&token, 1}, {&confidence, 1}), 1);
      node = tree.size() - 1;
      append_embedding(token, &x);
    }
  }
}

TEST_P(OwnHeads, OneHeadDraftsOneToken) {
  const RandomHeads heads(GetParam(), 1, 2, true, model_->package());
  SessionOptions o;
  o.sampling.temperature = 0.8f;
  o.sampling.seed = 3;
  o.ignore_eos = true;
  auto alone = must(Session::create(model_, o));
  must(alone->append(kIds));
  const auto want = generate(*alone, 60);
  for (const char* tree : {"chain", "static", "eagle2", "backbone", "cast", "auto"}) {
    o.drafter = open_drafter(model_, GetParam(), heads.path());
    o.tree = {};
    o.tree.name = tree;
    auto session = must(Session::create(model_, o));
    must(session->append(kIds));
    EXPECT_EQ(generate(*session, 60), want) << tree;
    const SessionStatistics& s = session->statistics();
    EXPECT_EQ(s.drafter_failures, 0u) << tree;
    EXPECT_EQ(s.tried[1], 0u) << tree;
    if (std::string(tree) != "auto" && std::string(tree) != "cast") {
      EXPECT_GT(s.verified, 0u) << tree;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, OwnHeads, testing::Values("medusa", "hydra"), [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace aerie::test

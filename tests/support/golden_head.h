// Drafter heads of every kind through importer, plugin and runtime, held against PyTorch (tests/golden/heads), on any device.
#pragma once

#include <nlohmann/json.hpp>

#include "core/drafter/draft_sequence.h"
#include "tests/support/models.h"

namespace aerie::test {

inline std::string head(const std::string& kind) { return source_dir() + "/tests/golden/heads/" + kind; }

class GoldenHead : public testing::TestWithParam<const char*> {
 protected:
  // How far a log-probability may be from the reference's.
  void open(const std::shared_ptr<kernels::Device>& device, const ModelOptions& options, double apart) {
    apart_ = apart;
    const std::string kind = GetParam(), library = library_of(kind);
    std::ifstream in(head(kind) + "/golden.json");
    golden_ = nlohmann::json::parse(in);
    ids_ = golden_["ids"].get<std::vector<int32_t>>();
    const std::filesystem::path of = golden_["target"].get<std::string>();
    const std::string target = converted(golden(of.filename().string()), "heads-target-" + kind, kernels::DType::f32);
    model_ = open_model(target, device, options);
    drafter_ = open_drafter(model_, library, converted(head(kind), "heads-" + kind, kernels::DType::f32, target));
    ASSERT_EQ(drafter_->id(), drafter_of(kind));
    queue_ = must(model_->device()->make_queue());
    plan_ = must(Plan::create(model_->device(), 1 << 20));
    target_ = std::make_unique<KvSequence>(model_->pool(), 128, 0);
  }
  void run() {
    must(plan_->submit(*queue_));
    ASSERT_EQ(must(queue_->advance(kernels::kNoDeadline)), kernels::RunState::done);
  }
  // Tokens observed() .. end are shown to `draft`, with the target's own features, `chunk` rows at a time.
  void show(DraftSequence& draft, int64_t end, int64_t chunk) {
    KvSequence own(model_->pool(), 128, 0);  // a state goes no way back
    KvSequence& kv = model_->recurrent() ? own : *target_;
    must(kv.reserve(end));
    const auto taps = static_cast<int64_t>(drafter_->taps().size());
    const int64_t first = draft.observed() - 1;  // row j pairs feature j with token j + 1
    for (int64_t at = 0; at < end - 1;) {
      const int64_t until = std::min(at < first ? first : at + chunk, end - 1);
      plan_->clear();
      RowsBuilder rows;
      rows.sequence(kv);
      for (int64_t i = at; i < until; ++i) rows.plain(ids_[static_cast<size_t>(i)], i);
      const kernels::Tensor features = plan_->scratch(until - at, taps * model_->config().hidden);
      model_->forward(*plan_, rows.stage(*plan_), drafter_->taps(), features);
      if (at >= first) must(draft.observe(*plan_, ids_, until + 1, features));
      run();
      kv.state().advance(until);
      must(kv.state().reserve());
      if (at >= first) draft.observed_to(until + 1);
      at = until;
    }
  }
  void expect_level(const Candidates& c, size_t row, const nlohmann::json& want) {
    const std::vector<int32_t> ids = want["ids"];
    const auto width = static_cast<size_t>(c.width);
    ASSERT_GE(width, 4u);  // FastEagle's k of 4 comes from its package
    for (size_t i = 0; i < std::min(width, ids.size()); ++i) {
      EXPECT_EQ(c.token[row * width + i], ids[i]);
      EXPECT_NEAR(c.logp[row * width + i], want["log_p"][i].get<double>(), apart_);
    }
  }
  // Candidates of every level below the newest shown token, down `path`.
  void expect_levels(DraftSequence& draft, int64_t end, const nlohmann::json& want) {
    DraftTree tree;
    tree.reset(ids_[static_cast<size_t>(end) - 1]);
    draft.begin_cycle(end);
    int32_t node = 0;
    const bool one_pass = drafter_->needs().levels > 1;
    const auto width = static_cast<int32_t>(want["levels"][0]["ids"].size());
    for (size_t level = 0; level < want["levels"].size(); ++level) {
      if (level == 0 || !one_pass) {
        plan_->clear();
        must(draft.propose(*plan_, tree, {&node, 1}, width, {}));
        run();
      }
      expect_level(draft.candidates(), one_pass ? level : 0, want["levels"][level]);
      if (level < want["path"].size()) {
        const int32_t token = want["path"][level];
        const float confidence = 0.5f;
        ASSERT_EQ(tree.add_children(node, {&token, 1}, {&confidence, 1}), 1);
        node = tree.size() - 1;
      }
    }
  }

  // Shown the text up to each of the golden rows, `chunk` rows at a time.
  void expect_rows(int64_t chunk) {
    ASSERT_EQ(golden_["rows"].size(), 3u);
    for (const auto& row : golden_["rows"]) {
      const int64_t end = row["row"].get<int64_t>() + 2;  // row j pairs feature j with token j + 1
      auto fresh = must(DraftSequence::create(drafter_, 128, target_.get()));
      show(*fresh, end, chunk);
      expect_levels(*fresh, end, row);
    }
  }

  double apart_ = 0;
  std::shared_ptr<Model> model_;
  std::shared_ptr<Drafter> drafter_;
  std::unique_ptr<kernels::Queue> queue_;
  std::unique_ptr<Plan> plan_;
  std::unique_ptr<KvSequence> target_;  // the text's keys and values, for drafters that read them
  nlohmann::json golden_;
  std::vector<int32_t> ids_;
};

}  // namespace aerie::test

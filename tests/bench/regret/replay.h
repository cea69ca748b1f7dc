// Replay: policies over recorded trees, in the time of recorded pass costs. Nothing is measured, so nothing is noisy.
//
// `batch` texts go on together as sessions of a batch do (core/session/stepper.cc): all that draft are asked level by
// level, a pass for each level; then one pass of the target verifies. Each has a policy of its own, which begins
// knowing nothing. Passes cost what the table says for the rows that all of them bring.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "core/cost/cost_table.h"
#include "core/policy/drafter_choice.h"
#include "core/tree/level_product.h"
#include "tests/bench/regret/recording.h"

namespace aerie::bench {

// A drafter of the replay. good_until: the share of the run after which all its tokens are wrong (its confidence stays).
struct ReplayDrafter {
  const Recording* recording = nullptr;
  const DrafterCosts* costs = nullptr;
  double good_until = 1;
};

struct Outcome {
  double tokens = 0, ms = 0, cycles = 0, nodes = 0, plain = 0;
  double speed() const { return ms > 0 ? 1000 * tokens / ms : 0; }  // tokens a second, of all texts together
};

// What a cycle asks for and brings.
struct Cycle {
  int32_t drafter = -1;             // -1: plain
  std::vector<int32_t> level_rows;  // nodes that each draft pass is asked about
  int32_t nodes = 0;                // verified beside the root
  int32_t tokens = 1;
};

class Replay {
 public:
  Replay(const CostGrid& target, std::vector<ReplayDrafter> drafters, int32_t tokens)
      : target_(target), drafters_(std::move(drafters)), tokens_(tokens) {}

  using Maker = std::function<std::unique_ptr<TreePolicy>()>;
  // Each text writes about `tokens` tokens. One policy for each drafter; of several, all of them `auto`, a DrafterChoice.
  Outcome run(const Maker& make, int32_t batch);
  // The same for a policy with neither memory nor costs, whose cycles depend on the position alone, in every batch.
  std::vector<Outcome> run_fixed(const Maker& make, const std::vector<int32_t>& batches);
  Outcome run_plain(int32_t batch);

 private:
  struct Text;
  struct Place {
    size_t text = 0, at = 0;
  };
  const RecordedText& text(const ReplayDrafter& d, const Place& p) const { return d.recording->texts[p.text]; }
  // What a session hears of its cycle: milliseconds of it, of each draft pass its share, and of the whole first one, 0 where
  // that caught up with too much to be a usual one.
  using Told = std::function<void(int32_t s, double ms, std::span<const double> draft_ms, double root_ms)>;
  Outcome drive(int32_t batch, const std::function<Cycle(int32_t s, const Place& p, bool bad[], std::span<const double> behind)>& cycle,
                const Told& told);
  CycleCosts costs(const ReplayDrafter& d, int32_t batch, int64_t context);
  double catch_up_ms(const ReplayDrafter& d, int32_t batch, int64_t context, double behind) const;
  // The tree that `policy` draws at this place and what the target takes of it.
  Cycle draft(TreePolicy& policy, size_t drafter, const Place& p, bool bad);
  void copy_children(const WideTree& wide, int32_t node, bool bad);
  void fill_all(const WideTree& wide, bool bad);
  void grow_product(const WideTree& wide, TreePolicy& policy, int32_t max_depth, bool bad);
  Cycle walk(TreePolicy& policy, size_t drafter, const Place& p);

  const CostGrid& target_;
  std::vector<ReplayDrafter> drafters_;
  int32_t tokens_;
  DraftTree tree_;
  std::vector<int32_t> wide_;  // tree node -> recorded node
  std::vector<int32_t> frontier_, selected_, path_, tokens_scratch_;
  std::vector<float> confidence_;
  LevelProduct product_;
  int32_t last_token_ = -1;
  std::vector<int32_t> level_rows_;
  std::map<std::tuple<const CostGrid*, int32_t, int64_t>, PassCost::Curve> curves_;
};

}  // namespace aerie::bench

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

// A drafter of the replay. good_until: the share of the run after which all its tokens are wrong (its confidence stays); 1: never,
// not where a text is ahead of the others of its batch and writes more than its share either.
struct ReplayDrafter {
  const Recording* recording = nullptr;
  const DrafterCosts* costs = nullptr;
  double good_until = 1;
};

struct Outcome {
  double tokens = 0, ms = 0, cycles = 0, nodes = 0, plain = 0;
  double speed() const { return ms > 0 ? 1000 * tokens / ms : 0; }  // tokens a second, of all texts together
  void operator+=(const Outcome& o) {
    tokens += o.tokens;
    ms += o.ms;
    cycles += o.cycles;
    nodes += o.nodes;
    plain += o.plain;
  }
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
  // begin: which text the first session begins with; the others follow.
  Outcome run(const Maker& make, int32_t batch, size_t begin = 0);
  // The same for a policy with neither memory nor costs, whose cycles depend on the position alone, from each of `begins` in
  // every batch.
  std::vector<std::vector<Outcome>> run_fixed(const Maker& make, const std::vector<int32_t>& batches, const std::vector<size_t>& begins);
  Outcome run_plain(int32_t batch, size_t begin = 0);

 private:
  struct Text;
  struct Place {
    size_t text = 0, at = 0;
  };
  const RecordedText& text(const ReplayDrafter& d, const Place& p) const { return d.recording->texts[p.text]; }
  // What a session hears of its cycle: milliseconds of it, of each draft pass its share, and of the whole first one, 0 where
  // that caught up with too much to be a usual one.
  using Told = std::function<void(int32_t s, double ms, double root_ms)>;
  // A session: where it is, which drafters are wrong by now, what each has not been shown yet.
  struct Now {
    Place place;
    std::vector<uint8_t> bad;
    std::vector<double> behind;
  };
  using Cycles = std::function<void(std::span<const Now> sessions, std::span<Cycle> cycles)>;
  Outcome drive(int32_t batch, size_t begin, const Cycles& cycles, const Told& told);
  CycleCosts costs(const ReplayDrafter& d, int32_t batch, int64_t context);
  double catch_up_ms(const ReplayDrafter& d, int32_t batch, int64_t context, double behind) const;
  // A tree that `policy` draws at a place, and what the target takes of it.
  struct Draft {
    TreePolicy* policy = nullptr;  // null: nothing more to ask
    size_t drafter = 0;
    Place place;
    bool bad = false;
    DraftTree tree;
    std::vector<int32_t> wide;      // tree node -> recorded node
    std::vector<int32_t> frontier, level_rows, path;
    LevelOffer offer;
    int32_t last_token = -1;
    std::vector<int32_t> selected;
    std::vector<double> worth;  // of its nodes, as far as it has told
  };
  const WideTree& wide_of(const Draft& d) const { return text(drafters_[d.drafter], d.place).trees[d.place.at]; }
  DrafterKind kind_of(const Draft& d) const { return drafters_[d.drafter].recording->kind; }
  void start(Draft* d, TreePolicy& policy, size_t drafter, const Place& p, bool bad);
  void draft_all(std::span<Draft> drafts);  // level by level
  void decide_level(std::span<Draft> drafts, size_t drafter);
  void take_level(Draft* d);
  void stop(Draft* d);
  void copy_children(Draft* d, int32_t node);
  void fill_all(Draft* d);
  void grow_product(Draft* d, int32_t max_depth);
  struct Node {
    double worth;
    size_t session;
  };
  void select_all(std::span<Draft> drafts, std::span<TreePolicy* const> policies);  // null: plain
  Cycle walk(Draft* d);

  const CostGrid& target_;
  std::vector<ReplayDrafter> drafters_;
  int32_t tokens_;
  std::vector<int32_t> tokens_scratch_;
  std::vector<Node> nodes_;
  std::vector<double> worth_;
  std::vector<int32_t> taken_;
  std::vector<float> confidence_;
  LevelProduct product_;
  std::vector<Draft*> asking_;
  std::vector<LevelOffer> offers_;
  LevelBallot ballot_;
  std::map<std::tuple<const CostGrid*, int32_t, int64_t>, PassCost::Curve> curves_;
};

}  // namespace aerie::bench

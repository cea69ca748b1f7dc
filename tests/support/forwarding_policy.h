// A tree policy that asks another one, for those who watch what it is told and what it says.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/policy/tree_policy.h"

namespace aerie::test {

class ForwardingPolicy : public TreePolicy {
 public:
  explicit ForwardingPolicy(std::unique_ptr<TreePolicy> policy) : policy_(std::move(policy)) {}
  const char* name() const override { return policy_->name(); }
  void begin(const CycleLimits& limits) override { policy_->begin(limits); }
  int32_t width() const override { return policy_->width(); }
  bool expand(const DraftTree& tree, std::vector<int32_t>* frontier) override { return policy_->expand(tree, frontier); }
  bool offer(const DraftTree& tree, std::vector<int32_t>* frontier, LevelOffer* offer) override { return policy_->offer(tree, frontier, offer); }
  void decided(bool asks, double ms, double share) override { policy_->decided(asks, ms, share); }
  double level_ms(int32_t rows) const override { return policy_->level_ms(rows); }
  double verify_ms(int32_t rows) const override { return policy_->verify_ms(rows); }
  bool offer_rows(const DraftTree& tree, std::vector<double>* worth) override { return policy_->offer_rows(tree, worth); }
  void rows_decided(int32_t nodes, double node_ms, std::vector<int32_t>* selected) override { policy_->rows_decided(nodes, node_ms, selected); }
  void select(const DraftTree& tree, std::vector<int32_t>* selected) override { policy_->select(tree, selected); }
  bool draw_order() const override { return policy_->draw_order(); }
  int32_t best_nodes() const override { return policy_->best_nodes(); }
  int32_t best_depth() const override { return policy_->best_depth(); }
  bool shape(TreeShape* shape) const override { return policy_->shape(shape); }
  void drawn_in(int32_t rows, int32_t levels) override { policy_->drawn_in(rows, levels); }
  bool wants_costs() const override { return policy_->wants_costs(); }
  void costs(const CycleCosts& costs) override { policy_->costs(costs); }
  void outcome(const DraftTree& tree, const CycleOutcome& outcome) override { policy_->outcome(tree, outcome); }
  std::shared_ptr<const TreeExperience> experience() const override { return policy_->experience(); }
  void take_over(const TreeExperience& experience) override { policy_->take_over(experience); }
  std::vector<double> memory() const override { return policy_->memory(); }
  bool recall(std::span<const double> memory) override { return policy_->recall(memory); }
  bool resting() const override { return policy_->resting(); }
  CycleRate lately() const override { return policy_->lately(); }
  double doubt() const override { return policy_->doubt(); }
  CycleRate expected(const DraftTree& tree) override { return policy_->expected(tree); }
  bool on_trial() const override { return policy_->on_trial(); }
  void wake() override { policy_->wake(); }
  void idle(double tokens) override { policy_->idle(tokens); }
  void witness(const DraftTree& tree, std::span<const int32_t> tokens) override { policy_->witness(tree, tokens); }

 protected:
  const TreePolicy& policy() const { return *policy_; }

 private:
  std::unique_ptr<TreePolicy> policy_;
};

}  // namespace aerie::test

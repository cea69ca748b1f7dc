// The papers' sampled-draft rule: multi-round speculative sampling (EAGLE, Appendix A.2, Algorithm 1;
// SpecInfer; a chain is the p/q rule of Leviathan et al.). The children of a node are SAMPLED, by the
// core and without replacement, from the drafter's full distribution q after every draft filter, and
// tried in the order they were drawn:
//
//   accept x_i with probability min(1, p(x_i) / q_i(x_i));
//   otherwise p <- norm(max(0, p - q_i)) and q_{i+1} = q_i without x_i, renormalised;
//   after the last rejection draw from what is left of p.
//
// Exact in distribution, and only if no draw is dropped or moved by its score: hence chain and
// static trees only (TreePolicy::draw_order). Not the default and never mixed with shared draft noise.
// Not bitwise: the text depends on drafter and tree. See docs/exactness.md.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "core/tree/draft_tree.h"
#include "core/verify/dice.h"
#include "kernels/status.h"

namespace aerie {

// Lanes of the dice, one range per use; all below 4096.
constexpr uint32_t kDrawLane = 0;          // + number of the child
constexpr uint32_t kAcceptLane = 1 << 10;  // + number of the child
constexpr uint32_t kResidualLane = 1 << 11;
constexpr int32_t kMaxDrawn = 128;

// The children drawn for one node.
struct DrawnChildren {
  std::vector<int32_t> token;     // in the order drawn
  std::vector<float> confidence;  // q(token)
  std::vector<double> q;          // what they were drawn from, before the first draw
};

// Draw up to k children from q (not necessarily normalised); fewer if fewer ids can be drawn.
// `position`: absolute position the children would have. Reuses the memory of `out`.
Status draw_children(std::span<const double> q, int32_t k, int64_t position, Dice& dice, DrawnChildren* out);

// The draws of one cycle by tree node; keeps its memory from cycle to cycle.
class DrawnTree {
 public:
  void reset() { used_ = 0; }
  // Draws the children of `node`; the answer stays valid until reset(). A node is drawn once.
  Result<const DrawnChildren*> draw(int32_t node, std::span<const double> q, int32_t k, int64_t position, Dice& dice);
  const DrawnChildren* find(int32_t node) const;  // null: nothing was drawn for it

 private:
  std::deque<DrawnChildren> pool_;  // a deque: answers stay where they are when it grows
  std::vector<int32_t> node_;
  size_t used_ = 0;
};

// The target's law at a row, after temperature and filters (core/sampling: Distribution).
class TargetLaw {
 public:
  virtual ~TargetLaw() = default;
  virtual int32_t vocab() const = 0;
  virtual Status probabilities(int32_t row, std::span<double> p) = 0;  // p has vocab() places
  // Told of every token as it is emitted. True: nothing behind it is looked at.
  virtual bool ends(int32_t) { return false; }
};

struct SampledStep {
  int32_t row;  // the row whose law drew `token`; the next step's row is the child reached
  int32_t token;
};

class MultiRound {
 public:
  // One node: the token emitted after a row with law p whose verified children are `children`, a
  // leading part of what was drawn from q in the order drawn. p and q need not be normalised; q may
  // be shorter than p (0 from there on). `accepted`: number of the child it is, or -1.
  Status round(std::span<const double> p, std::span<const double> q, std::span<const int32_t> children,
               int64_t position, Dice& dice, int32_t* token, int32_t* accepted);

  // One cycle, from the root down. `root_position`: absolute position of the root's token.
  // Code::unsupported if the policy's tree is not in draw order (a reranked tree).
  Status verify(const TreeRows& rows, const DrawnTree& drawn, bool draw_order, int64_t root_position, TargetLaw& target,
                Dice& dice, std::vector<SampledStep>* out);

 private:
  std::vector<double> p_, q_, row_;
  std::vector<int32_t> children_, child_rows_;
};

}  // namespace aerie

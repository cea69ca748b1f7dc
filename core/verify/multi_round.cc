#include "core/verify/multi_round.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/fp_env.h"

namespace aerie {
namespace {

// Sum of the weights; NaN if one of them is no probability.
double mass(std::span<const double> weights) {
  double sum = 0;
  for (const double w : weights) sum += w >= 0 ? w : NAN;
  return sum;
}

Status check_law(const char* what, double total) {
  if (total > 0 && std::isfinite(total)) return {};
  return error(Code::invalid_argument, std::string("sampled-draft rule: ") + what + " is not a distribution");
}

}  // namespace

Status draw_children(std::span<const double> q, int32_t k, int64_t position, Dice& dice, DrawnChildren* out) {
  const kernels::FpEnv env;
  if (k < 0 || k > kMaxDrawn)
    return error(Code::invalid_argument, "sampled-draft rule: cannot draw that many children");
  AERIE_TRY(check_law("q", mass(q)));
  out->token.clear();
  out->confidence.clear();
  out->q.assign(q.begin(), q.end());
  const double whole = mass(q);

  // Drawn ids are zeroed in out->q while we draw and put back at the end. What is left is summed
  // anew every time: 1 - q(x) would keep no digit when the drafter is sure of x.
  for (int32_t i = 0; i < k; ++i) {
    const double left = mass(out->q);
    if (!(left > 0)) break;
    const int32_t x = dice.pick(position, kDrawLane + static_cast<uint32_t>(i), out->q, left);
    if (x < 0) break;
    out->token.push_back(x);
    out->confidence.push_back(static_cast<float>(q[static_cast<size_t>(x)] / whole));
    out->q[static_cast<size_t>(x)] = 0;
  }
  for (const int32_t x : out->token) out->q[static_cast<size_t>(x)] = q[static_cast<size_t>(x)];
  return {};
}

Result<const DrawnChildren*> DrawnTree::draw(int32_t node, std::span<const double> q, int32_t k, int64_t position,
                                             Dice& dice) {
  if (find(node)) return error(Code::invalid_argument, "sampled-draft rule: a node's children are drawn once");
  if (used_ == pool_.size()) {
    pool_.emplace_back();
    node_.push_back(0);
  }
  AERIE_TRY(draw_children(q, k, position, dice, &pool_[used_]));
  node_[used_] = node;
  return static_cast<const DrawnChildren*>(&pool_[used_++]);
}

const DrawnChildren* DrawnTree::find(int32_t node) const {
  for (size_t i = 0; i < used_; ++i)
    if (node_[i] == node) return &pool_[i];
  return nullptr;
}

Status MultiRound::round(std::span<const double> p, std::span<const double> q, std::span<const int32_t> children,
                         int64_t position, Dice& dice, int32_t* token, int32_t* accepted) {
  double p_total = mass(p);
  AERIE_TRY(check_law("p", p_total));
  if (q.size() > p.size() || children.size() > static_cast<size_t>(kMaxDrawn))
    return error(Code::invalid_argument, "sampled-draft rule: q or its draws do not fit the target's vocabulary");
  p_.assign(p.begin(), p.end());
  q_.assign(q.begin(), q.end());

  for (size_t i = 0; i < children.size(); ++i) {
    const auto x = static_cast<size_t>(children[i]);
    const double q_total = mass(q_);
    // Also true of an id drawn twice and of a q with nothing left: q_i(x) = 0 was never drawn.
    if (children[i] < 0 || x >= q_.size() || !(q_[x] > 0) || !std::isfinite(q_total))
      return error(Code::invalid_argument,
                   "sampled-draft rule: token " + std::to_string(children[i]) + " cannot have been drawn from q");
    const double px = p_[x] / p_total, qx = q_[x] / q_total;
    // The papers' code accepts when r <= p/q, so that r = 0 lets a token through that the target
    // forbids; p = 0 is never asked about.
    if (px > 0 && (px >= qx || dice.accept(position, kAcceptLane + static_cast<uint32_t>(i), px / qx))) {
      *token = children[i];
      *accepted = static_cast<int32_t>(i);
      return {};
    }
    double left = 0;
    for (size_t t = 0; t < q_.size(); ++t) left += std::max(0.0, p_[t] / p_total - q_[t] / q_total);
    for (size_t t = q_.size(); t < p_.size(); ++t) left += p_[t] / p_total;
    // Nothing left: p = q_i but for rounding, so this rejection had a probability of some 1e-16. Any
    // law over the target's support will do, and p itself is one.
    if (left > 0) {
      for (size_t t = 0; t < p_.size(); ++t)
        p_[t] = std::max(0.0, p_[t] / p_total - (t < q_.size() ? q_[t] / q_total : 0.0));
      p_total = left;
    }
    q_[x] = 0;
  }
  *token = dice.pick(position, kResidualLane, p_, p_total);
  *accepted = -1;
  if (*token < 0) return error(Code::internal, "sampled-draft rule: nothing left to draw");
  return {};
}

Status MultiRound::verify(const TreeRows& rows, const DrawnTree& drawn, bool draw_order, int64_t root_position,
                          TargetLaw& target, Dice& dice, std::vector<SampledStep>* out) {
  const kernels::FpEnv env;
  out->clear();
  if (!draw_order)
    return error(Code::unsupported,
                 "the sampled-draft rule is exact with chain and static trees only; this policy picks nodes by "
                 "their scores (use the exact verify policy)");
  row_.resize(static_cast<size_t>(std::max(target.vocab(), 0)));
  for (int32_t row = 0, depth = 0; row >= 0; ++depth) {
    children_.clear();
    child_rows_.clear();
    const auto at = static_cast<size_t>(row);
    for (int32_t c = rows.first_child[at]; c >= 0; c = rows.next_sibling[static_cast<size_t>(c)]) {
      children_.push_back(rows.token[static_cast<size_t>(c)]);
      child_rows_.push_back(c);
    }
    // What is verified must be the first draws, in their order.
    const DrawnChildren* draws = drawn.find(rows.node[at]);
    const size_t n_drawn = draws ? draws->token.size() : 0;
    if (children_.size() > n_drawn || (draws && !std::equal(children_.begin(), children_.end(), draws->token.begin())))
      return error(Code::invalid_argument, "sampled-draft rule: the tree's children are not the first draws in order");

    // Behind what was accepted another cycle meets the same failure, and says so.
    if (const Status s = target.probabilities(row, row_); !s.ok()) return out->empty() ? s : Status();
    int32_t token = -1, accepted = -1;
    const std::span<const double> q = draws ? std::span<const double>(draws->q) : std::span<const double>();
    AERIE_TRY(round(row_, q, children_, root_position + 1 + depth, dice, &token, &accepted));
    out->push_back({row, token});
    row = !target.ends(token) && accepted >= 0 ? child_rows_[static_cast<size_t>(accepted)] : -1;
  }
  return {};
}

}  // namespace aerie

// The sessions of a batch decide together what they draft (core/policy/level_vote.h) and verify (row_vote.h).
#include <algorithm>

#include "core/policy/row_vote.h"
#include "core/session/session.h"
#include "core/session/stepper.h"

namespace aerie {

// Those of one drafter and level share a pass.
void Stepper::decide_levels(const std::vector<Session*>& sessions) {
  const auto undecided = [](const Session* s) { return s->level_offer() != nullptr; };
  for (;;) {
    const auto first = std::find_if(flight_.begin(), flight_.end(), undecided);
    if (first == flight_.end()) return;
    const Session& leader = **first;
    asking_.clear();
    offers_.clear();
    worth_.clear();
    LevelCompany company{{}, 0, leader.beside_};
    for (Session* s : sessions) {
      if (!s->active() || !s->drafts_or_verifies()) continue;
      company.rows += s->certain_rows();
      if (undecided(s) && s->shares_level(leader)) {
        asking_.push_back(s);
        offers_.push_back(*s->level_offer());
      } else {
        const std::span<const double> worth = s->worth_of_nodes();
        worth_.insert(worth_.end(), worth.begin(), worth.end());
      }
    }
    company.nodes = worth_;
    const auto weighs = std::find_if(offers_.begin(), offers_.end(), [](const LevelOffer& o) { return !o.always(); });
    const TreePolicy& policy = *asking_[weighs == offers_.end() ? 0 : static_cast<size_t>(weighs - offers_.begin())]->policy_;
    const LevelVote vote = ballot_.decide(
        offers_, company, [&](int32_t rows) { return policy.level_ms(rows); }, [&](int32_t rows) { return policy.verify_ms(rows); });
    for (size_t i = 0; i < asking_.size(); ++i) {
      const size_t at = ballot_.best_first()[i];
      const double share = vote.rows > 0 ? static_cast<double>(offers_[at].rows) * leader.beside_ / vote.rows : 0;  // all of them wait
      const Status status = asking_[at]->level_decided(i < vote.taken, vote.ms * share, share);
      if (i >= vote.taken) std::erase(flight_, asking_[at]);
      if (!status.ok()) asking_[at]->give_up(status);
    }
  }
}

// Of the nodes that they have drafted, those that are worth most.
void Stepper::decide_rows() {
  nodes_.clear();
  asking_.clear();
  int32_t rows = 0;
  for (Session* s : flight_) {
    if (s->phase_ != Session::Phase::verify) continue;
    rows += s->pass_rows();
    if (s->rows_decided_) continue;
    asking_.push_back(s);
    s->rows_taken_ = 0;
    for (const double worth : s->row_worth_) nodes_.emplace_back(worth, s);
  }
  if (asking_.empty()) return;
  std::stable_sort(nodes_.begin(), nodes_.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  worth_.clear();
  for (const auto& [worth, session] : nodes_) worth_.push_back(worth);
  if (max_rows_ > 0) worth_.resize(std::min(worth_.size(), static_cast<size_t>(std::max(0, max_rows_ - rows))));
  const TreePolicy& policy = *asking_[0]->policy_;
  const RowVote vote = aerie::decide_rows(worth_, rows, asking_[0]->beside_, [&](int32_t n) { return policy.verify_ms(n); });
  for (size_t i = 0; i < vote.taken; ++i) ++nodes_[i].second->rows_taken_;
  for (Session* s : asking_) {
    if (const Status status = s->rows_decided(vote.node_ms); !status.ok()) {
      std::erase(flight_, s);
      s->give_up(status);
    }
  }
}

bool Session::drafts_or_verifies() const { return phase_ == Phase::draft || phase_ == Phase::verify; }

// Of the verify pass of this cycle, whatever is decided yet.
int32_t Session::certain_rows() const { return phase_ == Phase::verify ? pass_rows() : 1; }

std::span<const double> Session::worth_of_nodes() const {
  if (phase_ == Phase::verify) return rows_decided_ ? std::span<const double>() : row_worth_;
  return level_offer() ? level_offer()->drafted : std::span<const double>();
}

// The rule of the sampled draft forbids dropping nodes by score.
bool Session::offers_rows() {
  return beside_ > 1 && tree_.size() > 1 && !options_.sampled_rule && policy_->offer_rows(tree_, &row_worth_);
}

Status Session::rows_decided(double node_ms) {
  rows_decided_ = true;
  policy_->rows_decided(rows_taken_, node_ms, &selected_);
  AERIE_TRY(build_rows());
  ask_extra_rows();
  return {};
}

bool Session::shares_level(const Session& other) const {
  return &side_->drafter() == &other.side_->drafter() && tree_[frontier_[0]].depth == other.tree_[other.frontier_[0]].depth;
}

}  // namespace aerie

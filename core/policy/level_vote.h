// What sessions that step together draft. All of them wait for a pass that one asks for, so they decide together: a draft pass
// that is worth it to none of them alone may be to all, and one that is worth it to few may not.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "kernels/worth.h"

namespace aerie {

// Of one session: a level that it would ask its drafter for.
struct LevelOffer {
  static constexpr size_t kAhead = 4;  // levels that are looked ahead

  // Alone: the tokens that the level is expected to bring, the speed in tokens a millisecond that these have to keep up with, 0:
  // whatever it costs, and what the pass takes.
  double tokens = 1, aim = 0, ms = 0;
  int32_t rows = 1;      // nodes asked about
  bool explore = false;  // to see what it would bring, though it does not seem to pay
  // For the vote: what its nodes are worth in milliseconds, all that it has drafted and those asked about, best first, borrowed
  // until the policy is asked again; and how much of that the best children hold on the mean, of each level those of the one before.
  std::span<const double> drafted, asked;
  std::array<double, kAhead> goes_on{};

  bool always() const { return !(aim > 0); }
  bool pays() const { return explore || always() || kernels::pays(tokens, ms, aim); }
};

struct LevelVote {
  size_t taken = 0;  // so many of the offers, best first
  int32_t rows = 0;  // of these
  double ms = 0;     // of their pass
};

// The others that wait for these passes: what nodes of theirs are worth that the target could verify, and the rows of the
// verify pass that come anyway, with roots of those who ask; how many sessions wait, these and those.
struct LevelCompany {
  std::span<const double> nodes;
  int32_t rows = 0, sessions = 1;
};

// The verify pass is filled best with whatever all of them have drafted, and costs no row as much as another one: what a level
// brings is the difference between the best pass with its nodes, and those of a few levels behind it, and the best one without.
class LevelBallot {
 public:
  // pass_ms(n), verify_ms(n): what a draft pass and the verify pass over n rows take.
  template <class PassMs, class VerifyMs>
  LevelVote decide(std::span<const LevelOffer> offers, const LevelCompany& company, const PassMs& pass_ms, const VerifyMs& verify_ms) {
    arrange(offers);
    if (company.sessions <= 1 && offers.size() == 1) return offers[0].pays() ? LevelVote{1, offers[0].rows, offers[0].ms} : LevelVote{};
    const double sessions = company.sessions;
    LevelVote vote;
    for (const size_t i : best_first_)
      if (offers[i].always()) ++vote.taken, vote.rows += offers[i].rows;
    if (vote.taken > 0) vote.ms = pass_ms(vote.rows);
    const size_t always = vote.taken;
    const double paid = sessions * vote.ms;
    gather(offers, company.nodes);
    const auto most = static_cast<int32_t>(drafted_.size() + asked_ * LevelOffer::kAhead);
    added_ms_.clear();
    for (int32_t n = 0; n <= most; ++n) added_ms_.push_back(sessions * (verify_ms(company.rows + n) - verify_ms(company.rows)));

    double best = best_pass({});
    int32_t rows = vote.rows;
    bool explore = false;
    for (size_t m = always; m < offers.size(); ++m) {
      const LevelOffer& o = offers[best_first_[m]];
      rows += o.rows;
      explore = explore || o.explore;
      foresee(o);
      const double ms = pass_ms(rows);
      for (size_t level = 0; level < LevelOffer::kAhead; ++level) {
        const double net = best_pass(ahead_[level]) - (static_cast<double>(level + 1) * sessions * ms - paid);
        if (net <= best) continue;
        best = net;
        vote = {m + 1, rows, ms};
      }
    }
    if (explore && vote.taken == always) vote = {offers.size(), rows, pass_ms(rows)};
    return vote;
  }
  std::span<const size_t> best_first() const { return best_first_; }  // the places of the offers

 private:
  // Those who ask whatever it costs, then those whose next nodes are worth most for each row.
  void arrange(std::span<const LevelOffer> offers) {
    value_.clear();
    for (const LevelOffer& o : offers) value_.push_back(std::accumulate(o.asked.begin(), o.asked.end(), 0.0) * o.goes_on[0] / o.rows);
    best_first_.resize(offers.size());
    std::iota(best_first_.begin(), best_first_.end(), size_t{0});
    std::sort(best_first_.begin(), best_first_.end(), [&](size_t a, size_t b) {
      if (offers[a].always() != offers[b].always()) return offers[a].always();
      return value_[a] != value_[b] ? value_[a] > value_[b] : a < b;
    });
  }
  void gather(std::span<const LevelOffer> offers, std::span<const double> others) {
    drafted_.assign(others.begin(), others.end());
    asked_ = 0;
    for (const LevelOffer& o : offers) {
      drafted_.insert(drafted_.end(), o.drafted.begin(), o.drafted.end());
      asked_ += o.asked.size();
    }
    std::sort(drafted_.begin(), drafted_.end(), std::greater<>());
    for (auto& nodes : ahead_) nodes.clear();
  }
  void foresee(const LevelOffer& o) {
    double holds = 1;
    for (size_t level = 0; level < LevelOffer::kAhead; ++level) {
      holds *= o.goes_on[level];
      if (!(holds > 0)) return;
      for (size_t later = level; later < LevelOffer::kAhead; ++later)
        for (const double worth : o.asked) {
          auto& nodes = ahead_[later];
          nodes.insert(std::upper_bound(nodes.begin(), nodes.end(), worth * holds, std::greater<>()), worth * holds);
        }
    }
  }
  // What the best verify pass over nodes drafted and `more` is worth above one without any.
  double best_pass(std::span<const double> more) const {
    double best = 0, sum = 0;
    for (size_t a = 0, b = 0; a < drafted_.size() || b < more.size();) {
      sum += b == more.size() || (a < drafted_.size() && drafted_[a] >= more[b]) ? drafted_[a++] : more[b++];
      best = std::max(best, sum - added_ms_[a + b]);
    }
    return best;
  }

  std::vector<size_t> best_first_;
  std::vector<double> value_, drafted_, added_ms_;
  size_t asked_ = 0;
  std::array<std::vector<double>, LevelOffer::kAhead> ahead_;  // worth of nodes of so many levels and one, best first
};

}  // namespace aerie

// Foresight: where a text has a form, much of it needs no drafter. What a constraint leaves no choice about, and what usually came
// where it left little, is verified behind the text and behind the likely leaves of a tree; where that is as much as a
// drafter's cycle brings, the drafter is not asked.
#include <algorithm>

#include "core/session/session.h"

namespace aerie {

namespace {
constexpr size_t kMostForeseen = 32;       // tokens: rows of a pass, and what waits for a drafter, are not without end
constexpr float kForced = 0.9f;            // of tokens that spell forced bytes: the model may spell them another way
constexpr float kLeastShare = 0.45f;       // of what has come behind a token
constexpr float kLeastValue = 0.35f;       // of a row
constexpr float kLikely = 0.25f;           // leaves of a lower value are not gone on from
constexpr double kNewestCycle = 1.0 / 16;  // weight in the mean
}  // namespace

// What comes behind `last`, and how likely: the forced token, if there is one, or what has come there more surely. The scout takes it.
Session::Foreseen Session::likely_next(LogitRules::Scout* scout, int32_t last, int32_t forced) const {
  float share = forced >= 0 ? kForced : 0, rest = 1;
  const Successors::Guesses guesses = model_->successors().after(last);
  for (const auto& g : guesses) rest += g.weight;
  for (const auto& g : guesses) {
    if (g.weight / rest < std::max(share, kLeastShare)) break;
    if (g.token == forced) {
      share = g.weight / rest;
      break;
    }
    if (scout->take(g.token)) return {g.token, g.weight / rest};
    rest -= g.weight;  // it may not come here: what has come elsewhere says nothing
  }
  return scout->take(forced) ? Foreseen{forced, share} : Foreseen{-1, 0};
}

void Session::foresee(int32_t row, std::vector<Foreseen>* out) {
  out->clear();
  LogitRules::Scout scout = rules_.scout();
  path_.resize(static_cast<size_t>(rows_.depth[static_cast<size_t>(row)]));
  for (int32_t a = row; a > 0; a = rows_.parent[static_cast<size_t>(a)])
    path_[static_cast<size_t>(rows_.depth[static_cast<size_t>(a)]) - 1] = rows_.token[static_cast<size_t>(a)];
  for (const int32_t t : path_)
    if (!scout.take(t)) return;
  float value = value_of(row);
  int32_t last = rows_.token[static_cast<size_t>(row)];
  size_t next = 0;  // of forced_; at its end nothing is known to be forced
  scout.find_forced(kMostForeseen, &forced_);
  while (out->size() < kMostForeseen) {
    const int32_t forced = next < forced_.size() ? forced_[next] : -1;
    const Foreseen f = likely_next(&scout, last, forced);
    value *= f.value;
    if (f.token < 0 || value < kLeastValue || finish_of(f.token) != Finish::none) return;
    out->push_back({f.token, value});
    last = f.token;
    if (f.token == forced && ++next < forced_.size()) continue;
    next = 0;
    scout.find_forced(kMostForeseen, &forced_);
  }
}

// As many tokens in a pass of the target's as a drafter's cycle brings. Who costs nothing is asked all the same.
bool Session::enough_is_foreseen() {
  foreseen_.clear();
  if (!foresees() || max_emit_ < 2) return false;
  rows_.build(tree_, {});
  foresee(0, &foreseen_);
  if (foreseen_.empty() || !drafter_usable()) return !foreseen_.empty();
  double tokens = 1;
  for (const Foreseen& f : foreseen_) tokens += static_cast<double>(f.value);
  return (choosing_ || !side_->host_tokens()) && tokens >= usual_;
}

// Of children_, to be those of the node that path_ leads to: the drafter goes on from what comes, not from its own guess at it.
void Session::put_foreseen_first() {
  const size_t depth = path_.size();
  const auto is = [](int32_t token, const Foreseen& f) { return token == f.token; };
  if (depth >= foreseen_.size() || !std::equal(path_.begin(), path_.end(), foreseen_.begin(), is)) return;
  const int32_t token = foreseen_[depth].token;
  const auto at = std::find(children_.begin(), children_.end(), token) - children_.begin();
  if (at == static_cast<std::ptrdiff_t>(children_.size())) {
    if (children_.size() >= static_cast<size_t>(policy_->width())) children_.pop_back(), confidence_.pop_back();
  } else {
    children_.erase(children_.begin() + at);
    confidence_.erase(confidence_.begin() + at);
  }
  children_.insert(children_.begin(), token);
  confidence_.insert(confidence_.begin(), foreseen_[depth].value / (depth > 0 ? foreseen_[depth - 1].value : 1));
}

float Session::value_of(int32_t row) const {
  float value = 1;
  for (; rows_.node[static_cast<size_t>(row)] < 0; row = rows_.parent[static_cast<size_t>(row)]) value *= kForced;
  return value * tree_[rows_.node[static_cast<size_t>(row)]].value;
}

void Session::add_foreseen_rows() {
  if (!foresees()) return;
  const int32_t drafted = rows_.size();
  for (int32_t row = 0; row < drafted; ++row) {
    const bool leaf = rows_.first_child[static_cast<size_t>(row)] < 0;
    if (row > 0 && (!leaf || value_of(row) < kLikely)) continue;
    if (row > 0) foresee(row, &foreseen_);
    int32_t at = row;
    for (const Foreseen& f : foreseen_) {
      if (rows_.size() >= kMaxTreeRows || rows_.depth[static_cast<size_t>(at)] + 1 >= max_emit_) break;
      const int32_t child = rows_.find_child(at, f.token);
      at = child >= 0 ? child : rows_.add(at, f.token);
    }
  }
}

size_t Session::steps_drafted() const {
  const auto foreseen = [&](const kernels::WalkStep& s) { return rows_.node[static_cast<size_t>(s.row)] < 0; };
  return static_cast<size_t>(std::find_if(steps_.begin(), steps_.end(), foreseen) - steps_.begin());
}

void Session::count_foreseen() {
  const size_t drafted = steps_drafted();
  stats_.foreseen_verified += static_cast<uint64_t>(std::count(rows_.node.begin(), rows_.node.end(), -1));
  stats_.foreseen_accepted += steps_.size() - drafted;
  if (drafter_usable() && !plain_ && !cut_) usual_ += kNewestCycle * (static_cast<double>(drafted) - usual_);
}

void Session::learn_successors() {
  if (!foresees()) return;
  int32_t last = text_.back();
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (few_[i]) model_->successors().learn(last, steps_[i].token);
    last = steps_[i].token;
  }
}

}  // namespace aerie

// When a drafter that loses rests, and when it is tried again.
#pragma once

#include <algorithm>
#include <cstdint>

namespace aerie {

// A drafter is on trial until it has drafted for some cycles. It rests once it has lost so many tokens against the alternative
// since it was last ahead. What it may lose is on an account, which starts with a little and grows by a small share of all
// tokens and by what it wins: one that wins now and then is soon tried again, and a worthless one costs that share,
// whatever a trial costs. Where sessions of a batch lose together, each counts with a `weight` below 1: in all they are noisier.
class Trial {
 public:
  bool resting() const { return rest_ > 0 || glance_ > 0; }
  bool on() const { return !resting() && cycles_ < kCycles; }
  void start() {
    rest_ = unused_ = 0;
    cycles_ = since_ = 0;
    lost_ = 0;
  }
  // A cycle with it: tokens ahead of the alternative as its costs are on the whole, and as they were this time.
  void drafted(double ahead, double ahead_this_time, double weight = 1) {
    cycles_ += weight;
    since_ += weight * weight;
    unused_ = 0;
    lost_ = std::max(0.0, lost_ - weight * ahead);
    earn(weight * ahead_this_time);
    if (lost_ > kLoss) rest_ = std::max(kShortRest, until_paid());
  }
  // The alternative goes unseen while a drafter drafts, which is so many times as fast: now and then a few passes go without it,
  // the more often the more it is in question. A few, since the first one finds the drafter's weights in the caches.
  void glance(double times) {
    if (resting() || times > kBeyondQuestion || since_ < (times > kClear ? kSeldom : kOften)) return;
    glance_ = kGlance;
    since_ = 0;
  }
  // Likewise `tokens` without it.
  void idle(double tokens, double weight = 1) {
    tokens *= weight;
    earn(kShare * tokens);
    if (glance_ > 0) {
      glance_ -= weight * weight;
    } else if (resting()) {
      if ((rest_ -= tokens) <= 0) start();
    } else if (!on() && (unused_ += tokens) > std::max(kLongRest, until_paid())) {  // others are better; still?
      start();
    }
  }
  template <class Self, class F>
  static void fields(Self& self, F& f) {
    f(self.cycles_, 0, 1e12);
    f(self.lost_, 0, 1e9);
    f(self.account_, -1e9, kMost);
    for (auto* tokens : {&self.rest_, &self.unused_}) f(*tokens, -1e12, 1e12);
    f(self.since_, 0, 1e12);
    f(self.glance_, -1e12, kGlance);
  }

 private:
  static constexpr double kCycles = 12;
  static constexpr double kLoss = 3, kFirst = 6, kMost = 10;         // tokens
  static constexpr double kShare = 0.007;                            // of all tokens
  static constexpr double kShortRest = 16, kLongRest = 256;          // tokens
  static constexpr double kClear = 1.1, kBeyondQuestion = 1.3;
  static constexpr double kOften = 48, kSeldom = 256, kGlance = 4;   // passes, of a weight's square of each session that shares it
  void earn(double tokens) { account_ = std::min(kMost, account_ + tokens); }
  double until_paid() const { return (kLoss - account_) / kShare; }  // tokens until it can afford another trial

  double cycles_ = 0;  // of this trial
  double lost_ = 0, account_ = kFirst;
  double rest_ = 0, unused_ = 0;  // tokens left until the next trial; that others wrote meanwhile
  double since_ = 0, glance_ = 0;  // passes since the last glance; left of this one
};

}  // namespace aerie

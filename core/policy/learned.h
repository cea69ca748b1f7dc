// What `auto` learns about a drafter, whatever the text.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>

#include "core/policy/calibration.h"
#include "core/policy/level_habit.h"
#include "core/policy/level_means.h"
#include "core/policy/level_worth.h"
#include "core/policy/mood.h"
#include "core/policy/row_room.h"
#include "core/policy/tree_policy.h"
#include "core/policy/trial.h"

namespace aerie {

// How a drafter does.
struct Standing {
  static constexpr double kNothing = 1e6;  // nothing is known

  Trial trial;
  CycleRate rate;            // running means of a drafting cycle, its milliseconds counted in passes of plain decode
  double spread = 0.1;       // of a cycle's tokens about what its cost pays for: the mean square
  double unsure = kNothing;  // the mean square that the means may be wrong by, beside `spread`

  // Of a cycle, one of `beside` sessions.
  void learn_rate(double tokens, double passes, int32_t beside) {
    const double off = tokens - (unsure < kNothing ? rate.speed() : 1) * passes;
    spread += kMemory * (off * off - spread);
    forget(beside);
    const double weight = unsure / (unsure + 1);
    unsure *= 1 - weight;
    rate.tokens += weight * (tokens - rate.tokens);
    rate.ms += weight * (passes - rate.ms);
  }
  // What it was like says less now.
  void begin_anew() { unsure = std::max(unsure, kAnew); }
  // What all texts of a batch come to changes less than one text does, and every session tells of it.
  void forget(int32_t beside) {
    const double memory = kMemory / std::max(1, beside);
    unsure = std::min(kNothing, unsure + memory * memory);
  }

 private:
  static constexpr double kMemory = 0.015;   // weight of the newest cycle in the running means
  static constexpr double kAnew = 1.0 / 16;  // what was learned counts for so many cycles when a drafter is tried again
};

struct Learned : Standing {
  Calibration calibration, together;  // of a child alone, and of it with all before it on its path
  Mood mood;
  Stretch stretch;  // how a text begins: as the last one went on
  // Of asking for a level: what it brings, in tokens net of what the deeper nodes cost to verify and of later draft passes, for each
  // token that the nodes asked about were expected to bring themselves; and how much of those tokens their best children hold: all
  // until it is known, for who expects little never asks and never learns.
  LevelMeans gain{0.4}, goes_on{1};
  // Of trees that a device draws: rows of the target's pass, and of a level's.
  RowRoom rooms{kTargetRows}, beams{kLevelRows};
  LevelHabit levels;
  LevelWorth depth;  // in a batch

  template <class Self, class F>
  static void fields(Self& self, F& f) {
    constexpr double kMost = 1e12;
    Calibration::fields(self.calibration, f);
    Calibration::fields(self.together, f);
    Mood::fields(self.mood, f);
    LevelMeans::fields(self.gain, f);
    LevelMeans::fields(self.goes_on, f);
    RowRoom::fields(self.rooms, f);
    RowRoom::fields(self.beams, f);
    LevelHabit::fields(self.levels, f);
    LevelWorth::fields(self.depth, f);
    Trial::fields(self.trial, f);
    Stretch::fields(self.stretch, f);
    f(self.rate.tokens, 0, kMost);
    f(self.rate.ms, 0, kMost);
    f(self.spread, 0, kMost);
    f(self.unsure, 0, kNothing);
  }
};

// Sessions that draft at the same time learn together: in a batch, in which all wait for a pass that one asks for, they try, use
// and give up a drafter together.
struct SharedLearning {
  std::mutex mutex;
  Learned learned;
};

}  // namespace aerie

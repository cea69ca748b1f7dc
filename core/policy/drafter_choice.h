// DrafterChoice: which of several drafters takes the next cycle, or none.
//
// By Dinkelbach's argument the long-run speed is greatest when every cycle goes to whoever has the most tokens - speed *
// milliseconds to offer, the speed being the one that is reached. A drafter whose tree is there before anything is
// spent (one on the host) offers what that tree is expected to bring; the others what their cycles brought lately, and as much
// more as that may well be wrong by, so that one that had bad luck is asked again, less some of what it costs to show it
// what was written without it, for near equals would take turns all the time. Who has lost against the others, or
// against plain decode, rests and is tried again now and then (auto_policy.cc); nobody else is given up for plain decode.
#pragma once

#include <cstdint>
#include <span>

#include "core/policy/tree_policy.h"

namespace aerie {

struct DrafterOption {
  TreePolicy* policy = nullptr;
  bool usable = false;
  const DraftTree* tree = nullptr;  // what it would propose; null: it has to be asked, which costs passes
  double behind_ms = 0;             // and so much beside a usual cycle, to see what was written without it
};

class DrafterChoice {
 public:
  // Running means of tokens and time, whoever drafted; milliseconds are counted in passes of plain decode, so that they stay
  // what they are when the context grows or the machine gets busy.
  const CycleRate& rate() const { return rate_; }
  void recall(const CycleRate& rate);  // of a saved session
  // Tokens a millisecond to aim at: what is reached lately, within what is on offer. plain_ms: a pass over one row.
  double speed(std::span<const DrafterOption> options, double plain_ms) const;
  // What a cycle is worth at that speed, in tokens, when it goes to the best one whose tree is not known beforehand, but for
  // `of`, or to plain decode.
  static double instead(std::span<const DrafterOption> options, size_t of, double speed, double plain_ms);
  // Index of the drafter to ask; -1: plain decode.
  int32_t choose(std::span<const DrafterOption> options, double plain_ms);
  void outcome(double tokens, double ms, double plain_ms);

 private:
  CycleRate rate_{1, 1};  // plain decode is where it begins
  int64_t seen_ = 20;
};

}  // namespace aerie

// DrafterChoice: which of several drafters takes the next cycle, or none.
//
// By Dinkelbach's argument the long-run speed is greatest when every cycle goes to whoever has the most tokens - speed *
// milliseconds to offer, the speed being the one that is reached. A drafter whose tree is there before anything is
// spent (one on the host) offers what that tree is expected to bring; the others what their cycles brought lately; plain
// decode one token for one pass. Who has lost against the others rests, and is tried again now and then (auto_policy.cc).
#pragma once

#include <cstdint>
#include <span>

#include "core/policy/tree_policy.h"

namespace aerie {

struct DrafterOption {
  TreePolicy* policy = nullptr;
  bool usable = false;
  const DraftTree* tree = nullptr;  // what it would propose; null: it has to be asked, which costs passes
};

class DrafterChoice {
 public:
  // Tokens a millisecond lately, whoever drafted; 0: not known.
  double reached() const { return rate_.speed(); }
  const CycleRate& rate() const { return rate_; }
  void recall(const CycleRate& rate) { rate_ = rate; }  // of a saved session
  // The best speed that another drafter of `options` reaches where trees are not known beforehand.
  static double rival(std::span<const DrafterOption> options, size_t of);
  // Index of the drafter to ask; -1: plain decode. plain_ms: a pass over one row.
  int32_t choose(std::span<const DrafterOption> options, double plain_ms);
  void outcome(double tokens, double ms);

 private:
  CycleRate rate_;  // running means
  int64_t seen_ = 0;
};

}  // namespace aerie

// What a drafter's passes cost where no table says so: measured when a session first asks, once for all of them.
#include <algorithm>

#include "core/drafter/measure_drafter.h"

namespace aerie {

namespace {

constexpr int32_t kContext = 64;

// A session's first use pays for this, so a few points have to do.
Result<DrafterCosts> measure_few(const std::shared_ptr<Drafter>& drafter, std::chrono::milliseconds share) {
  MeasureOptions o;
  o.deadline = kernels::Clock::now() + share;
  o.contexts = {kContext};
  o.rows = {1, 4, 16};
  o.least_samples = 1;
  o.most_samples = 3;
  o.point_ms = static_cast<double>(share.count()) / 16;
  return measure_drafter(drafter, o);
}

}  // namespace

std::shared_ptr<const DrafterCosts> Drafter::quick_costs(const std::function<Result<DrafterCosts>()>& measure) {
  const std::lock_guard<std::mutex> lock(quick_mutex_);
  if (quick_tried_) return quick_;
  const auto say = [&](const std::string& why) {
    if (own_.log)
      own_.log(1, "drafter " + own_.id + ": what its passes cost could not be measured (" + why +
                      "): a guess until its first pass tells");
  };
  // It takes a sequence and its keys meanwhile, but none that others may want.
  const bool room = !own_.pool || own_.pool->free_positions() / 2 >= kContext + kMaxFedNodes;
  if (!room || !sequence_left()) {
    say(room ? "all its sequences are taken" : "no room for keys and values");
    return nullptr;
  }
  Result<DrafterCosts> measured = measure();
  quick_tried_ = true;
  if (measured.ok()) quick_ = std::make_shared<const DrafterCosts>(std::move(measured).value());
  else say(measured.status().message());
  return quick_;
}

std::shared_ptr<const DrafterCosts> quick_costs(const std::shared_ptr<Drafter>& drafter, std::chrono::milliseconds share) {
  if (drafter->host_tokens() || drafter->quarantined()) return nullptr;
  return drafter->quick_costs([&] { return measure_few(drafter, share); });
}

}  // namespace aerie

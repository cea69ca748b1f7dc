// What a drafter's passes cost where no table says so: measured when a session first asks, once for all of them.
#include <algorithm>
#include <utility>

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
  // As Model::quick_costs(): no lock is held where the host or the plugin is called.
  struct Trying {
    Drafter& d;
    std::shared_ptr<const DrafterCosts> measured;
    bool done = false;  // else the next session tries
    ~Trying() {
      const std::lock_guard<std::mutex> lock(d.quick_mutex_);
      d.quick_tried_ = done;
      d.quick_ = std::move(measured);
    }
  };
  {
    const std::lock_guard<std::mutex> lock(quick_mutex_);
    if (std::exchange(quick_tried_, true)) return quick_;
  }
  Trying trying{*this, nullptr};
  const auto say = [&](const std::string& why) {
    if (own_.log)
      own_.log(1, "drafter " + own_.id + ": what its passes cost could not be measured (" + why +
                      "): a guess until its first pass tells");
  };
  // It takes a sequence and its keys meanwhile, the target's among them if it reads those, but none that others may want.
  const auto fits = [](KvPool* pool) { return !pool || pool->free_positions() / 2 >= kContext + kMaxFedNodes; };
  const bool room = fits(own_.pool.get()) && (!own_.reads_target || fits(own_.target->pool().get()));
  if (!room || !sequence_left()) {
    say(room ? "all its sequences are taken" : "no room for keys and values");
    return nullptr;
  }
  Result<DrafterCosts> measured = measure();
  trying.done = true;
  if (!measured.ok()) {
    say(measured.status().message());
    return nullptr;
  }
  return trying.measured = std::make_shared<const DrafterCosts>(std::move(measured).value());
}

std::shared_ptr<const DrafterCosts> quick_costs(const std::shared_ptr<Drafter>& drafter, std::chrono::milliseconds share) {
  if (drafter->host_tokens() || drafter->quarantined()) return nullptr;
  return drafter->quick_costs([&] { return measure_few(drafter, share); });
}

}  // namespace aerie

#include "core/policy/drafter_choice.h"

#include <algorithm>

namespace aerie {

namespace {
constexpr double kMemory = 0.005;  // weight of the newest cycle in the running means
constexpr double kWake = 1.03;    // one that rests is tried again when it used to be so much faster than who is left
}  // namespace

double DrafterChoice::rival(std::span<const DrafterOption> options, size_t of) {
  double best = 0;
  for (size_t i = 0; i < options.size(); ++i) {
    const DrafterOption& o = options[i];
    if (i != of && o.usable && !o.tree && !o.policy->resting() && !o.policy->on_trial())
      best = std::max(best, o.policy->lately().speed());
  }
  return best;
}

int32_t DrafterChoice::choose(std::span<const DrafterOption> options, double plain_ms) {
  const double plain = plain_ms > 0 ? 1 / plain_ms : 0;
  const double leader = std::max(plain, rival(options, options.size()));
  for (const DrafterOption& o : options)
    if (o.usable && !o.tree && o.policy->resting() && o.policy->lately().speed() > kWake * leader) o.policy->wake();
  for (size_t i = 0; i < options.size(); ++i)
    if (options[i].usable && !options[i].tree && options[i].policy->on_trial()) return static_cast<int32_t>(i);
  double fastest = leader;
  for (const DrafterOption& o : options)
    if (o.usable && o.tree) fastest = std::max(fastest, o.policy->lately().speed());
  const double speed = std::clamp(reached(), leader, fastest);
  int32_t best = -1;
  double most = 1 - speed * plain_ms;
  for (size_t i = 0; i < options.size(); ++i) {
    const DrafterOption& o = options[i];
    if (!o.usable || o.policy->resting()) continue;
    const CycleRate rate = o.tree ? o.policy->expected(*o.tree) : o.policy->lately();
    if (!(rate.ms > 0)) continue;
    const double net = rate.tokens - speed * rate.ms;
    if (net <= most) continue;
    most = net;
    best = static_cast<int32_t>(i);
  }
  return best;
}

void DrafterChoice::outcome(double tokens, double ms) {
  if (!(ms > 0)) return;
  const double weight = std::max(kMemory, 1.0 / ++seen_);
  rate_.tokens += weight * (tokens - rate_.tokens);
  rate_.ms += weight * (ms - rate_.ms);
}

}  // namespace aerie

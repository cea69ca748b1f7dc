#include "core/policy/drafter_choice.h"

#include <algorithm>

namespace aerie {

namespace {
constexpr double kChoiceMemory = 0.005;  // weight of the newest cycle in the running means
constexpr double kWorth = 0.5;    // tokens that a tree in hand has to bring more than the others, to be worth more than a trial
constexpr double kWake = 1.03;    // one that rests is tried again when it used to be so much faster than who is left
constexpr double kStay = 48;     // cycles that catching up is to pay for itself in

bool known(const DrafterOption& o) { return o.usable && !o.policy->resting() && !o.policy->on_trial(); }

// The best speed where trees are not known beforehand.
double leader(std::span<const DrafterOption> options, double plain_ms) {
  double best = plain_ms > 0 ? 1 / plain_ms : 0;
  for (const DrafterOption& o : options)
    if (!o.tree && known(o)) best = std::max(best, o.policy->lately().speed());
  return best;
}

}  // namespace

double DrafterChoice::speed(std::span<const DrafterOption> options, double plain_ms) const {
  if (!(plain_ms > 0)) return 0;
  const double least = leader(options, plain_ms);
  double most = least;
  for (const DrafterOption& o : options)
    if (o.usable && o.tree) most = std::max(most, o.policy->lately().speed());
  return std::clamp(rate_.speed() / plain_ms, least, most);
}

double DrafterChoice::instead(std::span<const DrafterOption> options, size_t of, double speed, double plain_ms) {
  double most = 1 - speed * plain_ms;
  for (size_t i = 0; i < options.size(); ++i) {
    if (i == of || options[i].tree || !known(options[i])) continue;
    const CycleRate rate = options[i].policy->lately();
    if (rate.ms > 0) most = std::max(most, rate.tokens - speed * rate.ms);
  }
  return most;
}

int32_t DrafterChoice::choose(std::span<const DrafterOption> options, double plain_ms) {
  const double ahead = kWake * leader(options, plain_ms);
  for (const DrafterOption& o : options)
    if (o.usable && !o.tree && o.policy->resting() && o.policy->lately().speed() > ahead) o.policy->wake();
  const double aim = speed(options, plain_ms);
  const double plain = 1 - aim * plain_ms;
  int32_t hand = -1, asked = -1, tried = -1;
  double in_hand = plain, most = 0;
  for (size_t i = 0; i < options.size(); ++i) {
    const DrafterOption& o = options[i];
    if (!o.usable || o.policy->resting()) continue;
    if (!o.tree && o.policy->on_trial()) {
      if (tried < 0) tried = static_cast<int32_t>(i);
      continue;
    }
    const CycleRate rate = o.tree ? o.policy->expected(*o.tree) : o.policy->lately();
    if (!(rate.ms > 0)) continue;
    const double net = rate.tokens - aim * rate.ms + (o.tree ? 0 : o.policy->doubt() - aim * o.behind_ms / kStay);
    if (o.tree && net > in_hand) {
      in_hand = net;
      hand = static_cast<int32_t>(i);
    } else if (!o.tree && (asked < 0 || net > most)) {
      most = net;
      asked = static_cast<int32_t>(i);
    }
  }
  // A trial does not take the cycles that a tree in hand is good for.
  if (tried >= 0 && in_hand <= (asked < 0 ? plain : std::max(plain, most)) + kWorth) return tried;
  return hand >= 0 && (asked < 0 || in_hand > most) ? hand : asked;
}

void DrafterChoice::recall(const CycleRate& rate) {
  rate_ = rate;
  seen_ = static_cast<int64_t>(1 / kChoiceMemory);
}

void DrafterChoice::outcome(double tokens, double ms, double plain_ms) {
  if (!(ms > 0) || !(plain_ms > 0)) return;
  const double weight = std::max(kChoiceMemory, 1.0 / ++seen_);
  rate_.tokens += weight * (tokens - rate_.tokens);
  rate_.ms += weight * (ms / plain_ms - rate_.ms);
}

}  // namespace aerie

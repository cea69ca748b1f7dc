#include "core/sampling/successors.h"

#include <algorithm>
#include <utility>

namespace aerie {

namespace {
constexpr float kMemory = 0.9f;     // of what came before, each time
constexpr float kForgotten = 0.5f;  // a token of less weight gives its place to another one
}  // namespace

void Successors::prepare() {
  const std::lock_guard lock(mutex_);
  places_.resize(kPlaces);
}

void Successors::learn(int32_t token, int32_t next) noexcept {
  const std::lock_guard lock(mutex_);
  if (places_.empty()) return;
  Place& place = places_[place_of(token)];
  float most = 0;
  for (Guess& g : place.guesses) most = std::max(most, g.weight *= kMemory);
  if (place.token != token) {
    if (most > kForgotten) return;
    place = {token, {}};
  }
  const auto at = std::find_if(place.guesses.begin(), place.guesses.end() - 1, [&](const Guess& g) { return g.token == next || g.weight == 0; });
  if (at->token != next) *at = {next, 0};
  at->weight += 1;
  for (auto best = at; best != place.guesses.begin() && (best - 1)->weight < best->weight; --best) std::iter_swap(best - 1, best);
}

Successors::Guesses Successors::after(int32_t token) const {
  const std::lock_guard lock(mutex_);
  if (places_.empty()) return {};
  const Place& place = places_[place_of(token)];
  return place.token == token ? place.guesses : Guesses{};
}

}  // namespace aerie

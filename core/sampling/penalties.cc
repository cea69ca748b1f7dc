#include "core/sampling/penalties.h"

namespace aerie {

void Penalties::begin(std::span<const int32_t> text, size_t generated_from, int32_t vocab) {
  for (const int32_t id : ids_) counts_[static_cast<size_t>(id)] = {};
  ids_.clear();
  counts_.resize(static_cast<size_t>(vocab));
  const auto most = static_cast<size_t>(options_.window);
  const size_t from = options_.window > 0 && text.size() > most ? text.size() - most : 0;
  window_.assign(text.begin() + static_cast<std::ptrdiff_t>(from), text.end());
  first_ = 0;
  generated_ = generated_from > from ? generated_from - from : 0;
  for (size_t i = 0; i < window_.size(); ++i) count(i, 1);
}

void Penalties::push(int32_t token) {
  window_.push_back(token);
  count(window_.size() - 1, 1);
  if (options_.window > 0 && window_.size() - first_ > static_cast<size_t>(options_.window)) count(first_++, -1);
}

void Penalties::count(size_t i, int32_t by) {
  Count& c = counts_[static_cast<size_t>(window_[i])];
  if (!c.listed) ids_.push_back(window_[i]);
  c.listed = true;
  c.seen += by;
  if (i >= generated_) c.generated += by;
}

void Penalties::apply(std::span<float> logits) const {
  for (const int32_t id : ids_) {
    const Count& c = counts_[static_cast<size_t>(id)];
    if (c.seen == 0 || static_cast<size_t>(id) >= logits.size()) continue;
    float& x = logits[static_cast<size_t>(id)];
    x = x > 0 ? x / options_.repetition : x * options_.repetition;
    if (c.generated > 0) x -= options_.frequency * static_cast<float>(c.generated) + options_.presence;
  }
}

}  // namespace aerie

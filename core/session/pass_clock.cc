#include "core/session/pass_clock.h"

#include <numeric>

namespace aerie {

void PassClock::begin(Plan& plan, int32_t parts) {
  noted_ = 0;
  read_.assign(parts > 0 ? static_cast<size_t>(parts) + 2 : 0, 0);
  ms_.assign(static_cast<size_t>(parts), 0);
  if (parts == 0) return;
  at_ = static_cast<int64_t*>(plan.scratch(1, 2 * static_cast<int64_t>(read_.size())).data);
  note(plan);
}

void PassClock::note(Plan& plan) { plan.add(kernels::Timestamp{at_ + noted_++}); }

void PassClock::part(Plan& plan) { note(plan); }

void PassClock::end(Plan& plan) {
  if (read_.empty()) return;
  note(plan);
  plan.add(kernels::Download{read_.data(), at_, static_cast<int64_t>(read_.size() * sizeof(int64_t))});
}

void PassClock::stop(double ms) {
  rest_ = ms;
  if (read_.empty() || read_.back() <= read_.front()) return;
  const double each = ms / static_cast<double>(read_.back() - read_.front());
  for (size_t i = 0; i < ms_.size(); ++i) ms_[i] = each * static_cast<double>(read_[i + 1] - read_[i]);
  rest_ = each * static_cast<double>(read_[ms_.size() + 1] - read_[ms_.size()]);
}

double PassClock::all_parts() const { return std::accumulate(ms_.begin(), ms_.end(), 0.0); }

}  // namespace aerie

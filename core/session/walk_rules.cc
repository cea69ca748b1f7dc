// The walk where biases, penalties or a constraint have their say: on the host, a node after the other, for what comes next
// depends on the path. Draws are those of the walk in the pass.
#include "core/session/session.h"
#include "kernels/fp_env.h"
#include "kernels/host_draw.h"

namespace aerie {

// The walk came by `token`. True: it goes no further, for the text ends there, or nobody can say what is behind it. A failure
// is the next cycle's, which meets it at its root: what plain decode emits a drafter does not lose.
bool Session::ends_walk(int32_t token) {
  bool any = true;
  walked_ = rules_.push(token).ok() && (!rules_.constrained() || rules_.any_allowed_behind(&any).ok());
  return !walked_ || !any || finish_of(token) != Finish::none;
}

Status Session::ruled_result() {
  const kernels::FpEnv env;
  const auto size = static_cast<int64_t>(text_.size());
  steps_.clear();
  few_.clear();
  AERIE_TRY(rules_.begin_walk(text_, generated_from_));
  for (int32_t row = 0; row >= 0;) {
    const auto failed = [&](const Status& s) { return steps_.empty() ? s : Status(); };
    const std::span<const float> raw = target_row(row);
    kernels::HostLogits sum;
    if (!kernels::sum_on_host(raw, &sum)) return failed(not_finite());
    const auto logits = rules_.apply(raw);
    if (!logits.ok()) return failed(logits.status());
    const int32_t x = kernels::draw_on_host(*logits, options_.sampling, size + static_cast<int64_t>(steps_.size()));
    if (x < 0) return failed(error(Code::invalid_argument, "sampling: biases and constraint leave no token that can be drawn"));
    few_.push_back(rules_.few_allowed());
    steps_.push_back({row, x, (raw[static_cast<size_t>(x)] - sum.top) - sum.log_total, 0});
    row = ends_walk(x) || steps_.size() == most_emitted() ? -1 : rows_.find_child(row, x);
  }
  return {};
}

// A text that nothing may follow has ended.
Status Session::look_ahead() {
  if (!rules_.constrained()) return {};
  bool any = false;
  AERIE_TRY(rules_.sync(text_));
  AERIE_TRY(rules_.any_allowed(&any));
  if (!any) finish_ = Finish::constraint;
  return {};
}

void Session::look_behind() {
  if (!rules_.constrained() || cut_ || !walked_ || finish_ != Finish::none) return;
  bool any = true;
  if (rules_.any_allowed_behind(&any).ok() && !any) finish_ = Finish::constraint;
}

}  // namespace aerie

// The walk where biases, penalties or a constraint have their say: on the host, a node after the other, for what comes next
// depends on the path. Draws are those of the walk in the pass.
#include "core/session/session.h"
#include "kernels/fp_env.h"
#include "kernels/host_draw.h"

namespace aerie {

// The walk came by `token`. True: the text ends with it.
Result<bool> Session::walked(int32_t token) {
  AERIE_TRY(rules_.push(token));
  if (finish_of(token) != Finish::none) return true;
  bool any = true;
  if (rules_.constrained()) AERIE_TRY(rules_.any_allowed_behind(&any));
  return !any;
}

Status Session::ruled_result() {
  const kernels::FpEnv env;
  const auto size = static_cast<int64_t>(text_.size());
  steps_.clear();
  AERIE_TRY(rules_.begin_walk(text_, generated_from_));
  for (int32_t row = 0; row >= 0;) {
    const std::span<const float> raw = target_row(row);
    kernels::HostLogits sum;
    if (!kernels::sum_on_host(raw, &sum)) return not_finite();
    AERIE_ASSIGN(const std::span<const float> logits, rules_.apply(raw));
    const int32_t x = kernels::draw_on_host(logits, options_.sampling, size + static_cast<int64_t>(steps_.size()));
    if (x < 0) return error(Code::invalid_argument, "sampling: biases and constraint leave no token that can be drawn");
    steps_.push_back({row, x, (raw[static_cast<size_t>(x)] - sum.top) - sum.log_total, 0});
    AERIE_ASSIGN(const bool ended, walked(x));
    row = ended || steps_.size() == most_emitted() ? -1 : rows_.first_child[static_cast<size_t>(row)];
    while (row >= 0 && rows_.token[static_cast<size_t>(row)] != x) row = rows_.next_sibling[static_cast<size_t>(row)];
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

Status Session::look_behind() {
  if (!rules_.constrained() || cut_ || finish_ != Finish::none) return {};
  bool any = false;
  AERIE_TRY(rules_.any_allowed_behind(&any));
  if (!any) finish_ = Finish::constraint;
  return {};
}

}  // namespace aerie

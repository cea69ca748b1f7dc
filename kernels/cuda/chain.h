// What the kernels of one op do for the ops behind it, so that fewer kernels run: each costs some 2 us, whatever it does. The
// same functions compute the same bits when an op is alone.
#pragma once

#include "kernels/cuda/enqueue.h"
#include "kernels/cuda/linear_end.h"
#include "kernels/cuda/linear_fast.h"
#include "kernels/cuda/linear_rows.h"

namespace aerie::kernels::cuda {

inline bool same_rows(const Tensor& a, const Tensor& b) {
  return a.data == b.data && a.stride == b.stride && a.rows == b.rows && a.cols == b.cols;
}

// Where a kernel that makes `out` leaves it as fragments too, for the op that is `i` ops behind. `whole`: a block has a whole row,
// and so the scale that halves want.
inline Fragments fragments_for(const Tensor& out, size_t i, const Place& p, bool whole = false) {
  if (!p.chain || out.rows <= 0) return {};
  const auto takes = [&](const Tensor& x, int64_t rows, const Tensor& w) {
    return x.data == out.data && x.stride == out.stride && rows == out.rows && w.cols == out.cols &&
           (w.dtype == DType::bf16 || (whole && has_scales(w.dtype))) && w.cols % (kStepWidth * unit_steps(w.dtype)) == 0;
  };
  const auto* linear = p.chain->next<Linear>(i);
  const auto* head = p.chain->next<LinearTopK>(i);
  if (linear ? !is_fast(*linear) && takes(linear->x, linear->out.rows, linear->w) : head && takes(head->x, head->x.rows, head->w)) {
    p.chain->leaves_fragments = true;
    return {p.rows, out.cols / 4, row_scales(linear ? linear->w : head->w, out.rows, p.rows)};
  }
  return {};
}

// How a Linear ends, and the op behind it that takes its outputs. Not for a norm, which has a block a row: that would wait
// longer for the pieces than another kernel takes.
void enqueue_after(const LinearEnd& end, const GatedActivate& op, const Place& p);
void enqueue_after(const LinearEnd& end, const RopeAndStore& op, const Place& p);

}  // namespace aerie::kernels::cuda

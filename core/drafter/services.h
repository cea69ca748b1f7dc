// The services a plugin can ask its host for.
#pragma once

#include <new>

#include "core/drafter/resources.h"

namespace aerie {

// A service function behind a wall: an exception must not pass through a plugin, which may be C. One that records
// poisons its plan too, because plugins may ignore what recording returns.
template <auto F>
struct Walled;
template <class First, class... Rest, int32_t (*F)(First, Rest...)>
struct Walled<F> {
  static int32_t call(First first, Rest... rest) noexcept {
    if (!first) return AERIE_D_INVALID;
    int32_t code = AERIE_D_FAILED;
    try {
      return F(first, rest...);
    } catch (const std::bad_alloc&) {
      code = AERIE_D_NO_MEMORY;
    } catch (...) {
    }
    if constexpr (std::is_same_v<First, aerie_plan*>)
      first->plan->fail(Status(code == AERIE_D_NO_MEMORY ? Code::out_of_memory : Code::internal, std::string()));
    return code;
  }
};

// What a plugin names as a row-major f32 tensor is one.
inline bool is_activation(const aerie_tensor* t) {
  return t && t->data && t->dtype == AERIE_DTYPE_F32 && t->layout == 0 && t->rows > 0 && t->cols > 0 &&
         t->stride >= t->cols;
}
inline bool is_activation(const aerie_tensor* t, int64_t rows, int64_t cols) {
  return is_activation(t) && t->rows >= rows && t->cols == cols;
}
// They have slots for their keys and values: all but those of propose at level 0, whose state the plugin keeps.
inline bool rows_attend(const aerie_draft_rows& rows) { return rows.attention && rows.attention->rows.n == rows.n; }

// A service table by id, or null (services.cc). host->context is the drafter's DrafterResources.
const void* drafter_service(const aerie_drafter_host* host, const char* id);

const aerie_service_compute* compute_service();  // compute_service.cc
const aerie_service_layers* layers_service();    // layers_service.cc
const aerie_service_block* block_service();      // block_service.cc
// The package's decoder, for aerie.layers/1 and aerie.block/1.
Status open_layers(DrafterResources& drafter);
// out = its layers of x, over their cache or the target's. windowed: what the rows see in layers with a window; null: what they see in others.
void record_layers(aerie_plan* plan, const Rows& rows, const kernels::AttentionRows* windowed, const kernels::Tensor& x, const kernels::Tensor& out);
// Writes a failure into err, if there is one; its AERIE_D_* code.
int32_t report(const Status& status, aerie_drafter_error* err);

// Poison the plan and return AERIE_D_INVALID.
int32_t compute_fail(aerie_plan* plan, const std::string& what);
// candidates.cc. Top-k of logits (rows * levels, V) into `out`; vocab_map (i32, device) may be null.
int32_t record_candidates(aerie_plan* plan, const kernels::Tensor& logits, const kernels::Tensor& vocab_map,
                          aerie_candidates* out);
// The same of an LM head over hidden (rows * levels, H).
struct LmHead {
  kernels::Tensor w;          // (V, H)
  kernels::Tensor bias;       // (1, V) or absent
  kernels::Tensor vocab_map;  // as above
};
int32_t record_candidates(aerie_plan* plan, const LmHead& head, const kernels::Tensor& hidden, aerie_candidates* out);
// The same, one level at a time, ascending, over hidden (rows, H); the last one fills `out`.
int32_t record_level(aerie_plan* plan, int32_t level, const LmHead& head, const kernels::Tensor& hidden,
                     aerie_candidates* out);
// The same of a model's own, through its candidate head where that serves.
int32_t record_candidates(aerie_plan* plan, const Model& model, const kernels::Tensor& hidden, aerie_candidates* out);

}  // namespace aerie

// Weights asked for before their time: to the second-level cache, while the device's memory has nothing else to bring. What
// weights are is never written, so there is nothing to wait for.
#pragma once

#include "kernels/cuda/linear_shape.h"
#include "kernels/cuda/warp.h"

namespace aerie::kernels::cuda {

// A Linear's weights: of every part `units` behind the first `skip`, which its block brings itself before its rows are there.
struct LinearWish {
  const char* w = nullptr;  // null: none
  int64_t panel_bytes = 0;
  uint32_t unit_bytes = 0;  // of a panel
  LinearShape shape{DType::bf16, 1, 1};
  uint32_t skip = 0, units = 0;
};
// Of the next Linear, and of the one behind it.
struct LinearWishes {
  LinearWish next, then;
  uint32_t parts() const { return next.w ? next.shape.parts > then.shape.parts ? next.shape.parts : then.shape.parts : 0; }
};

// Of part `part`, by a block.
__device__ inline void fetch_to_cache(const LinearWish& wish, uint32_t part) {
  constexpr uint32_t kLine = 128;
  if (!wish.w || part >= wish.shape.parts) return;
  const uint32_t end = wish.shape.part_begin(part + 1);
  uint32_t at = wish.shape.part_begin(part) + wish.skip;
  for (uint32_t n = 0; n < wish.units && at < end; ++n, ++at) {
    const uint32_t block = at / wish.shape.units, unit = at % wish.shape.units;
    for (uint32_t i = threadIdx.x * kLine; i < kBlockPanels * wish.unit_bytes; i += blockDim.x * kLine) {
      const int64_t panel = int64_t{block} * kBlockPanels + i / wish.unit_bytes, byte = int64_t{unit} * wish.unit_bytes + i % wish.unit_bytes;
      if (panel < wish.shape.panels && byte < wish.panel_bytes) want_soon(wish.w + panel * wish.panel_bytes + byte);
    }
  }
}

}  // namespace aerie::kernels::cuda

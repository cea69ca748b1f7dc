// Weights asked for before their time: to the second-level cache, while the device's memory has nothing else to bring. What
// weights are is never written, so there is nothing to wait for.
#pragma once

#include "kernels/cuda/linear_shape.h"
#include "kernels/cuda/warp.h"

namespace aerie::kernels::cuda {

// A Linear's weights; null: none.
struct LinearWish {
  const char* w = nullptr;
  int64_t panel_bytes = 0;
  uint32_t unit_bytes = 0;  // of a panel
  LinearShape shape{DType::bf16, 1, 1};
  uint32_t units = 0;  // of a part, that are wanted
};

// Of units [begin, end) as many as are wanted, by a block.
__device__ inline void fetch_to_cache(const LinearWish& wish, uint32_t begin, uint32_t end) {
  constexpr uint32_t kLine = 128;
  for (uint32_t at = begin; at < end && at - begin < wish.units; ++at) {
    const uint32_t block = at / wish.shape.units, unit = at % wish.shape.units;
    for (uint32_t i = threadIdx.x * kLine; i < kBlockPanels * wish.unit_bytes; i += blockDim.x * kLine) {
      const int64_t panel = int64_t{block} * kBlockPanels + i / wish.unit_bytes, byte = int64_t{unit} * wish.unit_bytes + i % wish.unit_bytes;
      if (panel < wish.shape.panels && byte < wish.panel_bytes) want_soon(wish.w + panel * wish.panel_bytes + byte);
    }
  }
}

}  // namespace aerie::kernels::cuda

// How Linear is cut. Everything that decides the order of a sum depends on the weights' shape and type alone, never on
// the number of rows or on the device.
//
// A step is the K of one mma (16 bf16 or fp8, 32 int8 or int4 weights), a unit is what one pipeline stage brings (4 steps). A
// block of 4 warps makes 128 outputs, a warp those of two panels; slices of K go to different blocks and are added in
// ascending order afterwards, for otherwise few layers would fill the device.
#pragma once

#include "kernels/ops.h"
#include "kernels/scalar_math.h"

namespace aerie::kernels::cuda {

constexpr int kLinearThreads = 128;
constexpr int kMostShared = 99 << 10;  // bytes of shared memory of a block, on every device we build for
constexpr int kBlockPanels = 8;
constexpr int kGroupRows = 8;  // batch rows an mma takes
constexpr int kUnitSteps = 4;
constexpr int64_t kWantedBlocks = 264;  // two for each of 132 multiprocessors
constexpr int64_t kLeastUnits = 2;      // of a slice
constexpr int64_t kMostSlices = 16;

struct LinearShape {
  int64_t steps;   // of K
  int64_t units;   // of K
  int64_t panels;
  int64_t slices, slice_units;

  AERIE_HOST_DEVICE static int64_t step_width(DType t) { return is_integer(t) ? 32 : 16; }
  AERIE_HOST_DEVICE static int64_t up(int64_t n, int64_t by) { return (n + by - 1) / by; }
  AERIE_HOST_DEVICE LinearShape(DType t, int64_t n, int64_t k)
      : steps(up(k, step_width(t))), units(up(steps, kUnitSteps)), panels(up(n, kPanel)) {
    int64_t s = up(kWantedBlocks, up(panels, kBlockPanels));
    if (s > units / kLeastUnits) s = units / kLeastUnits;
    if (s > kMostSlices) s = kMostSlices;
    if (s < 1) s = 1;
    slice_units = up(units, s);
    slices = up(units, slice_units);
  }
  AERIE_HOST_DEVICE int64_t columns() const { return panels * kPanel; }  // of partial sums
};

}  // namespace aerie::kernels::cuda

// How Linear is cut. Everything that decides the order of a sum depends on the weights' shape and type alone, never on
// the number of rows or on the device.
//
// A step is the K of one mma (16), a unit is what one pipeline stage brings (4 steps of bf16 weights, 8 of others) of a panel
// block, 16 panels: 256 outputs, of which each of 8 warps makes those of two panels. Units are numbered through
// all panel blocks, and cut into equal parts, one for each block of threads: on the device that this is tuned for each
// multiprocessor has one, and all end together. So the K of a panel block is cut into pieces, where parts begin; their sums
// are added in ascending order afterwards.
#pragma once

#include "kernels/cuda/gpu.h"
#include "kernels/ops.h"
#include "kernels/scalar_math.h"

namespace aerie::kernels::cuda {

constexpr int kBlockPanels = 16, kPanelThreads = kBlockPanels * 16;
constexpr int kGroupRows = 8;  // batch rows an mma takes
constexpr int kStepWidth = 16;
constexpr int unit_steps(DType t) { return t == DType::bf16 ? 4 : 8; }
constexpr int64_t kWantedParts = 132;  // multiprocessors
constexpr int64_t kLeastUnits = 2;     // of a part

struct LinearShape {
  int64_t panels;
  uint32_t units;   // of K
  uint32_t blocks;  // of panels
  uint32_t parts;
  uint64_t reciprocal;  // of the number of units, times 2^64, and a little more

  AERIE_HOST_DEVICE static int64_t up(int64_t n, int64_t by) { return (n + by - 1) / by; }
  AERIE_HOST_DEVICE static int64_t units_of(DType t, int64_t k) { return up(k, unit_steps(t) * kStepWidth); }
  // `wanted`: parts that there should be.
  AERIE_HOST_DEVICE LinearShape(DType t, int64_t n, int64_t k, int64_t wanted = kWantedParts)
      : panels(up(n, kPanel)),
        units(static_cast<uint32_t>(units_of(t, k))),
        blocks(static_cast<uint32_t>(up(panels, kBlockPanels))) {
    // Numbers of units times parts have 32 bits: a device divides by multiplying them.
    const int64_t all = int64_t{units} * blocks;
    int64_t most = all / kLeastUnits < wanted ? all / kLeastUnits : wanted;
    if ((all + 1) * (most + 1) > int64_t{1} << 32) most = (int64_t{1} << 32) / (all + 1) - 1;
    parts = static_cast<uint32_t>(most < 1 ? 1 : most);
    reciprocal = ~uint64_t{0} / all_units() + 1;
  }
  AERIE_HOST_DEVICE int64_t columns() const { return panels * kPanel; }  // of partial sums

  AERIE_HOST_DEVICE uint32_t all_units() const { return units * blocks; }
  AERIE_HOST_DEVICE uint32_t part_begin(uint32_t part) const { return part * all_units() / parts; }
  AERIE_HOST_DEVICE uint32_t part_of(uint32_t unit) const {  // the last that begins there or before
    const uint64_t n = (unit + 1) * parts - 1;  // over all_units(), exactly: n has 32 bits
    return static_cast<uint32_t>((n * (reciprocal >> 32) + (n * (reciprocal & 0xffffffffu) >> 32)) >> 32);
  }
  AERIE_HOST_DEVICE uint32_t pieces(uint32_t block) const { return part_of(block * units + units - 1) - part_of(block * units) + 1; }
  // Of any block; a bound.
  AERIE_HOST_DEVICE int64_t most_pieces() const { return up(units, all_units() / parts) + 1; }
};

// A place in the units, and the piece that it is in.
struct LinearPlace {
  uint32_t block, unit, piece, piece_end;  // unit and piece_end: of the block's
  AERIE_HOST_DEVICE LinearPlace(const LinearShape& s, uint32_t at) {
    block = at / s.units;
    unit = at % s.units;
    const uint32_t part = s.part_of(at);
    piece = part - s.part_of(at - unit);
    bound(s, part);
  }
  AERIE_HOST_DEVICE void bound(const LinearShape& s, uint32_t part) {
    const uint32_t end = s.part_begin(part + 1) - block * s.units;
    piece_end = end < s.units ? end : s.units;
  }
  // Where a piece has ended.
  AERIE_HOST_DEVICE void next_piece(const LinearShape& s) { *this = LinearPlace(s, block * s.units + unit); }
};

}  // namespace aerie::kernels::cuda

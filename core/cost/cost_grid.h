// CostGrid: measured costs of one kind of pass, f(batch, context, rows), and what lies between the measurements.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/cost/pass_cost.h"
#include "kernels/status.h"

namespace aerie {

// One measurement.
struct CostPoint {
  int32_t batch = 1;    // sequences in the pass
  int32_t context = 1;  // positions that every row sees
  int32_t rows = 1;     // of each sequence: the pass has batch * rows
  double ms = 0;        // median
  double low = 0, high = 0;  // of the samples
  int32_t samples = 1;
};

constexpr int32_t kMaxCostBatch = 4096, kMaxCostContext = 1 << 24, kMaxCostPointRows = 4096;
constexpr size_t kMaxCostPoints = 100000;

// Never falls with batch, context or rows, whatever noise the measurements have.
class CostGrid {
 public:
  // The points of each batch form a full grid of contexts and rows. No points: an empty grid, which knows nothing.
  static Result<CostGrid> make(std::vector<CostPoint> points);

  bool empty() const { return slices_.empty(); }
  int32_t last_batch() const { return slices_.empty() ? 1 : slices_.back().batch; }
  const std::vector<CostPoint>& points() const { return points_; }  // by batch, context, rows

  // Straight lines between measurements; beyond the last row count or context the mean slope goes on. Beyond the last batch
  // (and before the first) a pass costs what one of as many rows in all does. 0 when empty.
  double ms(double batch, double context, double rows) const;
  // ms(batch, context, n) for n = 0 .. 128; element 0 is 0.
  PassCost::Curve curve(int32_t batch, int64_t context) const;
  // Row counts up to 128 that were measured at the first batch.
  std::vector<int32_t> row_counts() const;

 private:
  // One batch. The last row and column are not measured: far knots that carry the slopes on.
  struct Slice {
    int32_t batch = 1;
    std::vector<double> context, rows;
    std::vector<double> ms;  // (context, rows)
    double at(double c, double n) const;
    void make_monotone();
    void extend();
  };
  double up_to(size_t slice, double context, double rows) const;

  std::vector<CostPoint> points_;
  std::vector<Slice> slices_;
};

}  // namespace aerie

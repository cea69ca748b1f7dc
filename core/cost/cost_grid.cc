#include "core/cost/cost_grid.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace aerie {

namespace {

constexpr double kFarRows = 1 << 20, kFarContext = 1 << 26;

std::string place(const CostPoint& p) {
  return "batch " + std::to_string(p.batch) + ", context " + std::to_string(p.context) + ", rows " + std::to_string(p.rows);
}

Status check(const CostPoint& p) {
  const auto bad = [&](const char* field) { return error(Code::bad_format, place(p) + ": " + field + " is out of range"); };
  if (p.batch < 1 || p.batch > kMaxCostBatch) return bad("batch");
  if (p.context < 1 || p.context > kMaxCostContext) return bad("context");
  if (p.rows < 1 || p.rows > kMaxCostPointRows) return bad("rows");
  if (!(p.ms > 0 && p.ms < 1e9)) return bad("ms");
  if (!(p.low > 0 && p.low <= p.ms)) return bad("low");
  if (!(p.high >= p.ms && p.high < 1e9)) return bad("high");
  if (p.samples < 1) return bad("samples");
  return {};
}

// The knots around x, and how far x lies between them.
struct Between {
  size_t i;      // left knot
  double share;  // 0: at it, 1: at the next one
};
Between locate(const std::vector<double>& knots, double x) {
  if (!(x > knots.front())) return {0, 0};
  if (x >= knots.back()) return {knots.size() - 2, 1};
  const auto i = static_cast<size_t>(std::upper_bound(knots.begin(), knots.end(), x) - knots.begin()) - 1;
  return {i, (x - knots[i]) / (knots[i + 1] - knots[i])};
}
// Exact at both ends, and never outside them.
double mix(double a, double b, double share) { return share <= 0 ? a : share >= 1 ? b : a + (b - a) * share; }

}  // namespace

double CostGrid::Slice::at(double c, double n) const {
  const Between i = locate(context, c), j = locate(rows, n);
  const double* here = ms.data() + i.i * rows.size() + j.i;
  const double* next = here + rows.size();
  return mix(mix(here[0], here[1], j.share), mix(next[0], next[1], j.share), i.share);
}

// Half-way between the least monotone table above the measurements and the greatest one below: what is monotone stays
// as it is, and of an outlier half is believed, from whichever side it sticks out.
void CostGrid::Slice::make_monotone() {
  const size_t n = rows.size(), m = context.size();
  std::vector<double> above = ms, below = ms;
  for (size_t i = 0; i < m; ++i)
    for (size_t j = 0; j < n; ++j) {
      double& a = above[i * n + j];
      if (i > 0) a = std::max(a, above[(i - 1) * n + j]);
      if (j > 0) a = std::max(a, above[i * n + j - 1]);
      const size_t r = m - 1 - i, s = n - 1 - j;
      double& b = below[r * n + s];
      if (i > 0) b = std::min(b, below[(r + 1) * n + s]);
      if (j > 0) b = std::min(b, below[r * n + s + 1]);
    }
  for (size_t k = 0; k < ms.size(); ++k) ms[k] = above[k] + (below[k] - above[k]) / 2;
}

// A far knot on each axis. One measured row count: a further row costs a tenth of it; one context: longer ones are free.
void CostGrid::Slice::extend() {
  const size_t n = rows.size(), m = context.size();
  std::vector<double> wide((m + 1) * (n + 1));
  const auto at = [&](size_t i, size_t j) -> double& { return wide[i * (n + 1) + j]; };
  for (size_t i = 0; i < m; ++i) {
    for (size_t j = 0; j < n; ++j) at(i, j) = ms[i * n + j];
    const double slope = n > 1 ? (at(i, n - 1) - at(i, 0)) / (rows[n - 1] - rows[0]) : at(i, 0) / 10;
    at(i, n) = at(i, n - 1) + slope * (kFarRows - rows[n - 1]);
    if (i > 0) at(i, n) = std::max(at(i, n), at(i - 1, n));
  }
  for (size_t j = 0; j <= n; ++j) {
    const double slope = m > 1 ? (at(m - 1, j) - at(0, j)) / (context[m - 1] - context[0]) : 0;
    at(m, j) = at(m - 1, j) + slope * (kFarContext - context[m - 1]);
    if (j > 0) at(m, j) = std::max(at(m, j), at(m, j - 1));
  }
  rows.push_back(kFarRows);
  context.push_back(kFarContext);
  ms = std::move(wide);
}

Result<CostGrid> CostGrid::make(std::vector<CostPoint> points) {
  if (points.size() > kMaxCostPoints) return error(Code::bad_format, "more than " + std::to_string(kMaxCostPoints) + " points");
  const auto key = [](const CostPoint& p) { return std::tuple(p.batch, p.context, p.rows); };
  std::sort(points.begin(), points.end(), [&](const CostPoint& a, const CostPoint& b) { return key(a) < key(b); });
  CostGrid grid;
  for (size_t first = 0; first < points.size();) {
    size_t end = first, width = first;
    while (end < points.size() && points[end].batch == points[first].batch) ++end;
    while (width < end && points[width].context == points[first].context) ++width;
    width -= first;
    Slice s;
    s.batch = points[first].batch;
    for (size_t k = first; k < end; ++k) {
      const CostPoint& p = points[k];
      AERIE_TRY(check(p));
      const size_t i = (k - first) / width, j = (k - first) % width;
      if (j == 0) s.context.push_back(p.context);
      if (i == 0) s.rows.push_back(p.rows);
      if ((i == 0 && j > 0 && p.rows == points[k - 1].rows) || (i > 0 && j == 0 && p.context == points[k - 1].context) ||
          p.context != static_cast<int32_t>(s.context[i]) || p.rows != static_cast<int32_t>(s.rows[j]))
        return error(Code::bad_format, place(p) + ": given twice, or the grid has a hole before it");
      s.ms.push_back(p.ms);
    }
    if ((end - first) % width != 0) return error(Code::bad_format, place(points[end - 1]) + ": the grid has a hole behind it");
    s.make_monotone();
    s.extend();
    grid.slices_.push_back(std::move(s));
    first = end;
  }
  grid.points_ = std::move(points);
  return grid;
}

// Slices may have different contexts and rows, so that only their running maximum is sure not to fall with the batch.
double CostGrid::up_to(size_t slice, double context, double rows) const {
  double most = 0;
  for (size_t k = 0; k <= slice; ++k) most = std::max(most, slices_[k].at(context, rows));
  return most;
}

double CostGrid::ms(double batch, double context, double rows) const {
  if (empty()) return 0;
  size_t k = 0;
  while (k + 1 < slices_.size() && slices_[k + 1].batch <= batch) ++k;
  const double here = slices_[k].batch;
  if (batch <= here || k + 1 == slices_.size()) return up_to(k, context, rows * batch / here);
  const double share = (batch - here) / (slices_[k + 1].batch - here);
  return mix(up_to(k, context, rows), up_to(k + 1, context, rows), share);
}

PassCost::Curve CostGrid::curve(int32_t batch, int64_t context) const {
  PassCost::Curve out{};
  for (int32_t n = 1; n <= kMaxCostRows; ++n) out[static_cast<size_t>(n)] = ms(batch, static_cast<double>(context), n);
  return out;
}

std::vector<int32_t> CostGrid::row_counts() const {
  std::vector<int32_t> out;
  for (const CostPoint& p : points_) {
    if (p.batch != points_[0].batch || p.context != points_[0].context) break;
    if (p.rows <= kMaxCostRows) out.push_back(p.rows);
  }
  return out;
}

}  // namespace aerie

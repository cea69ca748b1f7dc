// What lies between measurements never falls, and measured points that do not fall either are met exactly.
#include <cmath>
#include <functional>

#include "tests/unit/cost/cost_fixtures.h"

namespace aerie::cost_test {
namespace {

TEST(CostGrid, NeverFallsWithBatchContextOrRows) {
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    const Result<CostGrid> grid = CostGrid::make(noisy_points(seed));
    ASSERT_TRUE(grid.ok()) << grid.status().message();
    std::mt19937 random(seed);
    const auto draw = [&](double most) { return std::uniform_real_distribution<double>(0.5, most)(random); };
    for (int i = 0; i < 400; ++i) {
      const double b = draw(20), c = draw(2000), n = draw(300);
      const double here = grid->ms(b, c, n);
      ASSERT_GT(here, 0);
      const double slack = here * 1e-12;  // of the interpolation's own rounding
      const double step = draw(i % 2 ? 3 : 400);
      ASSERT_GE(grid->ms(b + step, c, n), here - slack) << "seed " << seed << " batch " << b << " + " << step << " c " << c << " n " << n;
      ASSERT_GE(grid->ms(b, c + step, n), here - slack) << "seed " << seed << " context " << c << " + " << step;
      ASSERT_GE(grid->ms(b, c, n + step), here - slack) << "seed " << seed << " rows " << n << " + " << step;
    }
  }
}

TEST(CostGrid, MeetsWhatWasMeasured) {
  std::vector<CostPoint> points;
  for (const int32_t b : {1, 4})
    for (const int32_t c : {32, 512})
      for (const int32_t n : {1, 8, 128}) {
        const double ms = 10 + 0.5 * b * n + 0.01 * c;
        points.push_back({b, c, n, ms, ms, ms, 1});
      }
  const CostGrid grid = CostGrid::make(points).value();
  for (const CostPoint& p : points) EXPECT_NEAR(grid.ms(p.batch, p.context, p.rows), p.ms, 1e-9);
  EXPECT_NEAR(grid.ms(1, 272, 1), 10 + 0.5 + 2.72, 1e-9) << "half-way between contexts";
  EXPECT_NEAR(grid.ms(2.5, 32, 8), 10 + 0.5 * 2.5 * 8 + 0.32, 1e-9) << "half-way between batches";
  EXPECT_NEAR(grid.ms(1, 1024, 8), 10 + 4 + 10.24, 1e-6) << "beyond the last context the slope goes on";
  EXPECT_NEAR(grid.ms(8, 32, 8), grid.ms(4, 32, 16), 1e-9) << "beyond the last batch: as many rows in all";
  EXPECT_EQ(grid.ms(1, 0, 0), grid.ms(1, 32, 1)) << "before the first point: its value";
  const auto curve = grid.curve(1, 32);
  EXPECT_EQ(curve[0], 0);
  EXPECT_NEAR(curve[128], 10 + 64 + 0.32, 1e-9);
  EXPECT_EQ(grid.row_counts(), (std::vector<int32_t>{1, 8, 128}));
  EXPECT_EQ(CostGrid().ms(1, 1, 1), 0);
}

TEST(CostGrid, HalfOfAnOutlierIsBelieved) {
  const auto at = [](int32_t n, double ms) { return CostPoint{1, 64, n, ms, ms, ms, 1}; };
  const CostGrid grid = CostGrid::make({at(1, 1), at(2, 9), at(4, 1), at(8, 1)}).value();  // a preempted pass of 2 rows
  EXPECT_EQ(grid.ms(1, 64, 1), 1);
  EXPECT_EQ(grid.ms(1, 64, 8), 5);
}

TEST(CostGrid, RefusesHolesTwinsAndNonsense) {
  const auto points = [] {
    std::vector<CostPoint> p;
    for (const int32_t c : {32, 64})
      for (const int32_t n : {1, 2, 4}) p.push_back({1, c, n, 1, 1, 1, 1});
    return p;
  };
  ASSERT_TRUE(CostGrid::make(points()).ok());
  ASSERT_TRUE(CostGrid::make({}).ok());
  for (size_t i = 0; i < points().size(); ++i) {
    auto hole = points(), twin = points();
    hole.erase(hole.begin() + static_cast<long>(i));
    twin.push_back(twin[i]);
    EXPECT_EQ(CostGrid::make(hole).status().code(), Code::bad_format) << i;
    EXPECT_EQ(CostGrid::make(twin).status().code(), Code::bad_format) << i;
  }
  const auto refused = [&](const char* field, const std::function<void(CostPoint&)>& change) {
    auto p = points();
    change(p[3]);
    const Status s = CostGrid::make(p).status();
    EXPECT_EQ(s.code(), Code::bad_format) << field;
    EXPECT_NE(s.message().find(field), std::string::npos) << s.message();
  };
  for (const double bad : {0.0, -1.0, static_cast<double>(NAN), static_cast<double>(INFINITY)}) refused("ms", [&](CostPoint& p) { p.ms = bad; });
  refused("low", [](CostPoint& p) { p.low = 2; });
  refused("high", [](CostPoint& p) { p.high = 0.5; });
  refused("samples", [](CostPoint& p) { p.samples = 0; });
  refused("batch", [](CostPoint& p) { p.batch = 0; });
  refused("context", [](CostPoint& p) { p.context = -4; });
  refused("rows", [](CostPoint& p) { p.rows = 1 << 20; });
}

}  // namespace
}  // namespace aerie::cost_test

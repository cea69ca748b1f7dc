// Cycles as CUDA graphs: the text is the same without them, a long one needs few, and a drafter's cascade is one.
#include "core/model/measure.h"
#include "core/session/batch.h"
#include "unit/cuda/session_support.h"

namespace aerie::test {
namespace {

struct Drafted {
  std::string plugin, package;
  const char* tree;
};

std::unique_ptr<Session> open_session(const std::shared_ptr<Model>& model, const Drafted& d, int32_t context) {
  SessionOptions o = sampled(0.8f);
  o.max_context = context;
  if (!d.plugin.empty()) {
    o.drafter = open_drafter(model, d.plugin, d.package);
    o.tree.name = d.tree;
  }
  auto session = must(Session::create(model, o));
  must(session->append(kPrompt));
  return session;
}

TEST(CudaCycleGraphs, TheTextIsTheSameWithoutGraphsAndEarlyKernels) {
  for (const Drafted& d : {Drafted{"", "", ""}, {"eagle", eagle(), "eagle2"}, {"fasteagle", fasteagle(), "backbone"}}) {
    SCOPED_TRACE(d.plugin);
    const auto text = [&](bool graphs, bool early) {
      return generate(*open_session(open_model(target(), cuda({.graphs = graphs, .early = early})), d, 64), 7);
    };
    const auto want = text(false, false);
    EXPECT_EQ(text(true, false), want);
    EXPECT_EQ(text(false, true), want);
    EXPECT_EQ(text(true, true), want);
  }
}

#ifndef AERIE_REAL_GPU
using kernels::cuda::emulation::Counts;
using kernels::cuda::emulation::counts;

TEST(CudaCycleGraphs, ALongTextNeedsFewGraphsAndACycleNoMemory) {
  const auto model = open_model(target(), cuda());
  const Counts before = counts();
  const auto session = open_session(model, {"eagle", eagle(), "chain"}, 128);
  generate(*session, 30);
  const Counts warm = counts();
  const uint64_t cycles = session->statistics().cycles;
  generate(*session, 30);  // the text grows from 2 pages to 3
  const Counts after = counts();
  EXPECT_GT(session->statistics().cycles - cycles, 5u);
  EXPECT_EQ(after.allocations, warm.allocations);
  EXPECT_LE(after.captures - warm.captures, 8);    // once more with twice the pages, and numbers of rows not seen before
  EXPECT_LE(after.captures - before.captures, 32);
  EXPECT_EQ(after.captures - before.captures, after.graphs - before.graphs);  // none was forgotten
}

// With the target's pass, the walk and the commit.
TEST(CudaCycleGraphs, ACascadeIsOneGraph) {
  const auto model = open_model(target(), cuda());
  const auto session = open_session(model, {"fasteagle", fasteagle(), "backbone"}, 128);
  generate(*session, 12);
  int exact = 0;
  for (int i = 0; i < 6; ++i) {  // a few cycles at a time
    const Counts before = counts();
    const auto drafts = session->statistics().draft_passes, cycles = session->statistics().cycles;
    generate(*session, 4);
    const auto drafted = session->statistics().draft_passes - drafts, verified = session->statistics().cycles - cycles;
    EXPECT_GT(drafted, 0u);
    EXPECT_LE(drafted, verified);
    const int64_t graphs = counts().graph_launches - before.graph_launches, passes = static_cast<int64_t>(verified);
    EXPECT_LE(graphs, passes);  // fewer: a number of rows that has not been seen before
    exact += graphs == passes;
  }
  EXPECT_GE(exact, 3);
}

// What CAST and auto are told a pass costs.
TEST(CudaCycleGraphs, CostsAreThoseOfGraphs) {
  const auto model = open_model(target(), cuda());
  MeasureOptions o;
  o.rows = {1, 3};
  o.contexts = {32};
  o.least_samples = o.most_samples = 2;
  const Counts before = counts();
  const CostGrid grid = must(measure_target(*model, o));
  EXPECT_EQ(grid.points().size(), 2u);
  EXPECT_EQ(counts().captures - before.captures, 2);
  EXPECT_EQ(counts().graph_launches - before.graph_launches, 2 * 3);  // all but the first of each
}
#endif

}  // namespace
}  // namespace aerie::test

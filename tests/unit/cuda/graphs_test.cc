// Plans as CUDA graphs: what is one graph, how many there are, and that a cycle takes no memory.
#include <cstdlib>

#include "kernels/cuda/graphs.h"
#include "unit/cuda/cuda_support.h"

#ifndef AERIE_REAL_GPU
namespace {
int64_t heap = 0;  // what was taken from it, but for the emulated runtime
void* counted(size_t bytes) {
  heap += !aerie::kernels::cuda::emulation::inside();
  if (void* p = std::malloc(bytes ? bytes : 1)) return p;
  throw std::bad_alloc();
}
}  // namespace
void* operator new(size_t bytes) { return counted(bytes); }
void* operator new[](size_t bytes) { return counted(bytes); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return counted(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void* operator new[](size_t bytes, const std::nothrow_t& t) noexcept { return operator new(bytes, t); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }
void operator delete[](void* p, size_t) noexcept { std::free(p); }
#endif

namespace aerie::kernels::cuda_test {
namespace {

#ifndef AERIE_REAL_GPU
using cuda::emulation::Counts;
using cuda::emulation::counts;
#endif

void run_on(Queue& queue, std::span<const Op> plan) {
  ASSERT_TRUE(queue.submit(plan).ok());
  ASSERT_EQ(queue.advance(kNoDeadline).value(), RunState::done);
}

TEST(CudaGraphs, APlanThatRepeatsIsReplayedWithNewData) {
  const auto device = cuda_device();
  Sums s(*device);
  auto queue = std::move(device->make_queue()).value();
#ifndef AERIE_REAL_GPU
  const Counts before = counts();
#endif
  for (int i = 0; i < 5; ++i) {
    std::fill(s.in.begin(), s.in.end(), static_cast<float>(i));
    Floats elsewhere = s.in;  // the host's addresses may change
    auto plan = s.plan();
    std::get<Upload>(plan[0]).host = elsewhere.data();
    run_on(*queue, plan);
    EXPECT_EQ(s.out, Floats(256, 6.0f * static_cast<float>(i)));
  }
  auto other = s.plan();
  std::get<Add>(other[3]).b = matrix(s.memory, 1, 256);  // so may the device's
  run_on(*queue, other);
  EXPECT_EQ(s.out, Floats(256, 16.0f));
#ifndef AERIE_REAL_GPU
  EXPECT_EQ(counts().captures - before.captures, 1);
  EXPECT_EQ(counts().graph_launches - before.graph_launches, 5);
  EXPECT_EQ(counts().graphs - before.graphs, 1);
  queue.reset();
  EXPECT_EQ(counts().graphs, before.graphs);
#endif
}

// A layer's worth of ops over any number of rows, at any length of text.
struct Layer {
  static constexpr int64_t kMost = 40, kDim = 32, kHidden = 64, kSlots = 128;
  Floats x = random_floats(kMost * kHidden, 1), norm = random_floats(kHidden, 2), out = Floats(kMost * kHidden),
         freq = random_floats(kDim / 2, 3), angles = Floats(kMost * kDim), qkv = Floats(kMost * 4 * kDim), kv = random_floats(2 * kSlots * kDim, 4);
  Weights w{4 * kDim, kHidden, DType::bf16, 5}, o{kHidden, 2 * kDim, DType::int8, 6};
  Floats attn = Floats(kMost * 2 * kDim);
  Ints pages = {0, 1, 2, 3}, seq = Ints(kMost), position = Ints(kMost), ctx = Ints(kMost), slots = Ints(kMost);

  std::vector<Op> plan(int64_t rows, int32_t n_pages) {
    const auto m = [&](Floats& v) { return matrix(v.data(), rows, static_cast<int64_t>(v.size()) / kMost); };
    const KvCache cache{kv.data(), kSlots, 1, 1, kDim, DType::f32, nullptr};
    for (int64_t r = 0; r < rows; ++r) {
      position[static_cast<size_t>(r)] = slots[static_cast<size_t>(r)] = static_cast<int32_t>(n_pages * 32 - rows + r);
      ctx[static_cast<size_t>(r)] = position[static_cast<size_t>(r)] + 1;
    }
    const AttentionRows look{pages.data(), n_pages, seq.data(), ctx.data(), nullptr, nullptr, nullptr};
    return {RopeAngles{position.data(), view(freq, 1, kDim / 2), 1.0f, m(angles)},
            RmsNorm{m(x), view(norm, 1, kHidden), 1e-5f, m(out)},
            Linear{m(out), w.tensor(), {}, {}, m(qkv)},
            RopeAndStore{m(qkv), m(angles), 2, cache, 0, slots.data()},
            Attention{columns(m(qkv), 0, 2 * kDim), 2, cache, 0, look, 0.2f, m(attn), {}},
            Linear{m(attn), o.tensor(), {}, {}, m(out)}};
  }
};

TEST(CudaGraphs, RowsOfABucketAndAGrowingTextAreOneGraph) {
  const auto device = cuda_device(), plain = cuda_device(false);
  auto queue = std::move(device->make_queue()).value(), without = std::move(plain->make_queue()).value();
  Layer layer, same;
#ifndef AERIE_REAL_GPU
  const Counts before = counts();
#endif
  int32_t pages = 3;
  for (const int64_t rows : {5, 7, 8, 6, 5}) {
    SCOPED_TRACE(std::to_string(rows) + " rows");
    std::fill(layer.out.begin(), layer.out.end(), -7.0f);
    std::fill(same.out.begin(), same.out.end(), -7.0f);
    run_on(*queue, layer.plan(rows, pages));
    run_on(*without, same.plan(rows, pages));
    EXPECT_TRUE(same_bits(layer.out, same.out));  // and nothing behind the rows
    EXPECT_TRUE(same_bits(layer.kv, same.kv));
    pages = pages == 3 ? 4 : 3;
  }
#ifndef AERIE_REAL_GPU
  EXPECT_EQ(counts().captures - before.captures, 1);
  EXPECT_EQ(counts().graph_launches - before.graph_launches, 4);
  for (const int64_t rows : {9, 16, 33, 40, 1, 1}) run_on(*queue, layer.plan(rows, 3));
  EXPECT_EQ(counts().captures - before.captures, 4);  // buckets of 16, 64 and 1
#endif
}

#ifndef AERIE_REAL_GPU
TEST(CudaGraphs, ThereAreNeverMoreThanSoMany) {
  const auto device = cuda_device();
  auto queue = std::move(device->make_queue()).value();
  const Counts before = counts();
  const auto wide = [&](int64_t n) {  // a grid of n blocks
    Floats a(static_cast<size_t>(n * 256), 1.0f);
    const Tensor t = view(a, 1, n * 256);
    const Op plan[] = {Add{t, t, t}, Add{t, t, t}, Add{t, t, t}};
    for (int i = 0; i < 2; ++i) run_on(*queue, plan);
    EXPECT_EQ(a, Floats(a.size(), 64.0f));
  };
  constexpr auto kMost = static_cast<int64_t>(cuda::Graphs::kMost);
  for (int64_t n = 1; n <= kMost + 10; ++n) wide(n);
  EXPECT_EQ(counts().captures - before.captures, kMost + 10);
  EXPECT_EQ(counts().graphs - before.graphs, kMost);
  const int64_t captured = counts().captures;
  wide(kMost);  // one of those used last
  EXPECT_EQ(counts().captures, captured);
  wide(1);  // has been forgotten
  EXPECT_EQ(counts().captures, captured + 1);
  EXPECT_EQ(counts().graphs - before.graphs, kMost);
}

TEST(CudaGraphs, WithoutMemoryForAGraphPlansRunAllTheSame) {
  for (const cuda::emulation::Faults& faults : {cuda::emulation::Faults{.no_graphs = true}, cuda::emulation::Faults{.no_graph_runs = true}}) {
    const auto device = cuda_device();
    Sums s(*device);
    auto queue = std::move(device->make_queue()).value();
    const Counts before = counts();
    const auto run = [&](int i) {
      std::fill(s.in.begin(), s.in.end(), static_cast<float>(i));
      run_on(*queue, s.plan());
      EXPECT_EQ(s.out, Floats(256, 6.0f * static_cast<float>(i)));
    };
    cuda::emulation::set_faults(faults);
    for (int i = 0; i < 4; ++i) run(i);
    EXPECT_EQ(counts().captures - before.captures, 1) << "it is not made again each time";
    cuda::emulation::set_faults({});
    EXPECT_EQ(counts().graph_launches, before.graph_launches);
    EXPECT_EQ(counts().graphs, before.graphs);
    for (int i = 0; i < static_cast<int>(cuda::Graphs::kPatience); ++i) run(i);  // by then there may be memory
    EXPECT_GE(counts().graph_launches, before.graph_launches + 1);
    EXPECT_EQ(counts().graphs, before.graphs + 1);
  }
}

TEST(CudaGraphs, ARepeatedPlanTakesNoMemory) {
  const auto device = cuda_device();
  auto queue = std::move(device->make_queue()).value();
  Layer layer;
  std::vector<std::vector<Op>> plans;
  for (const int64_t rows : {3, 8, 4, 5}) plans.push_back(layer.plan(rows, 3));
  for (int i = 0; i < 2; ++i)
    for (const auto& plan : plans) run_on(*queue, plan);
  const int64_t from_heap = heap;
  const Counts before = counts();
  for (int i = 0; i < 3; ++i)
    for (const auto& plan : plans) run_on(*queue, plan);
  EXPECT_EQ(heap, from_heap);
  EXPECT_EQ(counts().allocations, before.allocations);
  EXPECT_EQ(counts().captures, before.captures);
}
#endif

}  // namespace
}  // namespace aerie::kernels::cuda_test

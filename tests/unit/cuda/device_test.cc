// The device and its queues: plans run behind the host's back, repeat as graphs, fail with a Status.
#include "unit/cuda/cuda_support.h"
#include "unit/kernels/run_if.h"

namespace aerie::kernels::cuda_test {
namespace {

TEST(CudaDevice, RunsPlansBehindTheHostsBack) {
  const auto device = cuda_device();
  EXPECT_STREQ(device->name(), "cuda");
  EXPECT_EQ(std::string(device->isa()).rfind("sm_", 0), 0u);
  Sums s(*device);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(s.memory) % 64, 0u);
  std::fill(s.in.begin(), s.in.end(), 1.5f);
  auto queue = std::move(device->make_queue()).value();
  EXPECT_EQ(queue->advance(kNoDeadline).value(), RunState::idle);
  const auto plan = s.plan();
  ASSERT_TRUE(queue->submit(plan).ok());
  EXPECT_EQ(s.out[0], 0.0f);
  EXPECT_EQ(queue->submit(plan).code(), Code::busy);
  while (queue->advance(Clock::now() - std::chrono::seconds(1)).value() == RunState::pending) {
  }
  EXPECT_EQ(s.out, Floats(256, 9.0f));
  ASSERT_TRUE(queue->submit(plan).ok());
  queue->abandon();
  EXPECT_EQ(queue->advance(kNoDeadline).value(), RunState::idle);
  ASSERT_TRUE(queue->submit({}).ok());
  EXPECT_EQ(queue->advance(kNoDeadline).value(), RunState::done);
}

TEST(CudaDevice, LargeCopiesAndWeightsArrive) {
  const auto device = cuda_device();
  const size_t n = (size_t{20} << 20) / 4 + 3;  // more than both halves of the loader, more than is staged
  Floats in(n), out(n);
  for (size_t i = 0; i < n; ++i) in[i] = static_cast<float>(i % 1000003);
  void* mapped = device->map_host(in.data(), n * 4);
  ASSERT_NE(mapped, nullptr);
  const Op down[] = {Download{out.data(), mapped, static_cast<int64_t>(n * 4)}};
  run_plan(*device, down);
  EXPECT_TRUE(same_bits(in, out));
  std::fill(out.begin(), out.end(), 0.0f);
  in[5] = -1;
  const Op both[] = {Upload{mapped, in.data(), static_cast<int64_t>(n * 4)}, down[0]};
  run_plan(*device, both);
  EXPECT_TRUE(same_bits(in, out));
  device->unmap_host(mapped);
}

// Whether they are plain launches or a graph's, begin early or not.
TEST(CudaDevice, KernelsThatAreNotWantedEndAtOnce) {
  for (const bool graphs : {false, true})
    for (const bool early : {false, true}) each_order([=] { kernels::test::expect_passed_over(*cuda_device(graphs, early)); });
}

TEST(CudaDevice, OnlyKernelsAskWhetherTheyAreWanted) {
  const auto device = cuda_device();
  Sums s(*device);
  auto plan = s.plan();
  plan.insert(plan.begin() + 1, RunIf{reinterpret_cast<const int32_t*>(s.memory), 4});  // the Download too
  auto queue = std::move(device->make_queue()).value();
  EXPECT_EQ(queue->submit(plan).code(), Code::unsupported);
  plan = s.plan();
  ASSERT_TRUE(queue->submit(plan).ok());  // and it goes on
  EXPECT_EQ(queue->advance(kNoDeadline).value(), RunState::done);
}

#ifndef AERIE_REAL_GPU
using cuda::emulation::Faults;
struct WithFaults {
  explicit WithFaults(const Faults& f) { cuda::emulation::set_faults(f); }
  ~WithFaults() { cuda::emulation::set_faults({}); }
};

TEST(CudaDevice, WhatCannotBeHadIsSaid) {
  const auto message = [](const Faults& f) {
    const WithFaults with(f);
    return make_cuda_device({}).status().message();
  };
  EXPECT_NE(message({.devices = 0}).find("no CUDA device"), std::string::npos);
  EXPECT_NE(message({.old_driver = true}).find("driver"), std::string::npos);
  EXPECT_EQ(make_cuda_device({.device = 3}).status().code(), Code::not_found);
  const auto device = cuda_device();
  KvCache wide{nullptr, 32, 1, 1, 1024, DType::f32, nullptr};
  Attention op{};
  op.cache = wide;
  auto queue = std::move(device->make_queue()).value();
  const Op plan[] = {op};
  const Status s = queue->submit(plan);
  EXPECT_EQ(s.code(), Code::unsupported);
  EXPECT_NE(s.message().find("512"), std::string::npos);
}

TEST(CudaDevice, RunsOutOfMemoryAndGoesOn) {
  const int64_t before = cuda::emulation::allocated_bytes();
  {
    const auto device = cuda_device();
    Sums s(*device);
    auto queue = std::move(device->make_queue()).value();
    const auto plan = s.plan();
    ASSERT_TRUE(queue->submit(plan).ok());
    EXPECT_EQ(queue->advance(kNoDeadline).value(), RunState::done);
    Floats logits(5000);
    Ints token(4);
    Floats logp(4);
    const Op big[] = {TopK{view(logits, 1, 5000), 4, 5000, nullptr, nullptr, token.data(), logp.data()}};
    {
      const WithFaults with({.memory = cuda::emulation::allocated_bytes() + 1000});
      EXPECT_EQ(device->allocate(5000), nullptr);
      EXPECT_EQ(device->map_host(logits.data(), 20000), nullptr);
      EXPECT_EQ(queue->submit(big).code(), Code::out_of_memory);
      ASSERT_TRUE(queue->submit(plan).ok());  // needs none
      EXPECT_EQ(queue->advance(kNoDeadline).value(), RunState::done);
    }
    ASSERT_TRUE(queue->submit(big).ok());
    EXPECT_EQ(queue->advance(kNoDeadline).value(), RunState::done);
    EXPECT_EQ(token[0], 0);
  }
  EXPECT_EQ(cuda::emulation::allocated_bytes(), before);
}

// As a saved session has them: hundreds of copies, each small beside what they are together.
TEST(CudaDevice, ManyCopiesTakeLittleMemoryOfTheirOwn) {
  const auto device = cuda_device();
  constexpr size_t kEach = 1 << 20, kCopies = 48;
  std::vector<char> in(kCopies * kEach), out(in.size());
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<char>(i % 251);
  char* const memory = static_cast<char*>(device->allocate(in.size()));
  ASSERT_NE(memory, nullptr);
  std::vector<Op> up, down;
  for (size_t i = 0; i < in.size(); i += kEach) {
    up.push_back(Upload{memory + i, in.data() + i, kEach});
    down.push_back(Download{out.data() + i, memory + i, kEach});
  }
  {
    const WithFaults with({.memory = cuda::emulation::allocated_bytes() + (int64_t{40} << 20)});
    auto queue = std::move(device->make_queue()).value();
    for (const auto& plan : {up, down}) {
      ASSERT_TRUE(queue->submit(plan).ok());
      ASSERT_EQ(queue->advance(kNoDeadline).value(), RunState::done);
    }
    EXPECT_EQ(in, out);
  }
  device->release(memory);
}

// Not the power of two above it, where there is just enough.
TEST(CudaDevice, TakesWhatIsLeft) {
  const auto device = cuda_device();
  Floats in((size_t{3} << 20) / 4, 1.5f), out(in.size());
  auto* const memory = static_cast<float*>(device->allocate(in.size() * 4));
  ASSERT_NE(memory, nullptr);
  const auto bytes = static_cast<int64_t>(in.size() * 4);
  const Op plan[] = {Upload{memory, in.data(), bytes}, Download{out.data(), memory, bytes}};
  {
    auto queue = std::move(device->make_queue()).value();
    const WithFaults with({.memory = cuda::emulation::allocated_bytes() + (int64_t{49} << 18)});  // 12.25 MiB: 8 and 4, not 8 and 8
    const Status s = queue->submit(plan);
    ASSERT_TRUE(s.ok()) << s.message();
    ASSERT_EQ(queue->advance(kNoDeadline).value(), RunState::done);
    EXPECT_EQ(in, out);
  }
  device->release(memory);
}

TEST(CudaDevice, ALostDeviceIsAnErrorFromThenOn) {
  const int64_t before = cuda::emulation::allocated_bytes();
  {
    const auto device = cuda_device();
    Sums s(*device);
    auto queue = std::move(device->make_queue()).value();
    const auto plan = s.plan();
    {
      const WithFaults with({.launches = 1});
      ASSERT_TRUE(queue->submit(plan).ok());
      const auto r = queue->advance(kNoDeadline);
      ASSERT_FALSE(r.ok());
      EXPECT_EQ(r.status().code(), Code::device);
    }
    EXPECT_EQ(queue->submit(plan).code(), Code::device);
    EXPECT_EQ(device->make_queue().status().code(), Code::device);
  }
  EXPECT_EQ(cuda::emulation::allocated_bytes(), before);
}

#endif

}  // namespace
}  // namespace aerie::kernels::cuda_test

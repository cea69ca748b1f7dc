// The CPU device as a plan sees it: slices, floating-point environment, several queues, host callbacks.
#include <algorithm>
#include <atomic>
#include <cctype>
#include <cfenv>
#include <iostream>
#include <map>
#include <set>
#include <thread>

#include "kernels/cpu/linear_matrix.h"
#include "kernels/cpu/op_kernels.h"
#include "kernels/fp_env.h"
#include "unit/kernels/ops_support.h"
#include "unit/kernels/run_if.h"

namespace aerie::kernels::device_test {
using namespace aerie::kernels::test;

std::unique_ptr<Device> cpu_device(const CpuOptions& options) {
  auto d = make_cpu_device(options);
  EXPECT_TRUE(d.ok()) << d.status().message();
  return d.ok() ? std::move(*d) : nullptr;
}

std::unique_ptr<Device> with_threads(int threads) {
  CpuOptions o;
  o.threads = threads;
  return cpu_device(o);
}

std::unique_ptr<Queue> queue_of(Device& d) {
  auto q = d.make_queue();
  EXPECT_TRUE(q.ok());
  return std::move(*q);
}

// Two layers of a toy network, enough work for several slices, over memory of the device.
class Net {
 public:
  Net(Device& device, int64_t rows, DType type = DType::int8, uint32_t seed = 99) : device_(device) {
    constexpr int layers = 2;
    for (int i = 0; i < layers; ++i) {
      wide_.push_back(weight(2 * kFfn, kHidden, type, static_cast<uint32_t>(2 * i + 1)));
      back_.push_back(weight(kHidden, kFfn, type, static_cast<uint32_t>(2 * i + 2)));
    }
    h_ = matrix(take(rows * kHidden * 4), rows, kHidden);
    gate_up_ = matrix(take(rows * 2 * kFfn * 4), rows, 2 * kFfn);
    act_ = matrix(take(rows * kFfn * 4), rows, kFfn);
    input_ = random_floats(static_cast<size_t>(rows * kHidden), seed);
    result_.resize(input_.size());
    plan_.push_back(Upload{h_.data, input_.data(), rows * kHidden * 4});
    for (int i = 0; i < layers; ++i) {
      plan_.push_back(Linear{h_, wide_[static_cast<size_t>(i)], {}, {}, gate_up_});
      plan_.push_back(GatedActivate{gate_up_, Activation::silu, act_});
      plan_.push_back(Linear{act_, back_[static_cast<size_t>(i)], {}, h_, h_});
    }
    plan_.push_back(Download{result_.data(), h_.data, rows * kHidden * 4});
  }
  ~Net() {
    for (void* m : memory_) device_.release(m);
  }
  Net(const Net&) = delete;
  Net& operator=(const Net&) = delete;
  std::span<const Op> plan() const { return plan_; }
  Floats& input() { return input_; }
  Floats& result() { return result_; }

 private:
  static constexpr int64_t kHidden = 192, kFfn = 1000;
  void* take(int64_t bytes) {
    memory_.push_back(device_.allocate(static_cast<size_t>(bytes)));
    EXPECT_NE(memory_.back(), nullptr);
    return memory_.back();
  }
  Tensor weight(int64_t n, int64_t k, DType t, uint32_t seed) {
    const Floats w = random_floats(static_cast<size_t>(n * k), seed, 0.05f);
    Tensor p{take(data_bytes(t, Layout::panel16, n, k)), nullptr, n, k, 0, t, Layout::panel16};
    if (has_scales(t)) p.scales = take(scale_bytes(t, n, k));
    pack_panel16(w.data(), n, k, t, p.data, p.scales);
    return p;
  }

  Device& device_;
  std::vector<void*> memory_;
  std::vector<Tensor> wide_, back_;
  Tensor h_, gate_up_, act_;
  Floats input_, result_;
  std::vector<Op> plan_;
};

Floats whole_run(Device& device, int64_t rows, DType type = DType::int8) {
  Net net(device, rows, type);
  run_plan(device, net.plan());
  return net.result();
}

const DType kTypes[] = {DType::f32, DType::bf16, DType::fp8, DType::int8, DType::int4, DType::q4_1, DType::mxfp4};

TEST(RunIf, OpsThatAreNotWantedArePassedOver) {
  expect_passed_over(*make_reference_device());
  expect_passed_over(*with_threads(2));
  expect_passed_over(*make_mock_device(with_threads(1)));
}

TEST(CpuDevice, ThreadCountDoesNotChangeBits) {
  for (const DType t : kTypes) {
    const Floats one = whole_run(*with_threads(1), 7, t);
    for (int threads = 2; threads <= 4; ++threads)
      EXPECT_TRUE(same_bits(one, whole_run(*with_threads(threads), 7, t))) << threads;
  }
}

// So many rows that the threads pack them together.
TEST(CpuDevice, RowsPackedTogetherHaveTheBitsOfOneThread) {
  each_isa([] {
    for (const DType t : kTypes)
      for (const int64_t rows : {35, 60}) {
        const Floats one = whole_run(*with_threads(1), rows, t);
        for (const int threads : {2, 3, 8})
          EXPECT_TRUE(same_bits(one, whole_run(*with_threads(threads), rows, t)))
              << threads << " threads, " << rows << " rows, type " << static_cast<int>(t);
      }
  });
}

TEST(CpuDevice, SlicesGiveTheSameBitsAndAlwaysProgress) {
  for (const int threads : {1, 2}) {
    const auto device = with_threads(threads);
    const Floats want = whole_run(*device, 40);
    Net net(*device, 40);
    const auto queue = queue_of(*device);
    for (const auto wait : {std::chrono::microseconds(-1000), std::chrono::microseconds(50)}) {
      std::fill(net.result().begin(), net.result().end(), 0.0f);
      ASSERT_TRUE(queue->submit(net.plan()).ok());
      int calls = 0;
      for (;; ++calls) {
        ASSERT_LT(calls, 10000);
        const auto r = queue->advance(Clock::now() + wait);
        ASSERT_TRUE(r.ok());
        if (*r == RunState::done) break;
        ASSERT_EQ(*r, RunState::pending);
      }
      EXPECT_TRUE(same_bits(want, net.result()));
      if (wait.count() < 0) {
        EXPECT_GT(calls, 4) << "a past deadline must stop between slices";
      }
    }
  }
}

// Nobody waits: only an op that takes longer is cut up.
TEST(CpuDevice, WithSlackAnOpRunsInOnePiece) {
  const auto device = with_threads(2);
  Net net(*device, 40);
  const Floats want = whole_run(*device, 40);
  const auto slices = [&](Clock::duration slack) {
    const auto queue = queue_of(*device);
    queue->set_slack(slack);
    EXPECT_TRUE(queue->submit(net.plan()).ok());
    size_t calls = 1;
    while (*queue->advance(Clock::time_point::min()) == RunState::pending) ++calls;
    EXPECT_TRUE(same_bits(want, net.result()));
    return calls;
  };
  EXPECT_EQ(slices(std::chrono::seconds(1)), net.plan().size());
  EXPECT_GT(slices(std::chrono::nanoseconds(1)), net.plan().size());
}

TEST(CpuDevice, OneQueueHasOnePlan) {
  const auto device = with_threads(2);
  Net net(*device, 60);
  const Floats want = whole_run(*device, 60);
  const auto queue = queue_of(*device);
  EXPECT_EQ(*queue->advance(kNoDeadline), RunState::idle);
  ASSERT_TRUE(queue->submit(net.plan()).ok());
  ASSERT_EQ(*queue->advance(Clock::now() - std::chrono::seconds(1)), RunState::pending);
  EXPECT_EQ(queue->submit(net.plan()).code(), Code::busy);
  queue->abandon();
  EXPECT_EQ(*queue->advance(kNoDeadline), RunState::idle);
  ASSERT_TRUE(queue->submit(net.plan()).ok());  // from the start again
  ASSERT_EQ(*queue->advance(kNoDeadline), RunState::done);
  EXPECT_TRUE(same_bits(want, net.result()));
  ASSERT_TRUE(queue->submit({}).ok());
  EXPECT_EQ(*queue->advance(kNoDeadline), RunState::done);
}

// What a thread keeps for one op (quantised activations) must never serve another: neither the op of another
// queue of the same shape, nor the same op run again on new values.
TEST(CpuDevice, NothingKeptForOneRunServesAnother) {
  for (const int threads : {1, 2}) {
    const auto device = with_threads(threads);
    Net a(*device, 30, DType::int8, 1), b(*device, 30, DType::int8, 2);
    const auto qa = queue_of(*device), qb = queue_of(*device);
    run_plan(*device, a.plan());
    run_plan(*device, b.plan());
    const Floats want_a = a.result(), want_b = b.result();
    ASSERT_FALSE(same_bits(want_a, want_b));
    for (Net* n : {&a, &b}) std::fill(n->result().begin(), n->result().end(), 0.0f);
    ASSERT_TRUE(qa->submit(a.plan()).ok());
    ASSERT_TRUE(qb->submit(b.plan()).ok());
    for (bool more = true; more;) {  // a slice of each in turn, on this one thread
      more = *qa->advance(Clock::time_point::min()) == RunState::pending;
      more = *qb->advance(Clock::time_point::min()) == RunState::pending || more;
    }
    EXPECT_TRUE(same_bits(want_a, a.result()));
    EXPECT_TRUE(same_bits(want_b, b.result()));
    a.input() = b.input();
    ASSERT_TRUE(qa->submit(a.plan()).ok());
    ASSERT_EQ(*qa->advance(kNoDeadline), RunState::done);
    EXPECT_TRUE(same_bits(want_b, a.result()));
  }
}

#ifndef _WIN32  // such objects are gone themselves when their destructors run there
// An exit handler, or a thread-local object that is older than the device's: it runs a plan when the thread's own memory
// has been given back already.
TEST(CpuDevice, RunsInAThreadThatEnds) {
  const auto device = with_threads(1);
  const Floats want = whole_run(*device, 9);
  Floats got;
  std::thread([&] {
    thread_local struct Last {
      Device* device = nullptr;
      Floats* out = nullptr;
      ~Last() {
        if (device) *out = whole_run(*device, 9);
      }
    } last;
    last.device = device.get();
    last.out = &got;
    EXPECT_TRUE(same_bits(want, whole_run(*device, 9)));
  }).join();
  EXPECT_TRUE(same_bits(want, got));
}
#endif

TEST(CpuDevice, QueuesOfSeveralThreadsShareTheDevice) {
  for (const int threads : {1, 3}) {
    const auto device = with_threads(threads);
    const Floats want = whole_run(*device, 9);
    std::atomic<int> wrong{0};
    std::vector<std::thread> hosts;
    for (int h = 0; h < 4; ++h)
      hosts.emplace_back([&, h] {
        Net net(*device, 9);
        const auto queue = queue_of(*device);
        for (int run = 0; run < 10; ++run) {
          std::fill(net.result().begin(), net.result().end(), 0.0f);
          if (!queue->submit(net.plan()).ok()) ++wrong;
          for (;;) {  // half of the hosts in slices
            const auto r = queue->advance(h % 2 ? kNoDeadline : Clock::now());
            if (!r.ok()) ++wrong;
            if (!r.ok() || *r == RunState::done) break;
          }
          if (!same_bits(want, net.result())) ++wrong;
        }
      });
    for (auto& h : hosts) h.join();
    EXPECT_EQ(wrong, 0) << threads;
  }
}

TEST(CpuDevice, SeveralDevicesAtOnceHaveTheBitsOfOne) {
  std::vector<std::thread> hosts;
  for (int h = 0; h < 3; ++h)
    hosts.emplace_back([] {
      const auto device = with_threads(8);
      const Floats first = whole_run(*device, 5);
      for (int i = 0; i < 5; ++i) EXPECT_TRUE(same_bits(first, whole_run(*device, 5)));
    });
  for (auto& h : hosts) h.join();
}

#ifndef AERIE_NO_FP_CONTROL
#if defined(__x86_64__)
// Flush to zero, subnormals as zero, round up. Exceptions stay masked: unmasked ones would kill the test itself.
constexpr FpControl kHostControl = kFpControl | 0x8000u | 0x0040u | 0x4000u, kStickyFlags = 0x3fu;
#else
// Alternative half precision, default NaN, flush to zero, round up.
constexpr FpControl kHostControl = 1u << 26 | 1u << 25 | 1u << 24 | 1u << 22, kStickyFlags = 0;
#endif

// A host may have flush-to-zero, another rounding or unmasked exceptions set.
TEST(CpuDevice, HasItsOwnFloatingPointEnvironmentAndRestoresTheHosts) {
  const FpControl before = fp_control();
  for (const int threads : {1, 2}) {
    const auto device = with_threads(threads);
    const Floats want = whole_run(*device, 6, DType::f32);
    Floats a(4096, 1e-39f), b(4096, 2e-39f), sum(4096);
    Net net(*device, 6, DType::f32);
    std::vector<Op> plan(net.plan().begin(), net.plan().end());
    plan.push_back(Add{view(a, 64, 64), view(b, 64, 64), view(sum, 64, 64)});
    const auto queue = queue_of(*device);
    set_fp_control(kHostControl);
    const bool submitted = queue->submit(plan).ok();
    int pending = 0;
    for (;;) {
      const auto r = queue->advance(Clock::now() - std::chrono::seconds(1));
      if (!r.ok() || *r != RunState::pending) break;
      ++pending;
    }
    const FpControl after = fp_control();
    set_fp_control(before);
    EXPECT_TRUE(submitted);
    EXPECT_EQ(after & ~kStickyFlags, kHostControl);  // the test's own code may set the sticky flags
    EXPECT_TRUE(same_bits(want, net.result()));
    for (const float s : sum) ASSERT_EQ(std::bit_cast<uint32_t>(s), std::bit_cast<uint32_t>(1e-39f + 2e-39f));
  }
}

TEST(FpEnv, RestoresWhatItFound) {
  const FpControl before = fp_control();
  set_fp_control(kHostControl | kStickyFlags);
  FpControl inside;
  {
    const FpEnv env;
    inside = fp_control();
  }
  const FpControl after = fp_control();
  set_fp_control(before);
  EXPECT_EQ(inside, kFpControl);
  EXPECT_EQ(after, kHostControl | kStickyFlags);
}
#endif

// A job system that runs its tasks on threads of its own, backwards, with a floating-point mode of its own.
struct HostJobs {
  std::atomic<int> jobs{0};
  std::atomic<bool> own_mode{true};  // the job system is called with the host's floating-point mode
  static void parallel_for(void* user, void (*fn)(void*, int32_t), void* ctx, int32_t n) {
    ++static_cast<HostJobs*>(user)->jobs;
#ifndef AERIE_NO_FP_CONTROL
    if ((fp_control() & ~kStickyFlags) != kHostControl) static_cast<HostJobs*>(user)->own_mode = false;
#endif
    std::atomic<int32_t> left{n};
    const auto work = [&] {
      std::fesetround(FE_UPWARD);
      for (int32_t i; (i = --left) >= 0;) fn(ctx, i);
    };
    std::thread helper(work);
    std::thread(work).join();
    helper.join();
  }
};

TEST(CpuDevice, RunsOnTheHostsJobSystem) {
  const Floats want = whole_run(*with_threads(1), 12);
  HostJobs jobs;
  CpuOptions o;
  o.threads = 4;
  o.host_parallel_for = HostJobs::parallel_for;
  o.host_user = &jobs;
  const auto device = cpu_device(o);
  Net net(*device, 12);
  const auto queue = queue_of(*device);
#ifndef AERIE_NO_FP_CONTROL
  const FpControl before = fp_control();
  set_fp_control(kHostControl);
#endif
  const bool done = queue->submit(net.plan()).ok() && queue->advance(kNoDeadline).ok();
#ifndef AERIE_NO_FP_CONTROL
  set_fp_control(before);
#endif
  EXPECT_TRUE(done);
  EXPECT_TRUE(same_bits(want, net.result()));
  EXPECT_GT(jobs.jobs, 0);
  EXPECT_TRUE(jobs.own_mode);
}

TEST(CpuDevice, APassedDeadlineCostsATaskAThread) {
  struct Counted {
    int rounds = 0;
    static void parallel_for(void* user, void (*fn)(void*, int32_t), void* ctx, int32_t n) {
      ++static_cast<Counted*>(user)->rounds;
      EXPECT_LE(n, 2);
      for (int32_t i = 0; i < n; ++i) fn(ctx, i);
    }
  } counted;
  CpuOptions o;
  o.threads = 2;
  o.host_parallel_for = Counted::parallel_for;
  o.host_user = &counted;
  const auto device = cpu_device(o);
  Net net(*device, 40);
  const auto queue = queue_of(*device);
  ASSERT_TRUE(queue->submit(net.plan()).ok());
  size_t calls = 0;
  for (auto state = RunState::pending; state == RunState::pending; ++calls) {
    counted.rounds = 0;
    const auto r = queue->advance(Clock::time_point{});
    ASSERT_TRUE(r.ok());
    state = *r;
    EXPECT_LE(counted.rounds, 1);
  }
  EXPECT_GE(calls, net.plan().size());
  EXPECT_TRUE(same_bits(whole_run(*with_threads(1), 40), net.result()));
}

// A tenth of a millisecond or two on one core: what a step may overrun its budget by.
TEST(CpuDevice, TasksOfALargeModelAreShort) {
  constexpr int64_t kMacs = 8 << 20, kWeights = 2 << 20;
  for (const int threads : {1, 2, 8})
    for (const auto& [n, k] : {std::pair<int64_t, int64_t>{2560, 2048}, {11264, 2048}, {2048, 5632}, {32000, 2048}})
      for (const int64_t rows : {1, 2, 4, 5, 16, 25, 33, 60, 64}) {
        const Linear op{matrix(nullptr, rows, k), Tensor{nullptr, nullptr, n, k, 0, DType::bf16, Layout::panel16}, {}, {},
                        matrix(nullptr, rows, n)};
        each_isa([&] {
          const int64_t tasks = cpu::tasks(op, threads), speed = cpu::on_matrix_unit(op) ? cpu::matrix_speed(op.w.dtype) : 1;
          EXPECT_GE(tasks * kMacs * speed, rows * n * k) << n << " x " << k << ", " << rows << " rows, " << threads << " threads";
          EXPECT_GE(tasks * kWeights, n * k) << n << " x " << k << ", " << rows << " rows, " << threads << " threads";
        });
      }
}

struct HostMemory {
  std::atomic<int> live{0};
  std::atomic<bool> empty{false};
  static void* alloc(void* user, size_t bytes, size_t alignment) {
    auto& m = *static_cast<HostMemory*>(user);
    if (m.empty || alignment != 64) return nullptr;
    ++m.live;
    return ::operator new (bytes, std::align_val_t{64});
  }
  static void free(void* user, void* memory) {
    --static_cast<HostMemory*>(user)->live;
    ::operator delete (memory, std::align_val_t{64});
  }
};

TEST(CpuDevice, AllocatesThroughTheHost) {
  HostMemory host;
  CpuOptions o;
  o.threads = 1;
  o.alloc = HostMemory::alloc;
  o.free = HostMemory::free;
  o.alloc_user = &host;
  const auto device = cpu_device(o);
  const int own = host.live;
  void* p = device->allocate(100);
  EXPECT_EQ(host.live, own + 1);
  device->release(p);
  EXPECT_EQ(host.live, own);
  device->release(nullptr);
  host.empty = true;
  EXPECT_EQ(device->allocate(100), nullptr);
  o.free = nullptr;  // memory of an unknown heap could not be returned
  EXPECT_EQ(make_cpu_device(o).status().code(), Code::invalid_argument);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // their operator new ends the program
// An op whose working memory cannot be had fails the plan, on whichever thread it ran, and nothing else.
TEST(CpuDevice, WorkingMemoryOutIsAnErrorNotAnEnd) {
  for (const int threads : {1, 2}) {
    const auto device = with_threads(threads);
    const auto queue = queue_of(*device);
    Net net(*device, 3);
    Linear huge = std::get<Linear>(net.plan()[1]);
    huge.x.rows = huge.out.rows = int64_t{1} << 42;  // never read: its integers come first
    const Op plan[] = {huge};
    ASSERT_TRUE(queue->submit(plan).ok());
    const auto r = queue->advance(kNoDeadline);
    ASSERT_FALSE(r.ok());
    EXPECT_EQ(r.status().code(), Code::out_of_memory);
    ASSERT_TRUE(queue->submit(net.plan()).ok());
    ASSERT_EQ(*queue->advance(kNoDeadline), RunState::done);
    EXPECT_TRUE(same_bits(net.result(), whole_run(*device, 3)));
  }
}
#endif

TEST(CpuDevice, MemoryIsAligned) {
  const auto device = with_threads(1);
  for (const size_t bytes : {0, 1, 63, 64, 1000}) {
    void* p = device->allocate(bytes);
    ASSERT_NE(p, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % 64, 0u);
    device->release(p);
  }
  int here = 0;
  void* mapped = device->map_host(&here, 4);
  EXPECT_EQ(mapped, &here);
  device->unmap_host(mapped);
}

TEST(CpuDevice, SaysWhatItIsAndRefusesNonsense) {
  const auto device = with_threads(2);
  EXPECT_STREQ(device->name(), "cpu");
  EXPECT_EQ(std::string(device->isa()).rfind(supported_isas().front().name() + std::string(", 2 threads"), 0), 0u);
  CpuOptions o;
  o.threads = -1;
  EXPECT_EQ(make_cpu_device(o).status().code(), Code::invalid_argument);
  EXPECT_NE(with_threads(0), nullptr);
}

TEST(CpuDevice, RunsTheIsaThatATestAsksFor) {
  each_isa([&](const Isa& isa) {
    std::cout << "runs " << isa.name() << '\n';  // tests/cross/x86_levels.bash looks for it
    EXPECT_EQ(with_threads(1)->isa(), isa.name() + std::string(", 1 thread"));
  });
}

// Devices of all instruction sets side by side, each with its own bits, whoever's threads run its tasks.
TEST(CpuDevice, RunsTheIsaThatItWasMadeFor) {
  std::map<std::string, std::vector<Floats>> want;
  each_isa([&](const Isa& isa) {
    for (const DType t : kTypes) want[isa.name()].push_back(whole_run(*with_threads(1), 7, t));
  });
  std::vector<std::unique_ptr<Device>> devices;
  for (const auto& [name, results] : want) {
    CpuOptions o;
    o.threads = 2;
    o.isa = name;
    devices.push_back(cpu_device(o));
    EXPECT_EQ(devices.back()->isa(), name + ", 2 threads");
    o.host_parallel_for = [](void*, void (*fn)(void*, int32_t), void* context, int32_t n) {
      for (int32_t i = 0; i < n; ++i) std::thread(fn, context, i).join();
    };
    std::transform(o.isa.begin(), o.isa.end(), o.isa.begin(), [](unsigned char c) { return std::tolower(c); });
    devices.push_back(cpu_device(o));
  }
  devices.push_back(with_threads(2));
  std::set<std::vector<float>> seen;
  for (size_t t = 0; t < std::size(kTypes); ++t)
    for (const auto& device : devices) {
      const std::string isa = device->isa();
      const Floats got = whole_run(*device, 7, kTypes[t]);
      EXPECT_TRUE(same_bits(got, want[isa.substr(0, isa.find(','))][t])) << isa;
      seen.insert(got);
    }
  EXPECT_EQ(std::string(devices.back()->isa()), supported_isas().front().name() + std::string(", 2 threads"));
  if (want.count("SSE4") && want.size() > 1) {
    EXPECT_GT(seen.size(), std::size(kTypes)) << "one without fused multiply-adds rounds otherwise";
  }
}

// A host's job system may step another model between a device's tasks.
TEST(CpuDevice, AnotherDevicesIsaIsNotItsOwn) {
  struct Inner {
    std::unique_ptr<Device> device = with_threads(1);
    Floats got = {};
  } inner;
  CpuOptions o;
  o.threads = 2;
  o.isa = supported_isas().back().name();
  o.host_user = &inner;
  o.host_parallel_for = [](void* user, void (*fn)(void*, int32_t), void* context, int32_t n) {
    auto& in = *static_cast<Inner*>(user);
    if (in.got.empty()) in.got = whole_run(*in.device, 7, DType::f32);
    for (int32_t i = 0; i < n; ++i) fn(context, i);
  };
  const Floats outer = whole_run(*cpu_device(o), 7, DType::f32);
  ASSERT_FALSE(inner.got.empty());
  EXPECT_TRUE(same_bits(inner.got, whole_run(*with_threads(1), 7, DType::f32)));
  set_isa(supported_isas().back());
  EXPECT_TRUE(same_bits(outer, whole_run(*with_threads(1), 7, DType::f32)));
  reset_isa();
}

TEST(CpuDevice, AnIsaThatTheMachineLacksIsAnErrorThatNamesThoseItHas) {
  CpuOptions o;
  o.isa = "AVX9";
  const Status s = make_cpu_device(o).status();
  EXPECT_EQ(s.code(), Code::unsupported);
  for (const Isa& isa : supported_isas()) EXPECT_NE(s.message().find(isa.name()), std::string::npos) << s.message();
}

}  // namespace aerie::kernels::device_test

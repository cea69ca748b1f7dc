#include <atomic>
#include <chrono>
#include <thread>

#include "support/wrapped_device.h"
#include "unit/kernels/ops_support.h"

namespace aerie::kernels::mock_test {
using namespace aerie::kernels::test;

// Memory of one device, given back at the end.
class Memory {
 public:
  explicit Memory(Device& device) : device_(device) {}
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() {
    for (void* p : all_) device_.release(p);
  }
  template <class T>
  T* get(int64_t n) {
    all_.push_back(device_.allocate(static_cast<size_t>(n) * sizeof(T)));
    EXPECT_NE(all_.back(), nullptr);
    return static_cast<T*>(all_.back());
  }

 private:
  Device& device_;
  std::vector<void*> all_;
};

struct Output {
  Floats logits;
  Ints tokens;
  Floats logp;
  Ints rescored, fused;
  std::vector<char> walk;
  std::vector<char> kv;
};

// A little of everything: embedding, norm, projection, rope, attention, gated activation, head, draws.
Output run_all_ops(Device& device, DType kv = DType::f32) {
  constexpr int64_t R = 5, V = 48, H = 32, F = 40, kHeads = 4, kKv = 2, kDim = 8, kSlots = 64;
  constexpr int64_t kQkv = (kHeads + 2 * kKv) * kDim;
  Memory memory(device);
  std::vector<Op> plan;
  std::vector<Floats> keep_floats;
  std::vector<Ints> keep_ints;
  std::vector<std::vector<char>> packed;
  keep_floats.reserve(32), keep_ints.reserve(32), packed.reserve(32);
  const auto floats = [&](int64_t rows, int64_t cols, uint32_t seed) {
    keep_floats.push_back(random_floats(static_cast<size_t>(rows * cols), seed, 0.4f));
    auto* p = memory.get<float>(rows * cols);
    plan.push_back(Upload{p, keep_floats.back().data(), rows * cols * 4});
    return matrix(p, rows, cols);
  };
  const auto empty = [&](int64_t rows, int64_t cols) { return matrix(memory.get<float>(rows * cols), rows, cols); };
  const auto ints = [&](Ints v) {
    keep_ints.push_back(std::move(v));
    const auto n = static_cast<int64_t>(keep_ints.back().size());
    auto* p = memory.get<int32_t>(n);
    plan.push_back(Upload{p, keep_ints.back().data(), n * 4});
    return p;
  };
  const auto weight = [&](int64_t n, int64_t k, DType t, uint32_t seed) {
    const Floats w = random_floats(static_cast<size_t>(n * k), seed, 0.3f);
    packed.emplace_back(static_cast<size_t>(data_bytes(t, Layout::panel16, n, k)));
    packed.emplace_back(static_cast<size_t>(scale_bytes(t, n, k)));
    char *data = packed[packed.size() - 2].data(), *scales = packed.back().data();
    pack_panel16(w.data(), n, k, t, data, scales);
    const auto upload = [&](char* p, int64_t bytes) -> void* {
      if (bytes == 0) return nullptr;
      char* d = memory.get<char>(bytes);
      plan.push_back(Upload{d, p, bytes});
      return d;
    };
    return Tensor{upload(data, data_bytes(t, Layout::panel16, n, k)),
                  upload(scales, scale_bytes(t, n, k)),
                  n,
                  k,
                  0,
                  t,
                  Layout::panel16};
  };
  constexpr int64_t kRows = 2 * kSlots * kKv;
  const int64_t kv_data = kRows * kDim * kv_element_bytes(kv), kv_bytes = kv_data + (kv == DType::int8 ? kRows * 4 : 0);
  KvCache cache{memory.get<char>(kv_bytes), kSlots, 1, kKv, kDim, kv, nullptr};
  if (kv == DType::int8) cache.scales = reinterpret_cast<float*>(static_cast<char*>(cache.data) + kv_data);
  const std::vector<char> zeros(static_cast<size_t>(kv_bytes));
  plan.push_back(Upload{cache.data, zeros.data(), kv_bytes});

  const Tensor table = floats(V, H, 1), norm = floats(1, H, 2), inv_freq = floats(1, kDim / 2, 3);
  const Tensor x = empty(R, H), y = empty(R, H), qkv = empty(R, kQkv), angles = empty(R, kDim),
               att = empty(R, kHeads * kDim);
  const Tensor gate_up = empty(R, 2 * F), f = empty(R, F), logits = empty(R, V);
  plan.push_back(Embed{table, ints({3, 47, 0, 8, 21}), x});
  plan.push_back(RmsNorm{x, norm, 1e-5f, y});
  plan.push_back(Linear{y, weight(kQkv, H, DType::f32, 4), floats(1, kQkv, 5), {}, qkv});
  plan.push_back(RopeAngles{ints({0, 1, 2, 3, 3}), inv_freq, 1.0f, angles});
  plan.push_back(RopeAndStore{qkv, angles, kHeads, cache, 0, ints({32, 33, 34, 35, 7})});
  const AttentionRows rows{
      ints({1}), 1, ints({0, 0, 0, 0, 0}), ints({1, 2, 3, 4, 3}), ints({0, 0, 0, 0, 0}), ints({0, 0, 0, 0, 1}),
      ints({7})};
  plan.push_back(Attention{columns(qkv, 0, kHeads * kDim), kHeads, cache, 0, rows, 0.35f, att, {}});
  plan.push_back(Linear{att, weight(H, kHeads * kDim, DType::bf16, 6), {}, x, x});
  plan.push_back(Linear{x, weight(2 * F, H, DType::int8, 7), {}, {}, gate_up});
  plan.push_back(GatedActivate{gate_up, Activation::silu, f});
  plan.push_back(Linear{f, weight(H, F, DType::int4, 8), {}, {}, y});
  plan.push_back(Linear{f, weight(H, F, DType::q4_1, 10), {}, y, y});
  plan.push_back(Linear{f, weight(H, F, DType::mxfp4, 11), {}, y, y});
  plan.push_back(Activate{y, Activation::gelu_tanh, y});
  plan.push_back(Add{x, y, y});
  plan.push_back(CopyRows{y, ints({4, 3, 2, 1, 0}), x, nullptr, R});
  plan.push_back(Linear{x, weight(V, H, DType::f32, 9), {}, {}, logits});
  plan.push_back(KvCopy{cache, ints({7}), ints({36}), 1});
  std::vector<DrawKey> keys(R, DrawKey{1, 2, 3, 1.0f, 0});
  auto* device_keys = memory.get<DrawKey>(R);
  plan.push_back(Upload{device_keys, keys.data(), R * static_cast<int64_t>(sizeof(DrawKey))});
  auto* tokens = memory.get<int32_t>(R * 6);
  auto* logp = memory.get<float>(R * 6);
  auto* near = memory.get<int32_t>(R * 12);
  auto* near_logp = memory.get<float>(R * 12);
  const Tensor exact = empty(R, 12);
  plan.push_back(TopK{logits, 12, V, nullptr, device_keys, near, near_logp});
  plan.push_back(LinearRows{x, weight(V, H, DType::int8, 9), near, exact});
  plan.push_back(Rescore{logits, near, near_logp, exact, 6, device_keys, tokens, logp});
  Output out{Floats(R * V), Ints(R * 6), Floats(R * 6), Ints(R * 6), Ints(R * 6), std::vector<char>(sizeof(WalkOut) + sizeof(WalkStep)), zeros};
  plan.push_back(Download{out.rescored.data(), tokens, R * 6 * 4});
  const LinearTopK head{x,           weight(V, H, DType::bf16, 9), {}, 6, V, nullptr, device_keys,
                        empty(R, topk_partial_cols(V, 6)), tokens, logp};
  plan.push_back(head);
  plan.push_back(MergeTopK{head});
  plan.push_back(Download{out.fused.data(), tokens, R * 6 * 4});
  plan.push_back(TopK{logits, 6, V, nullptr, device_keys, tokens, logp});
  const WalkSeq seq{{.seed = 3, .temperature = 1}, 3, 0, 0};
  auto* seqs = memory.get<WalkSeq>(1);
  plan.push_back(Upload{seqs, &seq, sizeof(seq)});
  auto* walked = memory.get<char>(walk_out_bytes(3));
  plan.push_back(Walk{logits, V, ints({3, 1, 2, 3, 4}), ints({-1, -1, -1, -1, -1}), ints({-1, -1, -1, -1, -1}), seqs, 1,
                      3, walked});

  plan.push_back(Download{out.logits.data(), logits.data, R * V * 4});
  plan.push_back(Download{out.tokens.data(), tokens, R * 6 * 4});
  plan.push_back(Download{out.logp.data(), logp, R * 6 * 4});
  plan.push_back(Download{out.walk.data(), walked, static_cast<int64_t>(out.walk.size())});
  plan.push_back(Download{out.kv.data(), cache.data, kv_bytes});
  run_plan(device, plan);
  return out;
}

std::unique_ptr<Device> cpu_device() {
  auto d = make_cpu_device({.threads = 2});
  EXPECT_TRUE(d.ok());
  return std::move(d).value();
}

TEST(Mock, EveryOpGivesWhatTheInnerDeviceGives) {
  for (const bool reference : {true, false}) {
    const auto make = [&] { return reference ? make_reference_device() : cpu_device(); };
    const Output want = run_all_ops(*make());
    const Output got = run_all_ops(*make_mock_device(make()));
    EXPECT_TRUE(same_bits(got.logits, want.logits));
    EXPECT_EQ(got.tokens, want.tokens);
    EXPECT_TRUE(same_bits(got.logp, want.logp));
    EXPECT_EQ(got.rescored, want.rescored);
    EXPECT_EQ(got.fused, want.fused);
    EXPECT_EQ(got.walk, want.walk);
    EXPECT_EQ(got.kv, want.kv);
    for (const DType kv : {DType::bf16, DType::int8}) {
      const Output inner = run_all_ops(*make(), kv), outer = run_all_ops(*make_mock_device(make()), kv);
      EXPECT_TRUE(same_bits(outer.logits, inner.logits));
      EXPECT_FALSE(same_bits(outer.logits, want.logits));
      EXPECT_EQ(outer.kv, inner.kv);
    }
  }
  // And the whole chain on the CPU device is the reference's.
  const RoundsAsCpu same;
  const Output a = run_all_ops(*make_reference_device()), b = run_all_ops(*cpu_device());
  expect_near(b.logits, a.logits, 1e-4f);
  EXPECT_EQ(b.tokens, a.tokens);
  EXPECT_EQ(b.rescored, a.rescored);
  EXPECT_EQ(b.fused, a.fused);
}

TEST(MockDeathTest, HostAccessFaults) {
  auto device = make_mock_device(make_reference_device());
  auto* p = static_cast<volatile int*>(device->allocate(64));
  ASSERT_NE(p, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % 64, 0u);
  EXPECT_DEATH({ [[maybe_unused]] int x = *p; }, "");
  EXPECT_DEATH({ *p = 1; }, "");
  const Floats host = random_floats(16, 1);
  auto* m = static_cast<volatile const float*>(device->map_host(host.data(), 64));
  ASSERT_NE(static_cast<volatile const void*>(m), static_cast<volatile const void*>(host.data()));
  EXPECT_DEATH({ [[maybe_unused]] float x = *m; }, "");
  device->unmap_host(const_cast<float*>(m));
  device->release(const_cast<int*>(p));
}

TEST(Mock, MapHostCopies) {
  auto device = make_mock_device(make_reference_device());
  Floats host = random_floats(16, 1), back(16);
  const Floats before = host;
  void* m = device->map_host(host.data(), 64);
  host[0] = 99;
  const Op plan[] = {Download{back.data(), m, 64}};
  run_plan(*device, plan);
  EXPECT_TRUE(same_bits(back, before));
  device->unmap_host(m);
}

TEST(Mock, TheWrongKindOfAddressIsRefusedByName) {
  auto device = make_mock_device(make_reference_device());
  Memory memory(*device);
  auto queue = device->make_queue();
  ASSERT_TRUE(queue.ok());
  Floats host(64);
  const Tensor on_host = view(host, 4, 8), x = matrix(memory.get<float>(32), 4, 8),
               y = matrix(memory.get<float>(32), 4, 8);
  const auto refused = [&](const Op& op, const std::string& what) {
    const Op plan[] = {Add{x, y, x}, op};
    const Status s = (*queue)->submit(plan);
    EXPECT_FALSE(s.ok()) << what;
    EXPECT_NE(s.message().find(what), std::string::npos) << s.message();
    const auto r = (*queue)->advance(kNoDeadline);
    EXPECT_TRUE(r.ok() && *r != RunState::pending);  // nothing was started
  };
  refused(Add{x, on_host, y}, "op 1: Add: b is not device memory");
  refused(RmsNorm{x, rows(on_host, 0, 1), 1e-5f, y}, "RmsNorm: weight");
  refused(Upload{x.data, y.data, 16}, "Upload: host is device memory");
  refused(Upload{host.data(), host.data(), 16}, "Upload: device is not device memory");
  refused(Download{x.data, y.data, 16}, "Download: host");
  refused(Upload{x.data, host.data(), 129}, "Upload: device reaches past the end");
  refused(Add{matrix(x.data, 5, 8), y, y}, "Add: a reaches past the end");
  refused(CopyRows{x, reinterpret_cast<const int32_t*>(host.data()), y, nullptr, 4}, "CopyRows: src_index");
  refused(Embed{x, reinterpret_cast<const int32_t*>(host.data()), y}, "Embed: ids");
  KvCache cache{x.data, 1, 1, 1, 64, DType::int8, nullptr};  // 128 codes, as many bytes as x has
  refused(KvCopy{cache, nullptr, nullptr, 0}, "KvCopy: cache scales is missing");
  cache.scales = host.data();
  refused(KvCopy{cache, nullptr, nullptr, 0}, "KvCopy: cache scales is not device memory");
  cache.slots = 2;
  refused(KvCopy{cache, nullptr, nullptr, 0}, "KvCopy: cache reaches past the end");
}

// Ops run when the gate is open.
class GatedDevice final : public aerie::test::WrappedDevice {
 public:
  using WrappedDevice::WrappedDevice;
  std::atomic<bool> open{true};

 private:
  class GatedQueue final : public aerie::test::WrappedQueue {
   public:
    GatedQueue(std::unique_ptr<Queue> inner, const std::atomic<bool>* open) : WrappedQueue(std::move(inner)), open_(open) {}
    Result<RunState> advance(Clock::time_point deadline) override {
      while (!*open_) std::this_thread::yield();
      return inner_->advance(deadline);
    }

   private:
    const std::atomic<bool>* open_;
  };
  std::unique_ptr<Queue> wrap(std::unique_ptr<Queue> inner) override { return std::make_unique<GatedQueue>(std::move(inner), &open); }
};

TEST(Mock, RunsBehindTheHostsBack) {
  auto gated = std::make_unique<GatedDevice>(make_reference_device());
  std::atomic<bool>& gate = gated->open;
  auto device = make_mock_device(std::move(gated));
  Memory memory(*device);
  auto queue = device->make_queue();
  ASSERT_TRUE(queue.ok());
  const auto idle = (*queue)->advance(Clock::now());
  EXPECT_TRUE(idle.ok() && *idle == RunState::idle);
  const int64_t n = 300;
  const Floats a = random_floats(static_cast<size_t>(n * n), 1, 0.1f);
  Floats w(a.size()), result(a.size()), want(a.size());
  pack_panel16(a.data(), n, n, DType::f32, (w.resize(static_cast<size_t>(round_up(n, 16) * n)), w.data()), nullptr);
  const Tensor x = matrix(memory.get<float>(n * n), n, n), y = matrix(memory.get<float>(n * n), n, n);
  const Tensor weight{memory.get<float>(static_cast<int64_t>(w.size())), nullptr, n, n, 0, DType::f32, Layout::panel16};
  const Op plan[] = {Upload{x.data, a.data(), n * n * 4},
                     Upload{weight.data, w.data(), static_cast<int64_t>(w.size()) * 4}, Linear{x, weight, {}, {}, y},
                     Download{result.data(), y.data, n * n * 4}};
  gate = false;
  ASSERT_TRUE((*queue)->submit(plan).ok());
  EXPECT_EQ((*queue)->submit(plan).code(), Code::busy);
  const auto polled = (*queue)->advance(Clock::now());
  EXPECT_TRUE(polled.ok() && *polled == RunState::pending);
  gate = true;
  auto done = (*queue)->advance(kNoDeadline);
  EXPECT_TRUE(done.ok() && *done == RunState::done);
  Floats x_host = a;
  Tensor packed = weight;
  packed.data = w.data();
  run_reference(Linear{view(x_host, n, n), packed, {}, {}, view(want, n, n)});
  EXPECT_TRUE(same_bits(result, want));

  std::fill(result.begin(), result.end(), 0.0f);
  ASSERT_TRUE((*queue)->submit(plan).ok());
  (*queue)->abandon();  // afterwards nothing of the plan is touched any more
  const Floats after = result;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_TRUE(same_bits(result, after));
  ASSERT_TRUE((*queue)->submit(plan).ok());  // and the next plan may come
  done = (*queue)->advance(Clock::now() + std::chrono::seconds(60));
  EXPECT_TRUE(done.ok() && *done == RunState::done);
}

}  // namespace aerie::kernels::mock_test

// A target pass of Llama-3.1-8B's shape on the GPU, random weights, and what part of the card's read bandwidth it
// reaches: 1 to 128 rows at one context, as plans of the same ops that a session makes. Prints one JSON object.
//   gpu_bench [bf16|int8|int4]... [--context N] [--layers N]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels/cuda/cuda_device.h"
#include "tests/gpu/probe.h"

namespace {
using namespace aerie;
using namespace aerie::kernels;

constexpr int64_t kHidden = 4096, kFfn = 14336, kVocab = 128256;
constexpr int32_t kHeads = 32, kKvHeads = 8, kDim = 128;

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "gpu_bench: %s\n", what.c_str());
  std::exit(1);
}
void check(const Status& s) {
  if (!s.ok()) fail(s.message());
}

struct Bench {
  std::unique_ptr<Device> device;
  std::unique_ptr<Queue> queue;
  std::vector<void*> owned;
  std::vector<char> noise;  // random bytes that are sensible as weights and scales
  int64_t bytes = 0;        // of weights a pass reads

  Bench() : noise(size_t{64} << 20) {
    auto d = make_cuda_device({});
    check(d.status());
    device = std::move(*d);
    auto q = device->make_queue();
    check(q.status());
    queue = std::move(*q);
    std::mt19937 random(1);
    auto* h = reinterpret_cast<uint16_t*>(noise.data());
    for (size_t i = 0; i < noise.size() / 2; ++i)  // bf16 and half alike: sign, small exponent, mantissa
      h[i] = static_cast<uint16_t>((random() & 0x807f) | 0x3c00);
  }
  ~Bench() {
    queue.reset();
    for (void* p : owned) device->release(p);
  }
  void* memory(int64_t n) {
    void* p = device->allocate(static_cast<size_t>(n));
    if (!p) fail("out of device memory");
    owned.push_back(p);
    return p;
  }
  void fill(void* to, int64_t n) {
    std::vector<Op> plan;
    for (int64_t at = 0; at < n; at += static_cast<int64_t>(noise.size()))
      plan.push_back(Upload{static_cast<char*>(to) + at, noise.data(), std::min<int64_t>(n - at, static_cast<int64_t>(noise.size()))});
    run(plan);
  }
  Tensor weight(DType t, int64_t n, int64_t k) {
    Tensor w{nullptr, nullptr, n, k, 0, t, Layout::panel16};
    const int64_t data = data_bytes(t, Layout::panel16, n, k), scales = scale_bytes(t, n, k);
    fill(w.data = memory(data), data);
    if (scales) fill(w.scales = memory(scales), scales);
    bytes += data + scales;
    return w;
  }
  Tensor f32(int64_t rows, int64_t cols, float value) {
    std::vector<float> v(static_cast<size_t>(rows * cols), value);
    const Tensor t = matrix(memory(rows * cols * 4), rows, cols);
    const std::vector<Op> plan = {Upload{t.data, v.data(), rows * cols * 4}};
    run(plan);
    return t;
  }
  template <class T>
  const T* put(const std::vector<T>& v) {
    void* p = memory(static_cast<int64_t>(v.size() * sizeof(T)));
    const std::vector<Op> plan = {Upload{p, v.data(), static_cast<int64_t>(v.size() * sizeof(T))}};
    run(plan);
    return static_cast<const T*>(p);
  }
  void run(const std::vector<Op>& plan) {
    check(queue->submit(plan));
    const auto r = queue->advance(kNoDeadline);
    check(r.status());
  }
};

struct Timing {
  double us, submit_us;
};
Timing measure(Bench& b, const std::vector<Op>& plan) {
  for (int i = 0; i < 5; ++i) b.run(plan);
  std::vector<double> whole, submit;
  for (int i = 0; i < 41; ++i) {
    const auto t0 = Clock::now();
    check(b.queue->submit(plan));
    const auto t1 = Clock::now();
    check(b.queue->advance(kNoDeadline).status());
    const auto t2 = Clock::now();
    submit.push_back(std::chrono::duration<double, std::micro>(t1 - t0).count());
    whole.push_back(std::chrono::duration<double, std::micro>(t2 - t0).count());
  }
  std::nth_element(whole.begin(), whole.begin() + 20, whole.end());
  std::nth_element(submit.begin(), submit.begin() + 20, submit.end());
  return {whole[20], submit[20]};
}

void bench_type(DType type, const char* name, int64_t layers, int32_t context, double bandwidth, bool first) {
  Bench b;
  struct Layer {
    Tensor qkv, o, gate_up, down;
  };
  std::vector<Layer> w;
  for (int64_t l = 0; l < layers; ++l)
    w.push_back({b.weight(type, (kHeads + 2 * kKvHeads) * kDim, kHidden), b.weight(type, kHidden, kHidden),
                 b.weight(type, 2 * kFfn, kHidden), b.weight(type, kHidden, kFfn)});
  const Tensor head = b.weight(type, kVocab, kHidden), norm = b.f32(1, kHidden, 1.0f), inv_freq = b.f32(1, kDim / 2, 0.01f);
  constexpr int64_t kRows = 128;
  const int32_t pages = (context + 31) / 32;
  KvCache cache{nullptr, (pages + 4) * kPageSlots, static_cast<int32_t>(layers), kKvHeads, kDim, DType::bf16, nullptr};
  const int64_t kv_bytes = int64_t{2} * layers * cache.slots * kKvHeads * kDim * 2;
  b.fill(cache.data = b.memory(kv_bytes), kv_bytes);
  const Tensor x = b.f32(kRows, kHidden, 0.1f), normed = b.f32(kRows, kHidden, 0), attn = b.f32(kRows, kHidden, 0);
  const Tensor qkv = b.f32(kRows, (kHeads + 2 * kKvHeads) * kDim, 0), gate_up = b.f32(kRows, 2 * kFfn, 0), act = b.f32(kRows, kFfn, 0);
  const Tensor angles = b.f32(kRows, kDim, 0), logits = b.f32(kRows, kVocab, 0);
  std::vector<int32_t> page(static_cast<size_t>(pages)), zero(kRows, 0), ones(kRows, 1), ctx(kRows, context - 1), slot(kRows), none(kRows, -1);
  for (int32_t i = 0; i < pages; ++i) page[static_cast<size_t>(i)] = i;
  for (int32_t i = 0; i < kRows; ++i) slot[static_cast<size_t>(i)] = pages * kPageSlots + i;
  const int32_t* slots = b.put(slot);
  const int32_t *none_at = b.put(none), *position = b.put(ctx);
  AttentionRows rows_of{b.put(page), pages, b.put(zero), position, slots, b.put(ones), slots};
  std::vector<int32_t> offsets(kRows);
  for (int32_t i = 0; i < kRows; ++i) offsets[static_cast<size_t>(i)] = i;
  rows_of.tail_offset = b.put(offsets);
  const std::vector<WalkSeq> seq(1);
  const WalkSeq* seqs = b.put(seq);
  void* out = b.memory(walk_out_bytes(8));
  std::vector<char> result(static_cast<size_t>(walk_out_bytes(8)));
  const double floor_us = static_cast<double>(b.bytes) / bandwidth * 1e6;
  std::printf("%s    {\"dtype\": \"%s\", \"layers\": %lld, \"context\": %d, \"weight_bytes\": %lld, \"floor_us\": %.1f, \"passes\": [\n",
              first ? "" : ",\n", name, static_cast<long long>(layers), context, static_cast<long long>(b.bytes), floor_us);
  double one = 0;
  bool comma = false;
  for (const int64_t r : {1, 2, 4, 8, 16, 32, 64, 128}) {
    const auto n = [&](const Tensor& t) { return rows(t, 0, r); };
    std::vector<Op> plan = {RopeAngles{position, inv_freq, 1.0f, n(angles)}};
    for (int64_t l = 0; l < layers; ++l) {
      const Layer& k = w[static_cast<size_t>(l)];
      const auto layer = static_cast<int32_t>(l);
      plan.push_back(RmsNorm{n(x), norm, 1e-5f, n(normed)});
      plan.push_back(Linear{n(normed), k.qkv, {}, {}, n(qkv)});
      plan.push_back(RopeAndStore{n(qkv), n(angles), kHeads, cache, layer, slots});
      plan.push_back(Attention{columns(n(qkv), 0, kHeads * kDim), kHeads, cache, layer, rows_of, 0.088f, n(attn), {}});
      plan.push_back(Linear{n(attn), k.o, {}, n(x), n(x)});
      plan.push_back(RmsNorm{n(x), norm, 1e-5f, n(normed)});
      plan.push_back(Linear{n(normed), k.gate_up, {}, {}, n(gate_up)});
      plan.push_back(GatedActivate{n(gate_up), Activation::silu, n(act)});
      plan.push_back(Linear{n(act), k.down, {}, n(x), n(x)});
    }
    plan.push_back(RmsNorm{n(x), norm, 1e-5f, n(normed)});
    plan.push_back(Linear{n(normed), head, {}, {}, n(logits)});
    plan.push_back(Walk{n(logits), kVocab, position, none_at, none_at, seqs, 1, 8, out});
    plan.push_back(Download{result.data(), out, walk_out_bytes(8)});
    const Timing t = measure(b, plan);
    if (r == 1) one = t.us;
    std::printf("%s      {\"rows\": %lld, \"us\": %.1f, \"submit_us\": %.1f, \"of_bandwidth\": %.3f, \"against_one_row\": %.3f}",
                comma ? ",\n" : "", static_cast<long long>(r), t.us, t.submit_us, floor_us / t.us, t.us / one);
    comma = true;
    std::fprintf(stderr, "%-5s %4lld rows %9.1f us  %5.1f %% of read bandwidth  %.2f x one row  (submit %.1f us)\n", name,
                 static_cast<long long>(r), t.us, 100 * floor_us / t.us, t.us / one, t.submit_us);
  }
  std::printf("\n    ]}");
}

}  // namespace

int main(int argc, char** argv) {
  int64_t layers = 32;
  int32_t context = 512;
  std::vector<std::string> types;
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--context") && i + 1 < argc) context = std::atoi(argv[++i]);
    else if (!std::strcmp(argv[i], "--layers") && i + 1 < argc) layers = std::atoi(argv[++i]);
    else types.push_back(argv[i]);
  }
  if (context < 1 || context > 1 << 20 || layers < 1 || layers > 200) fail("--context or --layers out of range");
  if (types.empty()) types = {"bf16", "int8", "int4"};
  if (const auto d = make_cuda_device({}); !d.ok()) fail(d.status().message());
  const double bandwidth = aerie::gpu_bench::read_bandwidth();
  if (!(bandwidth > 0)) fail("the read bandwidth could not be measured");
  std::fprintf(stderr, "%s: %.0f GB/s read\n", aerie::gpu_bench::describe().c_str(), bandwidth * 1e-9);
  std::printf("{\n  \"device\": \"%s\",\n  \"read_bandwidth\": %.4g,\n  \"targets\": [\n", aerie::gpu_bench::describe().c_str(), bandwidth);
  for (size_t i = 0; i < types.size(); ++i) {
    const DType t = types[i] == "bf16" ? DType::bf16 : types[i] == "int8" ? DType::int8 : DType::int4;
    if (t == DType::int4 && types[i] != "int4") fail("there are bf16, int8 and int4, not " + types[i]);
    bench_type(t, types[i].c_str(), layers, context, bandwidth, i == 0);
  }
  std::printf("\n  ]\n}\n");
  return 0;
}

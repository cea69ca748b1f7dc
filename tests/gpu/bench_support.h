// What the GPU benchmarks share: device memory with random contents, plans that are timed.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "kernels/cuda/cuda_device.h"

namespace aerie::gpu_bench {

using namespace aerie::kernels;

[[noreturn]] inline void fail(const std::string& what) {
  std::fprintf(stderr, "gpu_bench: %s\n", what.c_str());
  std::exit(1);
}
inline void check(const Status& s) {
  if (!s.ok()) fail(s.message());
}

struct Shape {
  int64_t hidden = 4096, ffn = 14336, vocab = 128256, layers = 32;
  int32_t heads = 32, kv_heads = 8, dim = 128;
  int64_t qkv() const { return int64_t{heads + 2 * kv_heads} * dim; }
};

struct Timing {
  double us, submit_us;  // medians
  double first_us, graph_us;  // of the first run, and of the one that makes a graph
};

class Bench {
 public:
  int64_t bytes = 0;  // of weights made so far

  Bench() : noise_(size_t{64} << 20) {
    use({});
    std::mt19937 random(1);
    auto* h = reinterpret_cast<uint16_t*>(noise_.data());
    for (size_t i = 0; i < noise_.size() / 2; ++i)  // bf16 and half alike: sign, small exponent, mantissa; no byte is E4M3's NaN
      h[i] = static_cast<uint16_t>((random() & 0x807b) | 0x3c00);
  }
  ~Bench() {
    queue_.reset();
    for (void* p : owned_) device_->release(p);
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  // What runs from here on runs so; memory stays.
  void use(const CudaOptions& options) {
    auto d = make_cuda_device(options);
    check(d.status());
    auto q = (*d)->make_queue();
    check(q.status());
    queue_ = std::move(*q);
    device_ = std::move(*d);
  }

  // Linear by cuBLASLt, as `--prefill fast` has it: with what weights and rows take to become its matrices.
  Status load_fast_linear() { return device_->load_fast_linear(); }

  void* memory(int64_t n) {
    void* p = device_->allocate(static_cast<size_t>(n));
    if (!p) fail("out of device memory");
    owned_.push_back(p);
    return p;
  }
  void fill(void* to, int64_t n) {
    const auto size = static_cast<int64_t>(noise_.size());
    std::vector<Op> plan;
    for (int64_t at = 0; at < n; at += size)
      plan.push_back(Upload{static_cast<char*>(to) + at, noise_.data(), std::min<int64_t>(n - at, size)});
    run(plan);
  }
  Tensor weight(DType t, int64_t n, int64_t k) {
    Tensor w{nullptr, nullptr, n, k, 0, t, Layout::panel16};
    const int64_t data = data_bytes(t, Layout::panel16, n, k), scales = scale_bytes(t, n, k);
    fill(w.data = memory(data), data);
    if (t == DType::mxfp4) w.scales = const_cast<char*>(put(std::vector<char>(static_cast<size_t>(scales), 120)));  // 2^-7; some of the noise's are no halves
    else if (scales) fill(w.scales = memory(scales), scales);
    bytes += data + scales;
    return w;
  }
  Tensor f32(int64_t rows, int64_t cols, float value) {
    const std::vector<float> v(static_cast<size_t>(rows * cols), value);
    return matrix(const_cast<float*>(put(v)), rows, cols);
  }
  template <class T>
  const T* put(const std::vector<T>& v) {
    const auto n = static_cast<int64_t>(v.size() * sizeof(T));
    void* p = memory(n);
    run({Upload{p, v.data(), n}});
    return static_cast<const T*>(p);
  }
  void run(const std::vector<Op>& plan) {
    check(queue_->submit(plan));
    check(queue_->advance(kNoDeadline).status());
  }
  // After `warm` runs: the first loads kernels, the second captures a graph.
  Timing time(const std::vector<Op>& plan, int samples) {
    std::vector<double> whole, submit, before;
    const int warm = samples > 1 ? 5 : 2;  // the first, and the one that makes a graph
    for (int i = 0; i < warm; ++i) {
      const auto t0 = Clock::now();
      run(plan);
      before.push_back(std::chrono::duration<double, std::micro>(Clock::now() - t0).count());
    }
    for (int i = 0; i < samples; ++i) {
      const auto t0 = Clock::now();
      check(queue_->submit(plan));
      const auto t1 = Clock::now();
      check(queue_->advance(kNoDeadline).status());
      const auto t2 = Clock::now();
      submit.push_back(std::chrono::duration<double, std::micro>(t1 - t0).count());
      whole.push_back(std::chrono::duration<double, std::micro>(t2 - t0).count());
    }
    std::sort(whole.begin(), whole.end());
    std::sort(submit.begin(), submit.end());
    return {whole[whole.size() / 2], submit[submit.size() / 2], before.at(0), before.at(1)};
  }

 private:
  std::unique_ptr<Device> device_;
  std::unique_ptr<Queue> queue_;
  std::vector<void*> owned_;
  std::vector<char> noise_;  // random bytes that are sensible as weights and scales
};

}  // namespace aerie::gpu_bench

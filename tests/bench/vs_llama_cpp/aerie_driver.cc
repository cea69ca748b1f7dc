// aerie_driver MODEL.aerie THREADS CONTEXT [f32|bf16]: the target's passes, timed on command (protocol.h). The last
// argument is the type of the KV cache. A pass is a verify pass: the context's newest token and tree rows behind it.
#include <algorithm>

#include "core/model/model.h"
#include "core/session/session.h"
#include "kernels/cpu/cpu_device.h"
#include "protocol.h"
#include "tests/bench/kv_format.h"

namespace {

using namespace aerie;

constexpr int kMaxRows = 512;

void check(const Status& s) {
  if (!s.ok()) bench::fail(s.message());
}

template <class T>
T take(Result<T> r) {
  check(r.status());
  return std::move(r).value();
}

class Engine {
 public:
  Engine(const char* path, int threads, int64_t context, kernels::DType kv) : context_(context) {
    if (threads < 1 || context < 2) bench::fail("THREADS must be at least 1, CONTEXT 2");
    kernels::CpuOptions cpu;
    cpu.threads = threads;
    device_ = take(kernels::make_cpu_device(cpu));
    ModelOptions options;
    options.kv_positions = context + 2 * kMaxRows;
    options.kv_dtype = kv;
    model_ = take(Model::open(device_, take(Package::open(path)), options));
    plan_ = take(Plan::create(device_, 1 << 20));
    queue_ = take(device_->make_queue());
    kv_ = std::make_unique<KvSequence>(model_->pool(), std::max<int64_t>(context, kMaxRows), kMaxTreeRows);
    check(kv_->reserve(std::max<int64_t>(context, kMaxRows)));
  }
  const char* isa() const { return device_->isa(); }

  double time_pass(int n) {
    if (n > kMaxTreeRows) bench::fail("too many rows");
    pass(1);  // as in a loop: threads awake, caches full of this engine's weights
    return pass(n);
  }
  double time_prefill(int n) {
    const double ms = prefill(n);
    prefill(context_);
    return ms;
  }
  std::vector<float> logits(const std::vector<int32_t>& ids) {
    begin();
    RowsBuilder rows;
    rows.sequence(*kv_);
    for (size_t i = 0; i < ids.size(); ++i) rows.plain(ids[i], static_cast<int64_t>(i));
    plan_->clear();
    const kernels::Tensor out = model_->logits(*plan_, model_->forward(*plan_, rows.stage(*plan_), {}, {}));
    run();
    std::vector<float> copy;
    for (int64_t r = 0; r < out.rows; ++r) {
      const float* row = static_cast<const float*>(out.data) + r * out.stride;  // (vocab)
      copy.insert(copy.end(), row, row + out.cols);
    }
    prefill(context_);
    return copy;
  }

 private:
  void begin() { kv_->state().rewind(0); }  // of recurrent layers: the next pass is of a text's first rows
  int32_t token(int64_t position) const { return bench::token(position, model_->config().vocab_size); }
  void run() {
    check(plan_->submit(*queue_));
    if (take(queue_->advance(kernels::kNoDeadline)) != kernels::RunState::done) bench::fail("a pass did not finish");
  }
  // Recording is part of a pass, as it is of a step.
  double pass(int n) {
    const auto start = bench::Clock::now();
    plan_->clear();
    RowsBuilder rows;
    rows.sequence(*kv_);
    rows.plain(token(context_ - 1), context_ - 1);
    for (int32_t r = 1; r < n; ++r) {
      const int32_t slot = kv_->scratch_slot(r - 1);
      rows.tree(token(context_ + r - 1), context_, {&slot, 1});
    }
    model_->logits(*plan_, model_->forward(*plan_, rows.stage(*plan_), {}, {}));
    run();
    return bench::ms_since(start);
  }
  // In the session's chunks.
  double prefill(int64_t n) {
    if (n > std::max<int64_t>(context_, kMaxRows)) bench::fail("too many rows");
    begin();
    const auto start = bench::Clock::now();
    const int64_t rows_each = prefill_rows(*model_, n);
    for (int64_t first = 0; first < n; first += rows_each) {
      const int64_t end = std::min<int64_t>(first + rows_each, n);
      RowsBuilder rows;
      rows.sequence(*kv_);
      for (int64_t i = first; i < end; ++i) rows.plain(token(i), i);
      plan_->clear();
      kernels::Tensor last = model_->forward(*plan_, rows.stage(*plan_), {}, {});
      if (end == n) {
        last.data = static_cast<float*>(last.data) + (last.rows - 1) * last.stride;
        last.rows = 1;
        model_->logits(*plan_, last);
      }
      run();
      kv_->state().advance(end);
      check(kv_->state().reserve());
    }
    return bench::ms_since(start);
  }

  int64_t context_;
  std::shared_ptr<kernels::Device> device_;
  std::shared_ptr<Model> model_;
  std::unique_ptr<Plan> plan_;
  std::unique_ptr<kernels::Queue> queue_;
  std::unique_ptr<KvSequence> kv_;
};

}  // namespace

int main(int argc, char** argv) {
  const std::string kv = argc > 4 ? argv[4] : "f32";
  const auto type = kv_format(kv);
  if (argc < 4 || argc > 5 || !type)
    bench::fail(std::string("usage: aerie_driver MODEL.aerie THREADS CONTEXT [") + kKvFormats + "]");
  const auto start = bench::Clock::now();
  Engine engine(argv[1], std::atoi(argv[2]), std::atoi(argv[3]), *type);
  const double open_ms = bench::ms_since(start);
  bench::serve(engine, std::string("\"features\": \"") + engine.isa() + ", KV " + kv + "\"", open_ms);
}

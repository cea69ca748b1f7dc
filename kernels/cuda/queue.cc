#include "kernels/cuda/queue.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "kernels/cuda/enqueue.h"

namespace aerie::kernels::cuda {
namespace {

constexpr size_t kStagedMost = size_t{4} << 20;  // bytes of one copy; larger ones are rare, and waited for
constexpr size_t kNotStaged = static_cast<size_t>(-1);
constexpr size_t kMostKnown = 256;

size_t rounded(size_t n, size_t to) { return (n + to - 1) / to * to; }

// Bytes between host and device, 0 for an op that computes.
template <class O>
size_t copied(const O& op) {
  if constexpr (std::is_same_v<O, Upload> || std::is_same_v<O, Download>)
    return op.bytes > 0 ? static_cast<size_t>(op.bytes) : 0;
  return 0;
}

}  // namespace

Result<std::unique_ptr<Queue>> CudaQueue::make(DeviceState& device) {
  if (device.lost) return error(Code::device, "cuda: the device has failed before");
  AERIE_TRY(gpu::attach(device.index));
  std::unique_ptr<CudaQueue> q(new CudaQueue(device));
  AERIE_ASSIGN(q->stream_, gpu::make_stream());
  AERIE_ASSIGN(q->done_, gpu::make_event());
  return std::unique_ptr<Queue>(std::move(q));
}

CudaQueue::~CudaQueue() {
  (void)gpu::attach(device_.index);
  abandon();
  forget_graphs();
  if (done_) gpu::destroy(done_);
  if (stream_) gpu::destroy(stream_);
  if (workspace_) gpu::release(workspace_);
  if (staging_) gpu::release_pinned(staging_);
}

void CudaQueue::forget_graphs() {
  for (auto& [signature, known] : known_)
    if (known.graph) gpu::destroy(known.graph);
  known_.clear();
}

// Only between plans.
Status CudaQueue::grow(size_t workspace, size_t staging) {
  if (workspace <= workspace_size_ && staging <= staging_size_) return {};
  forget_graphs();  // they hold the old addresses
  if (workspace > workspace_size_) {
    if (workspace_) gpu::release(workspace_);
    workspace_size_ = 0;
    workspace = rounded(workspace + workspace / 4, size_t{1} << 20);
    workspace_ = static_cast<char*>(gpu::allocate(workspace));
    if (!workspace_)
      return error(Code::out_of_memory, "cuda: working memory of " + std::to_string(workspace) + " bytes");
    workspace_size_ = workspace;
  }
  if (staging > staging_size_) {
    if (staging_) gpu::release_pinned(staging_);
    staging_size_ = 0;
    staging = rounded(staging + staging / 4, size_t{64} << 10);
    staging_ = static_cast<char*>(gpu::allocate_pinned(staging));
    if (!staging_) return error(Code::out_of_memory, "cuda: pinned memory of " + std::to_string(staging) + " bytes");
    staging_size_ = staging;
  }
  return {};
}

// Checks the plan, makes room for it and takes what it uploads.
Status CudaQueue::prepare(std::span<const Op> ops) {
  size_t need = 0, staging = 0;
  direct_ = false;
  signature_.clear();
  staged_.clear();
  for (size_t i = 0; i < ops.size(); ++i) {
    const char* why = nullptr;
    size_t bytes = 0;
    std::visit(
        [&](const auto& op) {
          using O = std::decay_t<decltype(op)>;
          bytes = copied(op);
          why = refuse<O>(op);
          if (!why) need = std::max(need, workspace<O>(op));
        },
        ops[i]);
    if (why) return error(Code::unsupported, "cuda: op " + std::to_string(i) + ": " + why);
    direct_ = direct_ || bytes > kStagedMost;
    staged_.push_back(bytes > kStagedMost ? kNotStaged : staging);
    if (bytes <= kStagedMost) staging += rounded(bytes, 64);
    if (device_.graphs) signature_.add(ops[i]);
  }
  AERIE_TRY(grow(need, staging));
  ops_ = ops;
  for (size_t i = 0; i < ops.size(); ++i)
    if (const auto* up = std::get_if<Upload>(&ops[i]); up && up->bytes > 0 && staged_[i] != kNotStaged)
      std::memcpy(staging_ + staged_[i], up->host, static_cast<size_t>(up->bytes));
  return {};
}

Status CudaQueue::put_on_stream() {
  const Place place{stream_, workspace_};
  for (size_t i = 0; i < ops_.size(); ++i) {
    if (const auto* up = std::get_if<Upload>(&ops_[i])) {
      if (up->bytes <= 0) continue;
      const void* from = staged_[i] == kNotStaged ? up->host : staging_ + staged_[i];
      AERIE_TRY(gpu::copy_to_device(up->device, from, static_cast<size_t>(up->bytes), stream_));
    } else if (const auto* down = std::get_if<Download>(&ops_[i])) {
      if (down->bytes <= 0) continue;
      void* to = staged_[i] == kNotStaged ? down->host : staging_ + staged_[i];
      AERIE_TRY(gpu::copy_to_host(to, down->device, static_cast<size_t>(down->bytes), stream_));
    } else {
      std::visit(
          [&](const auto& op) {
            using O = std::decay_t<decltype(op)>;
            if constexpr (!std::is_same_v<O, Upload> && !std::is_same_v<O, Download>) enqueue(op, place);
          },
          ops_[i]);
    }
  }
  return gpu::launched();
}

Status CudaQueue::replay(gpu::Graph* graph) {
  if (!*graph) {
    AERIE_TRY(gpu::begin_capture(stream_));
    const Status put = put_on_stream();
    Result<gpu::Graph> made = gpu::end_capture(stream_);  // also ends a capture that failed
    AERIE_TRY(put);
    if (!made.ok()) return made.status();
    *graph = *made;
  }
  return gpu::run(*graph, stream_);
}

// A plan seen before is worth a graph: most are the same cycle after cycle.
Status CudaQueue::start() {
  if (!device_.graphs || direct_ || ops_.size() < 4) return put_on_stream();
  const auto [it, is_new] = known_.try_emplace(signature_.bytes());
  it->second.last = ++uses_;
  if (!is_new) return replay(&it->second.graph);
  if (known_.size() > kMostKnown) {
    const auto oldest = std::min_element(known_.begin(), known_.end(), [](const auto& a, const auto& b) {
      return a.second.last < b.second.last;
    });
    if (oldest->second.graph) gpu::destroy(oldest->second.graph);
    known_.erase(oldest);
  }
  return put_on_stream();
}

Status CudaQueue::submit(std::span<const Op> ops) {
  if (state_ == RunState::pending) return error(Code::busy, "cuda queue: a plan is running");
  if (device_.lost) return error(Code::device, "cuda: the device has failed before");
  AERIE_TRY(device_.check(gpu::attach(device_.index)));
  AERIE_TRY(device_.check(prepare(ops)));
  Status s = start();
  if (s.ok()) s = gpu::record(done_, stream_);
  if (!s.ok()) {
    (void)gpu::wait(stream_);  // what has begun uses the caller's memory
    return device_.check(std::move(s));
  }
  state_ = RunState::pending;
  return {};
}

void CudaQueue::take_downloads() {
  for (size_t i = 0; i < ops_.size(); ++i)
    if (const auto* down = std::get_if<Download>(&ops_[i]); down && down->bytes > 0 && staged_[i] != kNotStaged)
      std::memcpy(down->host, staging_ + staged_[i], static_cast<size_t>(down->bytes));
}

Result<RunState> CudaQueue::advance(Clock::time_point deadline) {
  if (state_ != RunState::pending) return state_;
  Status s = device_.check(gpu::attach(device_.index));
  bool done = false;
  if (s.ok() && deadline == kNoDeadline) {
    s = gpu::wait(done_);
    done = true;
  }
  while (s.ok() && !done) {
    Result<bool> r = gpu::reached(done_);
    if (!r.ok()) {
      s = r.status();
      break;
    }
    done = *r;
    if (done || Clock::now() >= deadline) break;
    std::this_thread::yield();
  }
  if (!s.ok()) {
    state_ = RunState::idle;
    return device_.check(std::move(s));
  }
  if (!done) return state_;
  take_downloads();
  return state_ = RunState::done;
}

void CudaQueue::abandon() {
  if (state_ == RunState::pending) (void)device_.check(gpu::wait(stream_));
  state_ = RunState::idle;
}

}  // namespace aerie::kernels::cuda

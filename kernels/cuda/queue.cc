#include "kernels/cuda/queue.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <thread>

#include "kernels/cuda/enqueue.h"

namespace aerie::kernels::cuda {
namespace {

// Bytes that are staged of one copy, and of all in a plan; what is more is rare, and waited for.
constexpr size_t kStagedMost = size_t{4} << 20, kAllStagedMost = size_t{8} << 20;
constexpr size_t kLeastUploads = 4096, kLeastLaunches = 3;
constexpr size_t kLeastWorkspace = size_t{1} << 20, kLeastStaged = size_t{256} << 10;
constexpr size_t kNotStaged = static_cast<size_t>(-1);

size_t rounded(size_t n, size_t to) { return (n + to - 1) / to * to; }

// Bytes between host and device, 0 for an op that computes.
template <class O>
size_t copied(const O& op) {
  if constexpr (std::is_same_v<O, Upload> || std::is_same_v<O, Download>)
    return op.bytes > 0 ? static_cast<size_t>(op.bytes) : 0;
  return 0;
}

}  // namespace

Status Room::grow(size_t bytes, const char* what) {
  clear();
  for (const size_t size : {std::bit_ceil(bytes), bytes}) {
    const Result<void*> memory = take_(size);
    if (memory.ok()) {
      at_ = static_cast<char*>(*memory);
      size_ = size;
      return {};
    }
    if (size == bytes || memory.status().code() != Code::out_of_memory)
      return memory.status().at(std::to_string(size) + " bytes for " + what);
  }
  return {};
}

void Room::clear() {
  if (at_) give_back_(std::exchange(at_, nullptr));
  size_ = 0;
}

Result<std::unique_ptr<Queue>> CudaQueue::make(DeviceState& device) {
  if (device.lost) return error(Code::device, "cuda: the device has failed before");
  AERIE_TRY(gpu::attach(device.options.device));
  std::unique_ptr<CudaQueue> q(new CudaQueue(device));
  AERIE_ASSIGN(q->stream_, gpu::make_stream());
  AERIE_ASSIGN(q->done_, gpu::make_event());
  return std::unique_ptr<Queue>(std::move(q));
}

CudaQueue::~CudaQueue() {
  (void)gpu::attach(device_.options.device);
  abandon();
  graphs_.forget();
  if (done_) gpu::destroy(done_);
  if (stream_) gpu::destroy(stream_);
}

struct CudaQueue::Sizes {
  size_t workspace = 0, rows = 0, uploads = 0, arguments = 0, downloads = 0;
  size_t arriving() const { return uploads + arguments; }
  size_t all() const { return arriving() + downloads; }
};

// Checks the plan, and where its copies go: uploads from 0 on, downloads for now too.
Result<CudaQueue::Sizes> CudaQueue::measure(std::span<const Op> ops) {
  Sizes sizes;
  staged_.clear();
  for (size_t i = 0; i < ops.size(); ++i) {
    const char* why = nullptr;
    size_t bytes = 0;
    std::visit(
        [&](const auto& op) {
          using O = std::decay_t<decltype(op)>;
          bytes = copied(op);
          why = refuse<O>(op);
          if (why) return;
          sizes.workspace = std::max(sizes.workspace, workspace<O>(op));
          sizes.rows = std::max(sizes.rows, rounded(rows_space<O>(op), 256));
        },
        ops[i]);
    if (why) return error(Code::unsupported, "cuda: op " + std::to_string(i) + ": " + why);
    size_t& used = std::holds_alternative<Download>(ops[i]) ? sizes.downloads : sizes.uploads;
    const bool staged = bytes == 0 || (bytes <= kStagedMost && sizes.uploads + sizes.downloads + bytes <= kAllStagedMost);
    staged_.push_back(staged ? used : kNotStaged);
    if (!staged) continue;
    used += rounded(bytes, 64);
    sizes.arguments += Launches::kMostBytes;
  }
  // Arguments begin where they would for somewhat more or less to upload: the same graph.
  sizes.uploads = std::bit_ceil(std::max(sizes.uploads, kLeastUploads));
  return sizes;
}

// Only between plans.
Status CudaQueue::grow(const Sizes& sizes) {
  const size_t working = sizes.rows + sizes.workspace;
  if (!workspace_.holds(working)) AERIE_TRY(workspace_.grow(std::max(working, kLeastWorkspace), "working memory"));
  if (pinned_.holds(sizes.all()) && arrived_.holds(sizes.arriving())) return {};
  graphs_.forget();  // they copy from and to the old addresses
  if (!pinned_.holds(sizes.all())) AERIE_TRY(pinned_.grow(std::max(sizes.all(), kLeastStaged), "what a plan uploads and downloads"));
  if (!arrived_.holds(sizes.arriving())) AERIE_TRY(arrived_.grow(std::max(sizes.arriving(), kLeastStaged), "what a plan uploads"));
  return {};
}

// Turns the plan into launches, with all that they read in pinned memory.
Status CudaQueue::prepare(std::span<const Op> ops) {
  AERIE_ASSIGN(const Sizes sizes, measure(ops));
  AERIE_TRY(grow(sizes));
  ops_ = ops;
  arguments_at_ = sizes.uploads;
  launches_.begin(pinned_.at() + arguments_at_, sizes.arguments);
  Chain chain;
  const Place place{&launches_, workspace_.at() + sizes.rows, workspace_.at(), &chain, device_.options, device_.most_shared};
  size_t if_ends = 0;
  for (size_t i = 0; i < ops.size(); i += 1 + chain.taken) {
    chain.behind = ops.subspan(i + 1, (i < if_ends ? std::min(if_ends, ops.size()) : ops.size()) - i - 1);
    chain.taken = 0;
    chain.fragments = std::exchange(chain.leaves_fragments, false);
    const size_t between = launches_.between().size();
    const bool copy = std::holds_alternative<Upload>(ops[i]) || std::holds_alternative<Download>(ops[i]);
    if (i == if_ends) launches_.run_if(nullptr);
    if (const auto* run_if = std::get_if<RunIf>(&ops[i])) if_ends = i + 1 + static_cast<size_t>(run_if->ops);
    if (staged_[i] == kNotStaged) {
      launches_.copy(i);
    } else if (const auto* up = std::get_if<Upload>(&ops[i])) {
      if (up->bytes <= 0) continue;
      std::memcpy(pinned_.at() + staged_[i], up->host, static_cast<size_t>(up->bytes));
      enqueue(Transfer{up->device, arrived_.at() + staged_[i], up->bytes}, place);
    } else if (const auto* down = std::get_if<Download>(&ops[i])) {
      staged_[i] += sizes.arriving();
      enqueue(Transfer{pinned_.at() + staged_[i], down->device, down->bytes}, place);
    } else {
      std::visit(
          [&](const auto& op) {
            using O = std::decay_t<decltype(op)>;
            if constexpr (!std::is_same_v<O, Upload> && !std::is_same_v<O, Download>) enqueue(op, place);
          },
          ops[i]);
    }
    // Only kernels ask whether they are wanted.
    if (launches_.wanted() && (copy || launches_.between().size() > between))
      return error(Code::unsupported, "cuda: op " + std::to_string(i) + ": a copy or a library's product within RunIf");
  }
  return launches_.fit() ? Status() : error(Code::internal, "cuda: a plan's arguments find no room");
}

Status CudaQueue::put_on_stream() {
  if (launches_.all().empty() && launches_.between().empty()) return {};
  AERIE_TRY(gpu::copy_to_device(arrived_.at(), pinned_.at(), arguments_at_ + launches_.bytes(), stream_));
  const char* const arguments = arrived_.at() + arguments_at_;
  size_t n = 0;
  const auto launch_to = [&](size_t end) -> Status {
    // Not the first: what is in front of it is no kernel.
    for (bool early = false; n < end; ++n, early = device_.options.early)
      AERIE_TRY(gpu::launch(launches_.all()[n], arguments + launches_.all()[n].argument, stream_, early, device_.options.all_shared));
    return {};
  };
  for (const Between& between : launches_.between()) {
    AERIE_TRY(launch_to(between.before));
    AERIE_TRY(put(between));
  }
  return launch_to(launches_.all().size());
}

// A copy too large for the queue's memory, or a library's product.
Status CudaQueue::put(const Between& between) {
  if (between.copy == Between::kNoCopy) return gpu::multiply(between.product, stream_);
  if (const auto* up = std::get_if<Upload>(&ops_[between.copy]))
    return gpu::copy_to_device(up->device, up->host, static_cast<size_t>(up->bytes), stream_);
  const auto* down = std::get_if<Download>(&ops_[between.copy]);
  return gpu::copy_to_host(down->host, down->device, static_cast<size_t>(down->bytes), stream_);
}

// A plan seen before is worth a graph: most are the same cycle after cycle.
Status CudaQueue::start() {
  if (!device_.options.graphs || !launches_.between().empty() || launches_.all().size() < kLeastLaunches) return put_on_stream();
  AERIE_ASSIGN(const bool ran, graphs_.run(launches_.all(), arguments_at_, stream_, [this] { return put_on_stream(); }));
  return ran ? Status() : put_on_stream();
}

Status CudaQueue::submit(std::span<const Op> ops) {
  if (state_ == RunState::pending) return error(Code::busy, "cuda queue: a plan is running");
  if (device_.lost) return error(Code::device, "cuda: the device has failed before");
  AERIE_TRY(device_.check(gpu::attach(device_.options.device)));
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
      std::memcpy(down->host, pinned_.at() + staged_[i], static_cast<size_t>(down->bytes));
}

Result<RunState> CudaQueue::advance(Clock::time_point deadline) {
  if (state_ != RunState::pending) return state_;
  Status s = device_.check(gpu::attach(device_.options.device));
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

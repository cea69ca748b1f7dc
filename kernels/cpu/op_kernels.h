// The CPU kernels as the executor sees them: every op is a number of independent tasks. A task's
// result does not depend on which thread runs it, on the other tasks, or on how many there are.
#pragma once

#include <cstdint>

#include "kernels/noise.h"
#include "kernels/ops.h"

namespace aerie::kernels::cpu {

// Per-thread working memory; grows to the largest request, so a warmed-up cycle allocates nothing. Nothing is destroyed
// with it: whoever owns the thread's calls release().
class Scratch {
 public:
  constexpr Scratch() = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  void release();
  void* get(size_t bytes);  // 64-byte aligned; valid until the next get

  // What tasks of one op have in common may be worked out once per thread. The executor names the run
  // of an op that the next tasks belong to (0: unknown); kept() is the memory of the last get, if
  // keep() was called on it in the same run.
  // `shared`: what all threads made for this run before its first task (below), or null.
  void enter(uint64_t run, void* shared = nullptr) { run_ = run, shared_ = shared; }
  void* shared() const { return shared_; }
  void keep() { kept_ = run_; }
  void forget() { kept_ = 0; }  // tasks of one op that have less in common
  void* kept() const { return run_ != 0 && kept_ == run_ ? memory_ : nullptr; }

 private:
  void* memory_ = nullptr;
  size_t size_ = 0;
  uint64_t run_ = 0;
  uint64_t kept_ = 0;
  void* shared_ = nullptr;
};

// Some ops begin with what all tasks read, and where it takes long the threads make it together, in memory of so many bytes (0:
// not worth it) and in so many parts, before any task: Scratch::shared.
int64_t shared_bytes(const Linear&, int threads);
constexpr int64_t shared_bytes(const auto&, int) { return 0; }
int32_t shared_parts(const Linear&, int threads);
constexpr int32_t shared_parts(const auto&, int) { return 0; }
void make_shared(const Linear&, int32_t part, int threads, void* shared);
inline void make_shared(const auto&, int32_t, int, void*) {}

// tasks(op, threads): how many tasks `op` is cut into (>= 0). run(op, task, scratch): do one.
// kernels/cpu/linear*.cc
int32_t tasks(const Linear&, int threads);
void run(const Linear&, int32_t task, int threads, Scratch&);
// kernels/cpu/rows.cc: row-wise ops (memory movement, norms, activations)
int32_t tasks(const Upload&, int threads);
int32_t tasks(const Download&, int threads);
int32_t tasks(const Timestamp&, int threads);
constexpr int32_t tasks(const RunIf&, int) { return 0; }  // the executor's affair
int32_t tasks(const CopyRows&, int threads);
int32_t tasks(const Embed&, int threads);
int32_t tasks(const RmsNorm&, int threads);
int32_t tasks(const Activate&, int threads);
int32_t tasks(const GatedActivate&, int threads);
int32_t tasks(const Add&, int threads);
int32_t tasks(const SoftCap&, int threads);
void run(const Upload&, int32_t task, int threads, Scratch&);
void run(const Download&, int32_t task, int threads, Scratch&);
void run(const Timestamp&, int32_t task, int threads, Scratch&);
inline void run(const RunIf&, int32_t, int, Scratch&) {}
void run(const CopyRows&, int32_t task, int threads, Scratch&);
void run(const Embed&, int32_t task, int threads, Scratch&);
void run(const RmsNorm&, int32_t task, int threads, Scratch&);
void run(const Activate&, int32_t task, int threads, Scratch&);
void run(const GatedActivate&, int32_t task, int threads, Scratch&);
void run(const Add&, int32_t task, int threads, Scratch&);
void run(const SoftCap&, int32_t task, int threads, Scratch&);
// kernels/cpu/experts.cc
int32_t tasks(const Route&, int threads);
int32_t tasks(const ExpertLinear&, int threads);
int32_t tasks(const CombineExperts&, int threads);
void run(const Route&, int32_t task, int threads, Scratch&);
void run(const ExpertLinear&, int32_t task, int threads, Scratch&);
void run(const CombineExperts&, int32_t task, int threads, Scratch&);
// kernels/cpu/delta.cc
int32_t tasks(const ShortConv&, int threads);
int32_t tasks(const DeltaGates&, int threads);
int32_t tasks(const DeltaRule&, int threads);
int32_t tasks(const KeepLast&, int threads);
void run(const ShortConv&, int32_t task, int threads, Scratch&);
void run(const DeltaGates&, int32_t task, int threads, Scratch&);
void run(const DeltaRule&, int32_t task, int threads, Scratch&);
void run(const KeepLast&, int32_t task, int threads, Scratch&);
// kernels/cpu/attention.cc
int32_t tasks(const RopeAngles&, int threads);
int32_t tasks(const RopeAndStore&, int threads);
int32_t tasks(const Attention&, int threads);
int32_t tasks(const AttentionMerge&, int threads);
int32_t tasks(const KvCopy&, int threads);
void run(const RopeAngles&, int32_t task, int threads, Scratch&);
void run(const RopeAndStore&, int32_t task, int threads, Scratch&);
void run(const Attention&, int32_t task, int threads, Scratch&);
void run(const AttentionMerge&, int32_t task, int threads, Scratch&);
void run(const KvCopy&, int32_t task, int threads, Scratch&);
// kernels/cpu/draw.cc
int32_t tasks(const TopK&, int threads);
int32_t tasks(const Walk&, int threads);
void run(const TopK&, int32_t task, int threads, Scratch&);
void run(const Walk&, int32_t task, int threads, Scratch&);
// kernels/cpu/tree.cc
int32_t tasks(const ExpandTree&, int threads);
int32_t tasks(const SelectTree&, int threads);
int32_t tasks(const PathSlots&, int threads);
void run(const ExpandTree&, int32_t task, int threads, Scratch&);
void run(const SelectTree&, int32_t task, int threads, Scratch&);
void run(const PathSlots&, int32_t task, int threads, Scratch&);
// kernels/cpu/linear_topk.cc
int32_t tasks(const LinearTopK&, int threads);
int32_t tasks(const MergeTopK&, int threads);
void run(const LinearTopK&, int32_t task, int threads, Scratch&);
void run(const MergeTopK&, int32_t task, int threads, Scratch&);
// About how long the op takes one thread, in nanoseconds, where that may be so little that handing tasks to another
// core takes longer. Ops without: as long as their tasks say.
int64_t estimate(const Linear&);
int64_t estimate(const ExpertLinear&);
int64_t estimate(const Attention&);
constexpr int64_t estimate(const auto&) { return INT64_MAX; }
// Bytes of weights that pass once.
int64_t weights_read(const Linear&);
int64_t weights_read(const ExpertLinear&);
constexpr int64_t weights_read(const auto&) { return 0; }
// What memory gives one core in a nanosecond: 10 to 45 bytes on the machines that there are.
constexpr int64_t kMemoryBytes = 20;
// kernels/cpu/candidates.cc
int32_t tasks(const LinearRows&, int threads);
int32_t tasks(const Rescore&, int threads);
void run(const LinearRows&, int32_t task, int threads, Scratch&);
void run(const Rescore&, int32_t task, int threads, Scratch&);

}  // namespace aerie::kernels::cpu

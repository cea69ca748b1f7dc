// Turning one op of the table into launches. Files beside this one hold a family of ops each.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/cuda/launches.h"
#include "kernels/ops.h"

namespace aerie::kernels::cuda {

// Cuts working memory into 256-byte aligned parts. Without memory it only counts.
class Carve {
 public:
  explicit Carve(char* memory) : memory_(memory) {}
  template <class T>
  T* take(int64_t n) {
    char* p = memory_ ? memory_ + used_ : nullptr;
    used_ += round_up(n * static_cast<int64_t>(sizeof(T)), 256);
    return reinterpret_cast<T*>(p);
  }
  size_t used() const { return static_cast<size_t>(used_); }

 private:
  char* memory_;
  int64_t used_ = 0;
};

// What an op's kernels may do for the ops behind it, and have done (chain.h).
struct Chain {
  std::span<const Op> behind;  // ops that run if this one does
  size_t taken = 0;            // of them this op's kernels do
  bool fragments = false;      // this op's rows are fragments already (Place::rows)
  bool leaves_fragments = false;  // set by it: so are the next one's

  template <class O>
  const O* next(size_t i = 0) const {
    return i < behind.size() ? std::get_if<O>(&behind[i]) : nullptr;
  }
};

// transfer.cu: within plans, between device memory and what the queue's memory holds for the host.
struct Transfer {
  void* to;
  const void* from;
  int64_t bytes;
};
void enqueue(const Transfer&, const Place&);
// clock.cu
void enqueue(const Timestamp&, const Place&);
gpu::Kernel clock_kernel();  // the least of all kernels
inline void enqueue(const RunIf& op, const Place& p) { p.launches->run_if(op.wanted); }  // until the queue says otherwise
// rows.cu
void enqueue(const CopyRows&, const Place&);
void enqueue(const Embed&, const Place&);
void enqueue(const RmsNorm&, const Place&);
void enqueue(const Activate&, const Place&);
void enqueue(const GatedActivate&, const Place&);
void enqueue(const Add&, const Place&);
void enqueue(const SoftCap&, const Place&);
// experts.cu
void enqueue(const Route&, const Place&);
void enqueue(const CombineExperts&, const Place&);
// delta.cu
void enqueue(const ShortConv&, const Place&);
void enqueue(const DeltaGates&, const Place&);
void enqueue(const DeltaRule&, const Place&);
void enqueue(const KeepLast&, const Place&);
// expert_linear.cu
void enqueue(const ExpertLinear&, const Place&);
// rope.cu
void enqueue(const RopeAngles&, const Place&);
void enqueue(const RopeAndStore&, const Place&);
void enqueue(const KvCopy&, const Place&);
// attention.cu
void enqueue(const Attention&, const Place&);
void enqueue(const AttentionMerge&, const Place&);
// linear.cu
void enqueue(const Linear&, const Place&);
void enqueue(const LinearRows&, const Place&);
// topk.cu
void enqueue(const TopK&, const Place&);
void enqueue(const LinearTopK&, const Place&);
void enqueue(const MergeTopK&, const Place&);
// candidates.cu
void enqueue(const Rescore&, const Place&);
// walk.cu
void enqueue(const Walk&, const Place&);
// tree.cu
void enqueue(const ExpandTree&, const Place&);
void enqueue(const SelectTree&, const Place&);
void enqueue(const PathSlots&, const Place&);

// Bytes of working memory.
template <class O>
size_t workspace(const O&) {
  return 0;
}
template <>
size_t workspace(const Attention&);
template <>
size_t workspace(const Linear&);
template <>
size_t workspace(const LinearRows&);
template <>
size_t workspace(const ExpertLinear&);
template <>
size_t workspace(const DeltaRule&);
template <>
size_t workspace(const TopK&);
template <>
size_t workspace(const LinearTopK&);
template <>
size_t workspace(const Walk&);

// Bytes of Place::rows.
template <class O>
size_t rows_space(const O&) {
  return 0;
}
template <>
size_t rows_space(const Linear&);
template <>
size_t rows_space(const LinearRows&);
template <>
size_t rows_space(const LinearTopK&);
template <>
size_t rows_space(const ExpertLinear&);

// Why the backend cannot run an op, null if it can.
template <class O>
const char* refuse(const O&) {
  return nullptr;
}
template <>
const char* refuse(const Route&);
template <>
const char* refuse(const ExpertLinear&);
template <>
const char* refuse(const Attention&);
template <>
const char* refuse(const RopeAndStore&);
template <>
const char* refuse(const TopK&);
template <>
const char* refuse(const LinearTopK&);
template <>
const char* refuse(const MergeTopK&);
template <>
const char* refuse(const Rescore&);
template <>
const char* refuse(const ExpandTree&);
template <>
const char* refuse(const SelectTree&);

}  // namespace aerie::kernels::cuda

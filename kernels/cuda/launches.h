// What a plan is on the device: launches of kernels, which the queue puts on its stream all together.
//
// A kernel reads its one argument from device memory. So launches with the same grids are the same CUDA graph whatever
// rows, addresses and contexts their arguments name; and grids are made for a bucket of rows, blocks beyond the rows there
// are end at once.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/gpu.h"

namespace aerie::kernels::cuda {

// Rows (pages, sequences, ...) that a grid is made for: powers of two.
inline int64_t bucket(int64_t n) { return n <= 0 ? 0 : static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n))); }
// The same in y, which has 16 bits: kernels go round.
inline int64_t many_rows(int64_t n) { return std::min<int64_t>(bucket(n), 65535); }

// What the host puts on the stream itself, before the launch of number `before`. A graph has none of it.
struct Between {
  size_t before;
  size_t copy;           // of that op, or
  gpu::Product product;  // where that is kNoCopy
  static constexpr size_t kNoCopy = static_cast<size_t>(-1);
};

// The launches of one plan, in order. Their arguments lie behind one another in memory of the queue.
class Launches {
 public:
  static constexpr size_t kMostBytes = 2048;  // of an op's arguments
  void begin(char* arguments, size_t room) {
    all_.clear();
    between_.clear();
    wanted_ = nullptr;
    arguments_ = arguments;
    room_ = room;
    used_ = 0;
  }
  void add(gpu::Launch launch, const void* argument, size_t bytes) {
    launch.argument = static_cast<uint32_t>(used_);
    if (used_ + bytes <= room_) std::memcpy(arguments_ + used_, argument, bytes);
    used_ += (bytes + 31) / 32 * 32;
    all_.push_back(launch);
  }
  // Launches from here on are run only where this, on the device, is not 0; null: always.
  void run_if(const int32_t* wanted) { wanted_ = wanted; }
  const int32_t* wanted() const { return wanted_; }
  void copy(size_t op) { between_.push_back({all_.size(), op, {}}); }
  void multiply(const gpu::Product& product) { between_.push_back({all_.size(), Between::kNoCopy, product}); }
  const std::vector<gpu::Launch>& all() const { return all_; }
  const std::vector<Between>& between() const { return between_; }
  size_t bytes() const { return used_; }
  bool fit() const { return used_ <= room_; }

 private:
  std::vector<gpu::Launch> all_;
  std::vector<Between> between_;
  const int32_t* wanted_ = nullptr;
  char* arguments_ = nullptr;
  size_t room_ = 0, used_ = 0;
};

struct Chain;

// Where an op is put: among the launches, and its working memory, which the next op uses too.
struct Place {
  Launches* launches = nullptr;
  char* workspace = nullptr;
  char* rows = nullptr;    // of a Linear as fragments (linear_rows.h): what an op leaves there is the next one's
  Chain* chain = nullptr;  // null: every op by itself
  CudaOptions options = {};
  uint32_t most_shared = 0;  // gpu::Info
};

}  // namespace aerie::kernels::cuda

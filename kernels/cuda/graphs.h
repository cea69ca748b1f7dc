// The CUDA graphs of plans that come again: plans with the same kernels on the same grids are one graph, for all that
// differs is in arguments that the graph's first node brings over.
#pragma once

#include <functional>
#include <vector>

#include "kernels/cuda/launches.h"

namespace aerie::kernels::cuda {

class Graphs {
 public:
  static constexpr size_t kMost = 64;  // the one not used for longest makes room
  static constexpr uint64_t kPatience = 256;  // plans until a graph that found no memory is tried again: making one takes milliseconds
  ~Graphs() { forget(); }
  void forget();
  // Runs these launches as a graph, captured from what `put` puts on the stream; false: they are new and not worth
  // one, or there is no memory for it.
  Result<bool> run(const std::vector<gpu::Launch>& launches, size_t arguments_at, gpu::Stream stream,
                   const std::function<Status()>& put);

 private:
  struct Known {
    uint64_t hash = 0;
    std::vector<gpu::Launch> launches;
    size_t arguments_at = 0;
    gpu::Graph graph = nullptr;  // from the second time on
    uint64_t last = 0;           // use
    uint64_t again = 0;          // the use that may make one: after one that found no memory
    void forget();
  };
  Result<bool> without(Known* known, Status why);
  Known* find(uint64_t hash, const std::vector<gpu::Launch>& launches, size_t arguments_at);

  std::vector<Known> known_;
  uint64_t uses_ = 0;
};

}  // namespace aerie::kernels::cuda

#include "kernels/cuda/graphs.h"

#include <utility>

namespace aerie::kernels::cuda {
namespace {

uint64_t hash_of(const std::vector<gpu::Launch>& launches, uint64_t seed) {
  uint64_t h = 0xcbf29ce484222325u ^ seed;
  for (const gpu::Launch& l : launches) {
    uint64_t words[sizeof(gpu::Launch) / 8];
    std::memcpy(words, &l, sizeof l);
    for (const uint64_t w : words) h = (h ^ w) * 0x100000001b3u, h ^= h >> 29;
  }
  return h;
}

bool equal(const std::vector<gpu::Launch>& a, const std::vector<gpu::Launch>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(gpu::Launch)) == 0;
}

}  // namespace

void Graphs::forget() {
  for (Known& k : known_) k.forget();
  known_.clear();
}

void Graphs::Known::forget() {
  if (graph) gpu::destroy(std::exchange(graph, nullptr));
}

Graphs::Known* Graphs::find(uint64_t hash, const std::vector<gpu::Launch>& launches, size_t arguments_at) {
  for (Known& k : known_)
    if (k.hash == hash && k.arguments_at == arguments_at && equal(k.launches, launches)) return &k;
  return nullptr;
}

Result<bool> Graphs::run(const std::vector<gpu::Launch>& launches, size_t arguments_at, gpu::Stream stream,
                         const std::function<Status()>& put) {
  const uint64_t hash = hash_of(launches, arguments_at);
  Known* known = find(hash, launches, arguments_at);
  if (!known) {
    if (known_.size() < kMost) known_.emplace_back();
    known = &*std::min_element(known_.begin(), known_.end(), [](const Known& a, const Known& b) { return a.last < b.last; });
    known->forget();
    *known = {hash, launches, arguments_at, nullptr, ++uses_, 0};
    return false;
  }
  known->last = ++uses_;
  if (!known->graph) {
    if (uses_ < known->again) return false;
    AERIE_TRY(gpu::begin_capture(stream));
    const Status done = put();
    Result<gpu::Graph> made = gpu::end_capture(stream);  // also ends a capture that failed
    if (!done.ok()) {
      if (made.ok()) gpu::destroy(*made);
      return done;
    }
    if (!made.ok()) return without(known, made.status());
    known->graph = *made;
  }
  if (Status ran = gpu::run(known->graph, stream); !ran.ok()) return without(known, std::move(ran));
  return true;
}

// A graph may find no memory when it is made and when it is first run: its launches need none.
Result<bool> Graphs::without(Known* known, Status why) {
  if (why.code() != Code::out_of_memory) return why;
  known->forget();
  known->again = uses_ + kPatience;
  return false;
}

}  // namespace aerie::kernels::cuda

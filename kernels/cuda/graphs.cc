#include "kernels/cuda/graphs.h"

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
  for (const Known& k : known_)
    if (k.graph) gpu::destroy(k.graph);
  known_.clear();
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
    if (known->graph) gpu::destroy(known->graph);
    *known = {hash, launches, arguments_at, nullptr, ++uses_};
    return false;
  }
  known->last = ++uses_;
  if (!known->graph) {
    AERIE_TRY(gpu::begin_capture(stream));
    const Status done = put();
    Result<gpu::Graph> made = gpu::end_capture(stream);  // also ends a capture that failed
    if (!done.ok()) {
      if (made.ok()) gpu::destroy(*made);
      return done;
    }
    if (!made.ok() && made.status().code() == Code::out_of_memory) return false;  // it goes without
    if (!made.ok()) return made.status();
    known->graph = *made;
  }
  AERIE_TRY(gpu::run(known->graph, stream));
  return true;
}

}  // namespace aerie::kernels::cuda

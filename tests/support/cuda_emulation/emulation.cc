#include "tests/support/cuda_emulation/emulation.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/cuda/gpu.h"
#include "tests/support/cuda_emulation/fibers.h"

namespace aerie::kernels::cuda::emulation {
namespace {

struct Copy {
  void* to;
  const void* from;
  bool valid;
};

enum class State : uint8_t { ready, at_block, at_warp, done };

struct Thread {
  State state = State::ready;
  Place place;
  std::vector<Copy> open;               // copies not committed
  std::vector<std::vector<Copy>> groups;  // committed, not waited for
  size_t operands = 0;                  // of warpgroups that it has named
};

struct Warp {
  const char* kind = nullptr;
  int arrived = 0;
  void* args[32] = {};
};

using Operands = std::vector<std::pair<const void*, uint32_t>>;

struct Block {
  Fibers fibers;
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  std::vector<Operands> warpgroups;
  std::vector<char> shared;
  char* shared_at = nullptr;
  int at_barrier = 0, current = 0;
  std::vector<int> ready;  // threads that can go on, in the order they will
  size_t next = 0;         // of `ready`
  std::string failure;

  void fail(const std::string& what) {
    if (failure.empty()) failure = what;
  }
  Thread& self() { return threads[static_cast<size_t>(current)]; }
  bool any_ready() const { return next < ready.size(); }
  int take_ready() {
    if (next > 4096) {
      ready.erase(ready.begin(), ready.begin() + static_cast<std::ptrdiff_t>(next));
      next = 0;
    }
    return ready[next++];
  }
  void wait() {
    const int me = current;
    if (any_ready() && failure.empty()) {  // straight to whose turn it is
      current = take_ready();
      fibers.pause_for(current);
    } else {
      fibers.pause();
    }
    current = me;
  }
};

std::mutex grid_mutex;  // one grid at a time
Block* block = nullptr;
uint32_t order = 0;
bool with_warpgroups = true;
uint32_t most_shared = kHopperShared;

std::vector<int> ordered(int n, uint32_t salt) {
  std::vector<int> v(static_cast<size_t>(n));
  std::iota(v.begin(), v.end(), 0);
  if (order == 1) std::reverse(v.begin(), v.end());
  if (order > 1) std::shuffle(v.begin(), v.end(), std::mt19937(order * 7919 + salt));
  return v;
}

std::string name(const Place& p) {
  std::string s = "block (";
  s += std::to_string(p.block.x) + ", " + std::to_string(p.block.y) + ", " + std::to_string(p.block.z);
  return s + ") thread " + std::to_string(p.thread.x);
}

// Threads [first, end) that wait for `what` may go on.
void release(Block& b, int first, int end, State what) {
  for (int i = first; i < end; ++i) {
    const int at = order == 0 ? i : order == 1 ? first + end - 1 - i : first + (i - first + static_cast<int>(order)) % (end - first);
    Thread& t = b.threads[static_cast<size_t>(at)];
    if (t.state != what) continue;
    t.state = State::ready;
    b.ready.push_back(at);
  }
}

void run_block(Block& b, int n, uint32_t salt) {
  b.ready = ordered(n, salt);
  b.next = 0;
  for (int left = n; left > 0 && b.failure.empty();) {
    if (b.any_ready()) {
      b.current = b.take_ready();
      if (b.fibers.resume(b.current)) {  // he or another one has come to his end
        Thread& t = b.self();
        t.state = State::done;
        if (!t.open.empty() || (!t.groups.empty() && !t.groups.back().empty())) b.fail(name(t.place) + ": ended before its copies");
        --left;
      }
      continue;
    }
    int block_wait = 0, warp_wait = 0;
    const Thread* first = nullptr;
    for (const Thread& t : b.threads) {
      block_wait += t.state == State::at_block;
      warp_wait += t.state == State::at_warp;
      if (!first && t.state != State::done) first = &t;
    }
    b.fail("deadlock: " + std::to_string(block_wait) + " threads wait at a block barrier, " + std::to_string(warp_wait) +
           " for their warp, " + std::to_string(n - block_wait - warp_wait) + " have ended; the first is " +
           name(first->place));
  }
  b.fibers.drop();
}

}  // namespace

const Place& place() { return block->self().place; }
char* shared() { return block->shared_at; }

void sync_block() {
  Block& b = *block;
  if (++b.at_barrier == static_cast<int>(b.threads.size())) {
    b.at_barrier = 0;
    release(b, 0, static_cast<int>(b.threads.size()), State::at_block);
    return;
  }
  b.self().state = State::at_block;
  b.wait();
}

void meet(const char* kind, void* arg, void (*combine)(void* const*)) {
  Block& b = *block;
  const int me = b.current, first = me / 32 * 32;
  Warp& w = b.warps[static_cast<size_t>(me / 32)];
  if (w.arrived == 0) w.kind = kind;
  if (w.kind != kind && std::strcmp(w.kind, kind) != 0) {
    b.fail(name(b.self().place) + ": " + kind + " while its warp is at " + w.kind);
    b.self().state = State::at_warp;
    b.wait();
  }
  w.args[me % 32] = arg;
  if (++w.arrived == 32) {
    w.arrived = 0;
    combine(w.args);
    release(b, first, first + 32, State::at_warp);
    return;
  }
  b.self().state = State::at_warp;
  b.wait();
}

void copy_async(void* to, const void* from, bool valid) {
  if ((reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from)) % 16 != 0) block->fail(name(place()) + ": cp.async of 16 bytes that are not aligned");
  block->self().open.push_back({to, from, valid});
}
bool warpgroups() { return with_warpgroups; }
void warpgroup_operand(const void* shared, uint32_t next_group) {
  Block& b = *block;
  Operands& all = b.warpgroups[static_cast<size_t>(b.current / 128)];
  const size_t mine = b.self().operands++;
  if (mine == all.size()) all.emplace_back(shared, next_group);
  if (all[mine] != std::pair(shared, next_group)) b.fail(name(place()) + ": another operand than its warpgroup's");
  if (place().block_size.x % 128 != 0 || reinterpret_cast<uintptr_t>(shared) % 16 != 0 || next_group % 16 != 0)
    b.fail(name(place()) + ": a warpgroup that is not whole, or an operand that is not aligned");
}
void launch_bounds(unsigned threads) {
  if (place().block_size.x > threads) block->fail(name(place()) + ": more threads than the kernel's launch bounds");
}
void commit_copies() {
  Thread& t = block->self();
  t.groups.push_back(std::move(t.open));
  t.open.clear();
}
void wait_copies(int left) {
  Thread& t = block->self();
  while (static_cast<int>(t.groups.size()) > left) {
    for (const Copy& c : t.groups.front()) {
      if (c.valid)
        std::memcpy(c.to, c.from, 16);
      else
        std::memset(c.to, 0, 16);
    }
    t.groups.erase(t.groups.begin());
  }
}

void set_order(uint32_t value) {
  const std::lock_guard lock(grid_mutex);
  order = value;
}
void set_most_shared(uint32_t bytes) {
  const std::lock_guard lock(grid_mutex);
  most_shared = bytes;
}
uint32_t most_shared_bytes() {
  const std::lock_guard lock(grid_mutex);
  return most_shared;
}
void set_warpgroups(bool there) {
  const std::lock_guard lock(grid_mutex);
  with_warpgroups = there;
}

std::string run_grid(Index grid, unsigned threads, size_t shared_bytes, const std::function<void()>& body) {
  const std::lock_guard lock(grid_mutex);
  static Block b;
  if (threads == 0 || threads % 32 != 0 || threads > Fibers::kMost) return "block of " + std::to_string(threads) + " threads";
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.y > 65535 || grid.z > 65535) return "empty or too large a grid";
  if (shared_bytes > most_shared) return "more shared memory than a block may ask for";
  block = &b;
  b.failure.clear();
  const unsigned blocks = grid.x * grid.y * grid.z;
  for (const int i : ordered(static_cast<int>(blocks), 1)) {
    const auto n = static_cast<unsigned>(i);
    // Of the exact size and new for each block: AddressSanitizer sees what goes beyond, NaN what was not written.
    const std::unique_ptr<char[], void (*)(char*)> memory(
        static_cast<char*>(::operator new[](std::max<size_t>(shared_bytes, 1), std::align_val_t{128})),
        [](char* p) { ::operator delete[](p, std::align_val_t{128}); });
    std::memset(memory.get(), 0xff, shared_bytes);
    b.shared_at = memory.get();
    b.at_barrier = 0;
    b.warps.assign(threads / 32, {});
    b.warpgroups.assign((threads + 127) / 128, {});
    b.threads.resize(threads);
    for (unsigned t = 0; t < threads; ++t) {
      Thread& thread = b.threads[t];
      thread.state = State::ready;
      thread.place = {{t, 0, 0}, {n % grid.x, n / grid.x % grid.y, n / grid.x / grid.y}, {threads, 1, 1}, grid};
      thread.open.clear();
      thread.groups.clear();
      thread.operands = 0;
    }
    b.fibers.start(static_cast<int>(threads), [&](int) { body(); });
    run_block(b, static_cast<int>(threads), n);
    if (!b.failure.empty()) return b.failure;
  }
  return {};
}

}  // namespace aerie::kernels::cuda::emulation

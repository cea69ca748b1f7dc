#include "tests/support/cuda_emulation/fibers.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <new>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define AERIE_FIBER_ASAN 1
#elif defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#define AERIE_FIBER_TSAN 1
#endif

namespace aerie::kernels::cuda::emulation {
namespace {

constexpr size_t kStack = 128 << 10;
constexpr size_t kApart = kStack + 4096 + 320;  // not a power of two: tops of stacks would share their cache lines

// Jump from one stack to another. ucontext would do, but it makes a system call each time.
#if defined(__x86_64__)
#define AERIE_FIBER_ASM 1
asm(R"(
.text
.type aerie_fiber_switch,@function
aerie_fiber_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size aerie_fiber_switch,.-aerie_fiber_switch
)");
extern "C" void aerie_fiber_switch(void** from, void* to);
#endif

}  // namespace

struct Fibers::State {
  std::function<void(int)> body;
  char* stacks = nullptr;
  int current = -1;
  std::vector<char> ended;  // fiber: it has
#ifdef AERIE_FIBER_ASM
  void *host = nullptr, *nowhere = nullptr;
  std::vector<void*> at;
#else
  ucontext_t host;
  std::vector<ucontext_t> at;
#endif
#ifdef AERIE_FIBER_ASAN
  const void* host_stack = nullptr;
  size_t host_size = 0;
  bool from_host = true;  // the last switch was
  void switched(void* fake) {
    const void* before;
    size_t size;
    __sanitizer_finish_switch_fiber(fake, from_host ? &host_stack : &before, from_host ? &host_size : &size);
  }
#elif defined(AERIE_FIBER_TSAN)
  void* host_fiber = nullptr;
  std::vector<void*> fibers;  // made when first resumed; the next launch's after one has ended
  void* fiber(int i) {
    while (fibers.size() <= static_cast<size_t>(i)) fibers.push_back(__tsan_create_fiber(0));
    return fibers[static_cast<size_t>(i)];
  }
#endif
  char* stack(int i) const { return stacks + static_cast<size_t>(i) * kApart; }
};

namespace {
[[gnu::tls_model("initial-exec")]] thread_local Fibers::State* running = nullptr;  // asked for at every switch
}

Fibers::Fibers() : state_(new State) {
  void* p = mmap(nullptr, kApart * kMost, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  state_->stacks = static_cast<char*>(p);
  madvise(p, kApart * kMost, MADV_HUGEPAGE);  // hundreds of stacks take turns
}

Fibers::~Fibers() {
#ifdef AERIE_FIBER_TSAN
  for (void* fiber : state_->fibers) __tsan_destroy_fiber(fiber);
#endif
  munmap(state_->stacks, kApart * kMost);
}

// It never returns: a sanitizer that counts calls and returns must not count it.
__attribute__((no_sanitize("thread"))) void Fibers::entry() {
  State& s = *running;
#ifdef AERIE_FIBER_ASAN
  s.switched(nullptr);
#endif
  s.body(s.current);
  s.ended[static_cast<size_t>(s.current)] = true;
#ifdef AERIE_FIBER_ASAN
  __sanitizer_start_switch_fiber(nullptr, s.host_stack, s.host_size);
#elif defined(AERIE_FIBER_TSAN)
  __tsan_switch_to_fiber(s.host_fiber, 0);
#endif
#ifdef AERIE_FIBER_ASM
  aerie_fiber_switch(&s.nowhere, s.host);
#else
  setcontext(&s.host);
#endif
}

void Fibers::start(int n, const std::function<void(int)>& body) {
  State& s = *state_;
  s.body = body;
  s.at.resize(static_cast<size_t>(n));
  s.ended.assign(static_cast<size_t>(n), false);
  for (int i = 0; i < n; ++i) {
#ifdef AERIE_FIBER_ASM
    auto** top = reinterpret_cast<void**>(s.stack(i) + kStack);
    *--top = nullptr;  // entry's frame is aligned as after a call
    *--top = reinterpret_cast<void*>(&Fibers::entry);
    for (int r = 0; r < 6; ++r) *--top = nullptr;
    s.at[static_cast<size_t>(i)] = top;
#else
    ucontext_t& c = s.at[static_cast<size_t>(i)];
    getcontext(&c);
    c.uc_stack = {s.stack(i), 0, kStack};
    c.uc_link = nullptr;
    makecontext(&c, &Fibers::entry, 0);
#endif
  }
}

bool Fibers::resume(int i) {
  State& s = *state_;
  running = &s;
  s.current = i;
#ifdef AERIE_FIBER_ASAN
  void* fake = nullptr;
  s.from_host = true;
  __sanitizer_start_switch_fiber(&fake, s.stack(i), kStack);
#elif defined(AERIE_FIBER_TSAN)
  s.host_fiber = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(s.fiber(i), 0);
#endif
#ifdef AERIE_FIBER_ASM
  aerie_fiber_switch(&s.host, s.at[static_cast<size_t>(i)]);
#else
  swapcontext(&s.host, &s.at[static_cast<size_t>(i)]);
#endif
#ifdef AERIE_FIBER_ASAN
  __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
  return s.ended[static_cast<size_t>(s.current)];
}

void Fibers::pause() { leave_for(kHost); }

void Fibers::pause_for(int next) {
  if (next != state_->current) leave_for(next);
}

void Fibers::leave_for(int next) {
  State& s = *state_;
  const auto i = static_cast<size_t>(s.current), n = static_cast<size_t>(next);
  const bool host = next == kHost;
  if (!host) s.current = next;
#ifdef AERIE_FIBER_ASAN
  void* fake = nullptr;
  if (!host) s.from_host = false;
  __sanitizer_start_switch_fiber(&fake, host ? s.host_stack : s.stack(next), host ? s.host_size : kStack);
#elif defined(AERIE_FIBER_TSAN)
  __tsan_switch_to_fiber(host ? s.host_fiber : s.fiber(next), 0);
#endif
#ifdef AERIE_FIBER_ASM
  aerie_fiber_switch(&s.at[i], host ? s.host : s.at[n]);
#else
  swapcontext(&s.at[i], host ? &s.host : &s.at[n]);
#endif
#ifdef AERIE_FIBER_ASAN
  s.switched(fake);
#endif
}

void Fibers::drop() {
#ifdef AERIE_FIBER_ASAN
  const State& s = *state_;
  for (size_t i = 0; i < s.ended.size(); ++i)  // who returned has taken away his marks
    if (!s.ended[i]) __asan_unpoison_memory_region(s.stack(static_cast<int>(i)), kStack);
#elif defined(AERIE_FIBER_TSAN)
  State& s = *state_;
  for (size_t i = 0; i < s.fibers.size() && i < s.ended.size(); ++i) {
    if (s.ended[i]) continue;
    __tsan_destroy_fiber(s.fibers[i]);
    s.fibers[i] = __tsan_create_fiber(0);
  }
#endif
}

}  // namespace aerie::kernels::cuda::emulation

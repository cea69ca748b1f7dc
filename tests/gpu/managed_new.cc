// operator new for gpu_tests: memory that host and device both can use, so that the tests of the emulated device, which
// hand ops the addresses of their vectors, run on a GPU as they are.
#include "tests/gpu/managed_new.h"

#include <cuda_runtime.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>

namespace {

constexpr size_t kArena = size_t{12} << 30;  // of addresses: pages that are not touched are not there
constexpr size_t kApart = 64;                // bytes that are worth an allocation of their own
constexpr int64_t kMostApart = 200000;       // then the arena again, which has room for what is small

char* arena = nullptr;  // null until main asks for it: what is made before is no op's
bool apart = false;
thread_local bool inside = false;  // the CUDA runtime's own

void* managed(size_t bytes) {
  void* p = nullptr;
  inside = true;
  // A plan may be under capture, in which a thread must not allocate unless it says so.
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  (void)cudaThreadExchangeStreamCaptureMode(&mode);
  if (cudaMallocManaged(&p, bytes) != cudaSuccess) {
    p = nullptr;
    (void)cudaGetLastError();
  }
  (void)cudaThreadExchangeStreamCaptureMode(&mode);
  inside = false;
  return p;
}

void* take(size_t bytes, size_t align) {
  static std::atomic<size_t> used{0};
  static std::atomic<int64_t> count{0};
  if (align < 256) align = 256;
  if (arena && !inside) {
    if (apart && bytes >= kApart && align == 256 && count.fetch_add(1) < kMostApart)  // CUDA aligns to 256
      if (void* p = managed(bytes)) return p;
    const size_t at = used.fetch_add((bytes + align + 255) / 256 * 256);  // never given back: a test program ends
    if (at + bytes + align <= kArena) return arena + (at + align - 1) / align * align;
    static std::atomic<bool> said{false};
    if (!said.exchange(true)) std::fprintf(stderr, "gpu_tests: the arena of %zu GiB is used up\n", kArena >> 30);
  }
  return std::aligned_alloc(align, (bytes + align) / align * align);
}

// What is apart is not given back either; and so as not to keep a list of it, nothing else is then.
bool stays(void* p) {
  if (!arena || inside) return false;
  return apart || (p >= arena && p < arena + kArena);
}

}  // namespace

bool aerie::gpu_tests::use_managed_memory() {
  apart = std::getenv("AERIE_GPU_TESTS_APART") != nullptr;
  arena = static_cast<char*>(managed(kArena));
  return arena != nullptr;
}

void* operator new(size_t n) {
  if (void* p = take(n, 16)) return p;
  throw std::bad_alloc();
}
void* operator new(size_t n, const std::nothrow_t&) noexcept { return take(n, 16); }
void* operator new(size_t n, std::align_val_t a) {
  if (void* p = take(n, static_cast<size_t>(a))) return p;
  throw std::bad_alloc();
}
void* operator new(size_t n, std::align_val_t a, const std::nothrow_t&) noexcept { return take(n, static_cast<size_t>(a)); }
void operator delete(void* p) noexcept {
  if (p && !stays(p)) std::free(p);
}
void operator delete(void* p, size_t) noexcept { operator delete(p); }
void operator delete(void* p, std::align_val_t) noexcept { operator delete(p); }
void operator delete(void* p, size_t, std::align_val_t) noexcept { operator delete(p); }
void operator delete(void* p, std::align_val_t, const std::nothrow_t&) noexcept { operator delete(p); }

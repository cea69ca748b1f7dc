// operator new for test_gpu: memory that host and device both can use, so that the tests of the emulated device, which
// hand ops the addresses of their vectors, run on a GPU as they are.
#include <cuda_runtime.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>

namespace {

constexpr size_t kArena = size_t{48} << 30;  // of addresses: pages that are not touched are not there
thread_local bool inside = false;            // the CUDA runtime's own

char* arena() {
  static char* const memory = [] {
    void* p = nullptr;
    inside = true;
    if (cudaMallocManaged(&p, kArena) != cudaSuccess) p = nullptr;
    inside = false;
    (void)cudaGetLastError();
    return static_cast<char*>(p);
  }();
  return memory;
}

void* take(size_t bytes, size_t align) {
  static std::atomic<size_t> used{0};
  if (align < 256) align = 256;
  if (!inside)
    if (char* const base = arena()) {
      const size_t at = used.fetch_add((bytes + align + 255) / 256 * 256);  // never given back: a test program ends
      if (at + bytes + align <= kArena) return base + (at + align - 1) / align * align;
    }
  return std::aligned_alloc(align, (bytes + align) / align * align);
}

bool ours(void* p) {
  if (inside) return false;
  char* const base = arena();
  return base && p >= base && p < base + kArena;
}

}  // namespace

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
  if (p && !ours(p)) std::free(p);
}
void operator delete(void* p, size_t) noexcept { operator delete(p); }
void operator delete(void* p, std::align_val_t) noexcept { operator delete(p); }
void operator delete(void* p, size_t, std::align_val_t) noexcept { operator delete(p); }
void operator delete(void* p, std::align_val_t, const std::nothrow_t&) noexcept { operator delete(p); }

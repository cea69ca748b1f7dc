#include "kernels/mock/address_map.h"

#ifdef _WIN32
#include "kernels/win32.h"
#else
#include <sys/mman.h>
#endif

namespace aerie::kernels::mock {
namespace {

constexpr size_t kPage = 64 << 10;  // a multiple of every usual page size

void* reserve(size_t bytes) {
#ifdef _WIN32
  return VirtualAlloc(nullptr, bytes, MEM_RESERVE, PAGE_NOACCESS);
#else
  void* p = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
#endif
}

void unreserve(void* p, [[maybe_unused]] size_t bytes) {
#ifdef _WIN32
  VirtualFree(p, 0, MEM_RELEASE);
#else
  munmap(p, bytes);
#endif
}

}  // namespace

AddressMap::~AddressMap() {
  for (const auto& [base, region] : regions_) unreserve(reinterpret_cast<void*>(base), region.reserved);
}

void* AddressMap::add(void* backing, size_t bytes) {
  const size_t reserved = (bytes / kPage + 1) * kPage;  // never empty, never ends at its neighbour
  void* address = reserve(reserved);
  if (!address) return nullptr;
  const std::lock_guard lock(mutex_);
  regions_[reinterpret_cast<uintptr_t>(address)] = {bytes, reserved, backing};
  return address;
}

void* AddressMap::remove(void* address) {
  Region region;
  {
    const std::lock_guard lock(mutex_);
    const auto it = regions_.find(reinterpret_cast<uintptr_t>(address));
    if (it == regions_.end()) return nullptr;
    region = it->second;
    regions_.erase(it);
  }
  unreserve(address, region.reserved);
  return region.backing;
}

void* AddressMap::find(const void* address, int64_t bytes) const {
  const auto a = reinterpret_cast<uintptr_t>(address);
  const std::lock_guard lock(mutex_);
  auto it = regions_.upper_bound(a);
  if (it == regions_.begin() || bytes < 0) return nullptr;
  --it;
  const uintptr_t offset = a - it->first;
  if (offset > it->second.bytes || static_cast<size_t>(bytes) > it->second.bytes - offset) return nullptr;
  return static_cast<char*>(it->second.backing) + offset;
}

bool AddressMap::contains(const void* address) const {
  const auto a = reinterpret_cast<uintptr_t>(address);
  const std::lock_guard lock(mutex_);
  auto it = regions_.upper_bound(a);
  return it != regions_.begin() && a - (--it)->first < it->second.reserved;
}

}  // namespace aerie::kernels::mock

// Addresses that nothing can be read or written at, and what they stand for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace aerie::kernels::mock {

class AddressMap {
 public:
  AddressMap() = default;
  AddressMap(const AddressMap&) = delete;
  AddressMap& operator=(const AddressMap&) = delete;
  ~AddressMap();

  // A new inaccessible address standing for `bytes` at `backing`; null when there is none.
  void* add(void* backing, size_t bytes);
  // Forget an address made by add; returns its backing (null: not one of ours).
  void* remove(void* address);
  // The backing of [address, address + bytes); null unless it lies in one region.
  void* find(const void* address, int64_t bytes) const;
  // Does this address belong to any region?
  bool contains(const void* address) const;

 private:
  struct Region {
    size_t bytes, reserved;
    void* backing;
  };
  mutable std::mutex mutex_;
  std::map<uintptr_t, Region> regions_;
};

}  // namespace aerie::kernels::mock

// How a backend in a shared object of its own (libaerie-cuda) meets the library that loads it. Both come from one build:
// C++ types cross here, so what differs is refused.
#pragma once

#include <memory>

#include "kernels/device.h"

namespace aerie::kernels {

struct BackendTable {
  uint32_t struct_size;
  uint32_t op_bytes;    // sizeof(Op)
  const char* version;  // of Aerie
  Result<std::unique_ptr<Device>> (*make)(int device);
};
using BackendEntry = const BackendTable* (*)();
constexpr char kBackendSymbol[] = "aerie_backend_entry";

}  // namespace aerie::kernels

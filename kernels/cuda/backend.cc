// The one symbol that libaerie-cuda exports.
#include "kernels/backend.h"

#include "kernels/cuda/cuda_device.h"

extern "C" __attribute__((visibility("default"))) const aerie::kernels::BackendTable* aerie_backend_entry() {
  using namespace aerie::kernels;
  static const BackendTable table{sizeof(BackendTable), sizeof(Op), AERIE_VERSION_TEXT,
                                  [](int device) { return make_cuda_device({.device = device}); }};
  return &table;
}

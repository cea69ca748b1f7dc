// The CUDA backend: an asynchronous device. Its queues put a plan's ops on a stream of their own; a plan
// that comes again, address for address, is replayed as a CUDA graph.
#pragma once

#include <memory>

#include "kernels/device.h"

namespace aerie::kernels {

struct CudaOptions {
  int device = 0;      // as the CUDA runtime counts them
  bool graphs = true;  // replay plans that repeat
  bool early = true;   // kernels may begin before the one in front of them ends, where the device can
  // Bytes of weights that the second-level cache is asked for, for each block of a Linear, while attention runs in front of it.
  uint32_t beside_attention = 64 << 10;
  uint32_t stages = 8;       // of Linear's pipeline, at most; 2 and more
  uint32_t one_by_one = 16;  // these come one by one until the rows are there, if they are so many at most
  bool once = true;          // weights make way in the second-level cache for what is used again
  // Tiles of 16 queries, over all kv heads, from which on attention goes through them as if they were many (attention_wide.h): from
  // so many on they would be more blocks of few than the device has room for. It changes no bit.
  int64_t many_tiles = 64;
  bool all_shared = false;  // small kernels too leave shared memory all the room there is: tiles that follow may be resident sooner
};

// No device, too old a driver or device: an error that says so.
Result<std::unique_ptr<Device>> make_cuda_device(const CudaOptions& options);

}  // namespace aerie::kernels

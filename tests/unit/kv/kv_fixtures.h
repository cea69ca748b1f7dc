// A pool on the CPU, whose memory a test may look at.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <vector>

#include "core/kv/prefix_index.h"
#include "kernels/cpu/cpu_device.h"

namespace aerie::test {

inline std::shared_ptr<KvPool> pool_of(int64_t pages) {
  auto device = kernels::make_cpu_device({});
  EXPECT_TRUE(device.ok());
  auto pool = KvPool::create(std::move(*device), {2, 1, 4}, pages * kernels::kPageSlots);
  EXPECT_TRUE(pool.ok());
  return *pool;
}

// The key of a slot in the last layer.
inline float* key(KvPool& pool, int32_t slot) {
  const kernels::KvCache& c = pool.cache();
  return static_cast<float*>(c.data) + ((c.layers - 1) * 2 * c.slots + slot) * c.head_dim;
}
inline void write(KvPool& pool, const KvSequence& s, int64_t from, int64_t to, float value) {
  for (int64_t i = from; i < to; ++i) *key(pool, s.slot(i)) = value + static_cast<float>(i);
}
inline std::vector<float> read(KvPool& pool, const KvSequence& s, int64_t to) {
  std::vector<float> all;
  for (int64_t i = 0; i < to; ++i) all.push_back(*key(pool, s.slot(i)));
  return all;
}

}  // namespace aerie::test

// Keys and values of a text's positions as one piece of host memory, independent of pages: for each layer, first K then
// V, (kv_heads, positions, head_dim); behind them, for int8, the scales, (kv_heads, positions) of each layer's K and V. Wide layers
// come behind the others, of elements as of scales.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/kv/kv_pool.h"

namespace aerie {

// Positions [0, n), n * KvPool::shape().bytes_per_slot() bytes at `host`, which need not be aligned.
void download_kv(const KvSequence& kv, int64_t n, uint8_t* host, std::vector<kernels::Op>* ops);
void upload_kv(const KvSequence& kv, int64_t n, const uint8_t* host, std::vector<kernels::Op>* ops);

// A state of recurrent layers by its number; the pool's floats() at `host`.
void download_state(StatePool& pool, int32_t number, uint8_t* host, std::vector<kernels::Op>* ops);
void upload_state(StatePool& pool, int32_t number, const uint8_t* host, std::vector<kernels::Op>* ops);

// Run ops to their end.
Status transfer(kernels::Device& device, std::span<const kernels::Op> ops);

}  // namespace aerie

#include "core/session/kv_image.h"

#include <algorithm>

namespace aerie {

namespace {

// f(device address, offset in the image, bytes): positions of one page lie together on the device.
template <class F>
void each_page(const KvSequence& kv, int64_t n, F&& f) {
  const kernels::KvCache& c = kv.cache();
  int64_t at = 0;
  const auto planes = [&](void* base, int64_t row_bytes) {
    for (int64_t plane = 0; plane < int64_t{2} * c.layers; ++plane)
      for (int64_t first = 0; first < n; first += kernels::kPageSlots) {
        const int64_t bytes = std::min<int64_t>(kernels::kPageSlots, n - first) * row_bytes;
        f(static_cast<char*>(base) + (plane * c.slots + kv.slot(first)) * row_bytes, at, bytes);
        at += bytes;
      }
  };
  planes(c.data, int64_t{c.kv_heads} * c.head_dim * kernels::kv_element_bytes(c.dtype));
  if (c.scales) planes(c.scales, c.kv_heads * int64_t{sizeof(float)});
}

}  // namespace

KvShape kv_shape(const kernels::KvCache& c) { return {c.layers, c.kv_heads, c.head_dim, c.dtype}; }

void download_kv(const KvSequence& kv, int64_t n, uint8_t* host, std::vector<kernels::Op>* ops) {
  each_page(kv, n, [&](char* device, int64_t at, int64_t bytes) {
    ops->push_back(kernels::Download{host + at, device, bytes});
  });
}

void upload_kv(const KvSequence& kv, int64_t n, const uint8_t* host, std::vector<kernels::Op>* ops) {
  each_page(kv, n, [&](char* device, int64_t at, int64_t bytes) {
    ops->push_back(kernels::Upload{device, host + at, bytes});
  });
}

Status transfer(kernels::Device& device, const std::vector<kernels::Op>& ops) {
  if (ops.empty()) return {};
  AERIE_ASSIGN(auto queue, device.make_queue());
  AERIE_TRY(queue->submit(ops));
  AERIE_ASSIGN(const auto state, queue->advance(kernels::kNoDeadline));
  return state == kernels::RunState::done ? Status() : error(Code::device, "a transfer was lost");
}

}  // namespace aerie

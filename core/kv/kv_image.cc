#include "core/kv/kv_image.h"

#include <algorithm>

namespace aerie {

namespace {

// The end of the positions from `first` on that lie together on the device: their page's, and those of pages that follow it.
int64_t run_end(const KvSequence& kv, int64_t first, int64_t n) {
  int64_t end = first + kernels::kPageSlots;
  while (end < n && kv.slot(end) - kv.slot(first) == end - first) end += kernels::kPageSlots;
  return std::min(end, n);
}

// f(device address, offset in the image, bytes)
template <class F>
void each_run(const KvSequence& kv, int64_t n, F&& f) {
  int64_t at = 0;
  const auto heads = [&](const kernels::KvCache& c, void* base, int64_t row_bytes) {
    for (int64_t head = 0; head < int64_t{2} * c.layers * c.kv_heads; ++head)
      for (int64_t first = 0, end; first < n; first = end) {
        end = run_end(kv, first, n);
        const int64_t bytes = (end - first) * row_bytes;
        f(static_cast<char*>(base) + (head * c.slots + kv.slot(first)) * row_bytes, at, bytes);
        at += bytes;
      }
  };
  for (const kernels::KvCache& c : kv.pool()->caches()) heads(c, c.data, c.head_dim * kernels::kv_element_bytes(c.dtype));
  for (const kernels::KvCache& c : kv.pool()->caches())
    if (c.scales) heads(c, c.scales, sizeof(float));
}

template <class O>
int64_t copied_bytes(const O& op) {
  if constexpr (std::is_same_v<O, kernels::Upload> || std::is_same_v<O, kernels::Download>) return op.bytes;
  return 0;
}

}  // namespace

void download_kv(const KvSequence& kv, int64_t n, uint8_t* host, std::vector<kernels::Op>* ops) {
  each_run(kv, n, [&](char* device, int64_t at, int64_t bytes) {
    ops->push_back(kernels::Download{host + at, device, bytes});
  });
}

void upload_kv(const KvSequence& kv, int64_t n, const uint8_t* host, std::vector<kernels::Op>* ops) {
  each_run(kv, n, [&](char* device, int64_t at, int64_t bytes) {
    ops->push_back(kernels::Upload{device, host + at, bytes});
  });
}

namespace {

constexpr int64_t kMostCopied = int64_t{4} << 20;

// f(device address, offset in the image, bytes)
template <class F>
void each_piece(StatePool& pool, int32_t number, F&& f) {
  auto* const data = reinterpret_cast<char*>(pool.cache().at(number));
  const int64_t bytes = pool.floats() * int64_t{sizeof(float)};
  for (int64_t at = 0; at < bytes; at += kMostCopied) f(data + at, at, std::min(kMostCopied, bytes - at));
}

}  // namespace

void download_state(StatePool& pool, int32_t number, uint8_t* host, std::vector<kernels::Op>* ops) {
  each_piece(pool, number, [&](char* device, int64_t at, int64_t bytes) { ops->push_back(kernels::Download{host + at, device, bytes}); });
}

void upload_state(StatePool& pool, int32_t number, const uint8_t* host, std::vector<kernels::Op>* ops) {
  each_piece(pool, number, [&](char* device, int64_t at, int64_t bytes) { ops->push_back(kernels::Upload{device, host + at, bytes}); });
}

// Some megabytes at a time: a far device has memory of its own for what a plan copies.
Status transfer(kernels::Device& device, std::span<const kernels::Op> ops) {
  constexpr size_t kMostOps = 1024;
  if (ops.empty()) return {};
  AERIE_ASSIGN(auto queue, device.make_queue());
  while (!ops.empty()) {
    size_t n = 0;
    for (int64_t bytes = 0; n < std::min(ops.size(), kMostOps); ++n) {
      bytes += std::visit([](const auto& op) { return copied_bytes(op); }, ops[n]);
      if (n > 0 && bytes > kMostCopied) break;
    }
    AERIE_TRY(queue->submit(ops.first(n)));
    AERIE_ASSIGN(const auto state, queue->advance(kernels::kNoDeadline));
    if (state != kernels::RunState::done) return error(Code::device, "a transfer was lost");
    ops = ops.subspan(n);
  }
  return {};
}

}  // namespace aerie

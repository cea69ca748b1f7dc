// Keys and values asked for before their time, to the second-level cache: by when attention comes memory has a queue of weights,
// which they would wait behind.
#pragma once

#include "kernels/cuda/attention_shape.h"
#include "kernels/cuda/chain.h"
#include "kernels/cuda/kv.h"

namespace aerie::kernels::cuda {

// Those of the contexts of attention's rows, of a sequence's first row's window. A page of a head is one run of bytes.
struct KvWish {
  KvCache cache = {};
  int32_t layer = 0;
  AttentionRows rows = {};
  int32_t count = 0;  // rows; 0: nothing is wanted
};

constexpr int kKvBlocks = 32;        // spare blocks that ask for them, each warp for
constexpr uint32_t kMostKvRuns = 4;  // no more: a long context takes longer to bring than there is time

// Of the attention that is `i` ops behind, if it is that of a layer.
inline KvWish kv_wish(size_t i, const Place& p) {
  if (!p.chain || !p.chain->next<Linear>(i) || !p.chain->next<RopeAndStore>(i + 1)) return {};
  const auto* attention = p.chain->next<Attention>(i + 2);
  return attention ? KvWish{attention->cache, attention->layer, attention->rows, static_cast<int32_t>(attention->out.rows)} : KvWish{};
}

// By warp `part` of `parts`.
__device__ inline void fetch_to_cache(const KvWish& wish, uint32_t part, uint32_t parts) {
  constexpr uint32_t kLine = 128;
  const KvCache& c = wish.cache;
  const auto bytes = static_cast<uint32_t>(kv_element_bytes(c.dtype) * c.head_dim) * kPageSlots;
  const uint32_t heads = 2 * static_cast<uint32_t>(c.kv_heads);  // of values behind those of keys
  const auto lane = static_cast<int32_t>(threadIdx.x % 32);
  uint32_t run = part, runs = 0;
  for (int32_t first = 0; first < wish.count && runs < kMostKvRuns; first += 32) {
    const int32_t mine = first + lane;
    uint32_t others = ballot(mine < wish.count && (mine == 0 || wish.rows.seq[mine] != wish.rows.seq[mine - 1]));
    for (; others != 0 && runs < kMostKvRuns; others &= others - 1) {  // a row of another sequence than the one in front of it
      const int32_t r = first + lowest_lane(others), seq = wish.rows.seq[r];
      const int32_t skipped = static_cast<int32_t>(Seen(wish.rows, r).from / kPageSlots);
      const int32_t pages = (wish.rows.ctx_len[r] + kPageSlots - 1) / kPageSlots - skipped;
      const uint32_t all = pages > 0 ? static_cast<uint32_t>(pages) * heads : 0;
      for (; run < all && runs < kMostKvRuns; run += parts, ++runs) {
        const int64_t slot = int64_t{wish.rows.pages[int64_t{seq} * wish.rows.page_stride + skipped + run / heads]} * kPageSlots;
        const auto* from = static_cast<const char*>(c.data) + kv_row(c, wish.layer, 0, run % heads, slot) * (bytes / kPageSlots);
        for (uint32_t at = threadIdx.x % 32 * kLine; at < bytes; at += 32 * kLine) want_soon(from + at);
      }
      run -= run < all ? run : all;
    }
  }
}

}  // namespace aerie::kernels::cuda

// Attention over paged keys and values: by tensor cores over what most caches are (attention_tile.h), else, and within a
// window or under a cap, as here.
//
// Order of one output: chunks of absolute positions (attention_shape.h), in a chunk pages of kPageSlots positions,
// ascending. A score is one FMA chain over the head's elements; a page's softmax total is a fixed tree over its 32
// positions, an output element one FMA chain over them; a page that raises the maximum rescales what the pages before it
// left. What lies before a row's window is in no sum. Chunks and then spans are merged ascending. Where a position's slot
// lies (page or tail), which rows share a block and how many there are changes none of it.
#include "kernels/cuda/attention_task.h"
#include "kernels/cuda/chain.h"
#include "kernels/cuda/enqueue.h"
#include "kernels/cuda/kv.h"

namespace aerie::kernels::cuda {
namespace {

constexpr int kWarps = 4;

// How many queries a block has, by how many elements of a head a lane has. Where heads are wide keys and values take turns in one place.
template <int kElements>
struct TileOf {
  static constexpr bool kTurns = kElements * 32 > kUsualDim;
  static constexpr int kWarpQueries = kTurns ? 2 : 4, kQueries = kWarps * kWarpQueries;
};

__device__ int64_t padded(int64_t dim) { return (dim + 3) / 4 * 4; }

// One page's keys and values as floats, and a tile's queries.
template <class Tile>
struct Page {
  float* keys;     // (32, padded + 4): lanes read different rows at once, without bank conflicts
  float* values;   // (32, padded)
  float* queries;  // (queries, padded)
  float* scales;   // (32, 2): of a key and a value, int8 alone
  char* raw;       // keys and values as the cache has them, of two bytes or one
  int64_t stride;
  __device__ Page(float* shared, int64_t dim) : stride(padded(dim)) {
    keys = shared;
    values = Tile::kTurns ? keys : keys + kPageSlots * (stride + 4);
    queries = Tile::kTurns ? keys + kPageSlots * (stride + 4) : values + kPageSlots * stride;
    scales = queries + Tile::kQueries * stride;
    raw = reinterpret_cast<char*>(scales + kPageSlots * 2);
  }
};
// Of a page's 64 keys and values, so many are raw at a time: all stay below kMostShared.
template <class Tile>
AERIE_HOST_DEVICE constexpr int raw_lines(int64_t line_bytes) {
  return Tile::kTurns ? kPageSlots / 2 : (line_bytes <= 256 ? 2 : 1) * kPageSlots;
}
template <class Tile>
constexpr size_t page_bytes(int64_t dim, DType t) {
  const int64_t p = (dim + 3) / 4 * 4, line = dim * kv_element_bytes(t), raw = t == DType::f32 ? 0 : raw_lines<Tile>(line) * line;
  return static_cast<size_t>((kPageSlots * ((Tile::kTurns ? 1 : 2) * p + 4 + 2) + Tile::kQueries * p) * 4 + raw);
}
static_assert(page_bytes<TileOf<8>>(kUsualDim, DType::bf16) <= kMostShared && page_bytes<TileOf<16>>(kMostDim, DType::bf16) <= kMostShared);

// Row r of the op and what it looks at.
struct Row : Seen {
  int64_t ctx, seq;
  const int32_t* pages;
  const int32_t* tail;
  __device__ Row(const AttentionRows& a, int64_t r)
      : Seen(a, r),
        ctx(a.ctx_len[r]),
        seq(a.seq[r]),
        pages(a.pages + seq * a.page_stride),
        tail(a.tail_len ? a.tail_slots + a.tail_offset[r] : nullptr) {}
  __device__ int64_t slot(int64_t p) const {
    return p < ctx ? int64_t{pages[p / kPageSlots]} * kPageSlots + p % kPageSlots : tail[p - ctx];
  }
  // Positions of the page at `first`, up to the last one that is looked at; 0: none is.
  __device__ int64_t count(int64_t first) const {
    const int64_t n = length - first;
    return !any(first, first + kPageSlots) ? 0 : n > kPageSlots ? kPageSlots : n;
  }
  // Of them, those before the window.
  __device__ int64_t skipped(int64_t first) const { return from > first ? from - first : 0; }
  // All of them in the sequence's own pages?
  __device__ bool plain(int64_t first) const { return first + count(first) <= ctx; }
};

// A page's slots, of the n positions from `begin` on: one after another from `first` on, or (-1) where the row says.
struct Slots {
  int64_t first, begin;
  const Row& row;
  __device__ int64_t operator()(int64_t j) const { return first >= 0 ? first + j : row.slot(begin + j); }
};

enum class Which : uint8_t { keys, values, both };

// n positions to the page; what it has behind them is left alone. Ends without a barrier.
//
// Copies of 16 bytes are under way all at once; whoever asked for one makes floats of it.
template <class T, class Tile>
__device__ void load_pieces(const Attention& op, int64_t kv_head, const Page<Tile>& page, const Slots& slots, int n, Which which) {
  constexpr int kSize = 16 / static_cast<int>(sizeof(T));
  const KvCache& c = op.cache;
  const int each = which == Which::both ? 2 : 1, lines = each * n;  // of the keys' and values' in turn
  const auto is_value = [&](int line) { return which == Which::both ? line % 2 : static_cast<int>(which); };
  const auto row_of = [&](int line) { return kv_row(c, op.layer, is_value(line), kv_head, slots(line / each)); };
  const auto place_of = [&](int line) {
    return is_value(line) ? page.values + line / each * page.stride : page.keys + line / each * (page.stride + 4);
  };
  const int me = static_cast<int>(threadIdx.x), line_pieces = c.head_dim / kSize;
  if (sizeof(T) == 1) {
    if (me < lines) page.scales[me] = c.scales[row_of(me)];
    sync_block();
  }
  const int most = raw_lines<Tile>(c.head_dim * static_cast<int>(sizeof(T)));
  for (int done = 0; done < lines; done += most) {  // a thread finds in `raw` what it has brought there itself
    const int pieces = (lines - done < most ? lines - done : most) * line_pieces;
#pragma unroll 1
    for (int p = me; p < pieces; p += kWarps * 32) {
      const int line = done + p / line_pieces, i = p % line_pieces * kSize;
      const T* from = static_cast<const T*>(c.data) + row_of(line) * c.head_dim + i;
      if constexpr (sizeof(T) == 4) copy_async16(place_of(line) + i, from, true);
      else copy_async16(page.raw + p * 16, from, true);
    }
    copy_async_commit();
    copy_async_wait<0>();
    if constexpr (sizeof(T) < 4) {
#pragma unroll 1
      for (int p = me; p < pieces; p += kWarps * 32) {
        const int line = done + p / line_pieces, i = p % line_pieces * kSize;
        widen<T>(*reinterpret_cast<const uint4*>(page.raw + p * 16), sizeof(T) == 1 ? page.scales[line] : 1.0f, place_of(line) + i);
      }
    }
  }
}
template <class Tile>
__device__ void load_page(const Attention& op, int64_t kv_head, const Page<Tile>& page, const Slots& slots, int64_t n, Which which) {
  const KvCache& c = op.cache;
  const int64_t dim = c.head_dim;
  if (dim * kv_element_bytes(c.dtype) % 16 == 0) {
    const int count = static_cast<int>(n);
    if (c.dtype == DType::int8) return load_pieces<int8_t>(op, kv_head, page, slots, count, which);
    if (c.dtype == DType::bf16) return load_pieces<uint16_t>(op, kv_head, page, slots, count, which);
    return load_pieces<float>(op, kv_head, page, slots, count, which);
  }
  for (int64_t j = threadIdx.x / 32; j < n; j += kWarps) {
    const int64_t s = slots(j);
    const int64_t key = kv_row(c, op.layer, 0, kv_head, s), value = kv_row(c, op.layer, 1, kv_head, s);
    for (int64_t i = threadIdx.x % 32; i < page.stride; i += 32) {
      if (which != Which::values) page.keys[j * (page.stride + 4) + i] = i < dim ? load_element(c, key, i) : 0.0f;
      if (which != Which::keys) page.values[j * page.stride + i] = i < dim ? load_element(c, value, i) : 0.0f;
    }
  }
}

// Called, so that it takes no registers from layers without a cap.
__device__ __noinline__ float capped_score(float score, float cap) { return capped(score, cap); }

// What a warp knows of one query: lane l has elements l, l + 32, ...
template <int kElements>
struct State {
  float top = -kInf, total = 0, values[kElements] = {};

  // Of positions [skipped, n) of a page: what this lane's counts, and `keep`, what the values so far do.
  __device__ float weigh(const Page<TileOf<kElements>>& page, const float* query, int skipped, int64_t n, float scale, float cap, float* keep) {
    const int lane = static_cast<int>(threadIdx.x % 32);
    const bool seen = lane >= skipped && lane < n;
    float score = -kInf;
    if (seen) {
      const float* key = page.keys + lane * (page.stride + 4);
      float sum = 0;
#pragma unroll 4
      for (int64_t i = 0; i < page.stride; i += 4) {
        const float4 q = *reinterpret_cast<const float4*>(query + i), k = *reinterpret_cast<const float4*>(key + i);
        sum = fmaf(q.x, k.x, sum);
        sum = fmaf(q.y, k.y, sum);
        sum = fmaf(q.z, k.z, sum);
        sum = fmaf(q.w, k.w, sum);
      }
      score = sum * scale;
      if (cap > 0) score = capped_score(score, cap);
    }
    const float before = top;
    top = fmaxf(top, warp_max(score));
    const float weight = seen ? exp_own(score - top) : 0.0f;
    *keep = exp_own(before - top);
    total = total * *keep + warp_sum(weight);
    return weight;
  }
  __device__ void add(const Page<TileOf<kElements>>& page, float weight, float keep, int skipped, int64_t n) {
    const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
    for (int e = 0; e < kElements; ++e) values[e] = values[e] * keep;
#pragma unroll 4
    for (int j = skipped; j < n; ++j) {
      const float w = shuffle(weight, j);
#pragma unroll
      for (int e = 0; e < kElements; ++e)
        if (lane + 32 * e < page.stride) values[e] = fmaf(w, page.values[j * page.stride + lane + 32 * e], values[e]);
    }
  }
};

// Grid (tiles of queries of a kv head, kv heads, chunks). Query i of a kv head is row i / group, head i % group of it.
template <int kElements>
__device__ void attention_chunk(const AttentionTask& task) {
  constexpr int kWarpQueries = TileOf<kElements>::kWarpQueries, kQueries = TileOf<kElements>::kQueries;
  constexpr bool kTurns = TileOf<kElements>::kTurns;
  const Attention& op = task.op;
  const int64_t dim = op.cache.head_dim, group = op.heads / op.cache.kv_heads, kv_head = blockIdx.y, chunk = blockIdx.z;
  const int64_t all = op.out.rows * group, first_query = static_cast<int64_t>(blockIdx.x) * kQueries;
  const int64_t last_query = first_query + kQueries < all ? first_query + kQueries : all;
  if (first_query >= all) return;
  const int64_t first_row = first_query / group, last_row = (last_query - 1) / group;
  const int64_t begin = chunk_begin(chunk), end = chunk_begin(chunk + 1);
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  const Page<TileOf<kElements>> page(shared_memory<float>(), dim);
  int64_t earliest = end, longest = 0;
  for (int64_t r = first_row; r <= last_row; ++r) {
    const Seen x(op.rows, r);
    if (!x.any(begin, end)) continue;
    earliest = x.from < earliest ? x.from : earliest;
    longest = x.length > longest ? x.length : longest;
  }
  if (longest <= begin) return;  // the whole block
  // A warp has every kWarps-th query, so that all work where there are few, as there are for one row.
  const auto query_of = [&](int i) { return page.queries + (i * kWarps + warp) * page.stride; };
  State<kElements> state[kWarpQueries];
  int32_t row_of[kWarpQueries], head_of[kWarpQueries];  // -1: no query
  float loaded[kWarpQueries][kElements];  // before the first is stored
#pragma unroll
  for (int i = 0; i < kWarpQueries; ++i) {
    const int64_t q = first_query + i * kWarps + warp;
    row_of[i] = q < last_query ? static_cast<int32_t>(q / group) : -1;
    head_of[i] = static_cast<int32_t>(kv_head * group + q % group);
    const float* from = row_of[i] < 0 ? nullptr : row(op.q, row_of[i]) + head_of[i] * dim;
#pragma unroll
    for (int e = 0; e < kElements; ++e) loaded[i][e] = from && lane + 32 * e < dim ? from[lane + 32 * e] : 0.0f;
  }
#pragma unroll
  for (int i = 0; i < kWarpQueries; ++i)
#pragma unroll
    for (int e = 0; e < kElements; ++e)
      if (lane + 32 * e < page.stride) query_of(i)[lane + 32 * e] = loaded[i][e];
  const Row shared_row(op.rows, first_row);  // whose pages all rows of its sequence look at together
  for (int64_t first = earliest > begin ? earliest / kPageSlots * kPageSlots : begin; first < end && first < longest; first += kPageSlots) {
    int64_t together = 0;
    for (int64_t r = first_row; r <= last_row; ++r) {
      const Row x(op.rows, r);
      if (x.seq == shared_row.seq && x.plain(first) && x.count(first) > together) together = x.count(first);
    }
    for (int64_t r = first_row - 1; r <= last_row; ++r) {  // the page of them all, then those of single rows
      const bool all_of_them = r < first_row;
      const Row x = all_of_them ? shared_row : Row(op.rows, r);
      const int64_t n = all_of_them ? together : x.seq == shared_row.seq && x.plain(first) ? 0 : x.count(first);
      if (n == 0) continue;
      sync_block();  // the last page has been used; at first, the queries are there
      const bool plain = all_of_them || x.plain(first);
      const Slots slots{plain ? int64_t{x.pages[first / kPageSlots]} * kPageSlots : -1, first, x};
      load_page(op, kv_head, page, slots, n, kTurns ? Which::keys : Which::both);
      sync_block();
      int64_t seen[kWarpQueries];
      int skipped[kWarpQueries];
      float weight[kWarpQueries], keep[kWarpQueries];
#pragma unroll
      for (int i = 0; i < kWarpQueries; ++i) {
        seen[i] = 0;
        if (row_of[i] < 0 || (!all_of_them && row_of[i] != r)) continue;
        const Row mine(op.rows, row_of[i]);
        if (all_of_them && (mine.seq != shared_row.seq || !mine.plain(first))) continue;
        seen[i] = mine.count(first), skipped[i] = static_cast<int>(mine.skipped(first));
        if (seen[i] == 0) continue;
        weight[i] = state[i].weigh(page, query_of(i), skipped[i], seen[i], op.scale, op.cap, &keep[i]);
        if constexpr (!kTurns) state[i].add(page, weight[i], keep[i], skipped[i], seen[i]);
      }
      if constexpr (kTurns) {
        sync_block();  // the keys have been used
        load_page(op, kv_head, page, slots, n, Which::values);
        sync_block();
#pragma unroll
        for (int i = 0; i < kWarpQueries; ++i)
          if (seen[i] > 0) state[i].add(page, weight[i], keep[i], skipped[i], seen[i]);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < kWarpQueries; ++i) {
    if (row_of[i] < 0 || !Seen(op.rows, row_of[i]).any(begin, end)) continue;
    float* to = task.partial + ((int64_t{row_of[i]} * op.heads + head_of[i]) * task.chunks + chunk) * (dim + 2);
    if (lane == 0) to[0] = state[i].top, to[1] = state[i].total;
#pragma unroll
    for (int e = 0; e < kElements; ++e)
      if (lane + 32 * e < dim) to[2 + lane + 32 * e] = state[i].values[e];
  }
}

// The host does not know how long rows are, but how much the page table can hold: to the next power of two, so that a
// growing text rarely asks for another grid.
int64_t most_chunks(const Attention& op) {
  return chunks_of(bucket(op.rows.page_stride) * kPageSlots + kTailMost);
}

template <int kElements>
void chunks(const AttentionTask& task, const Place& p) {
  const Attention& op = task.op;
  const int64_t queries = bucket(op.out.rows) * (op.heads / op.cache.kv_heads);
  constexpr int kQueries = TileOf<kElements>::kQueries;
  launch<attention_chunk<kElements>, kWarps * 32>(p, {(queries + kQueries - 1) / kQueries, op.cache.kv_heads, task.chunks},
                                     kWarps * 32, page_bytes<TileOf<kElements>>(op.cache.head_dim, op.cache.dtype), task);
}

void all_chunks(const AttentionTask& task, const Place& p) {
  const int64_t dim = task.op.cache.head_dim;
  if (dim <= 32) chunks<1>(task, p);
  else if (dim <= 64) chunks<2>(task, p);
  else if (dim <= 128) chunks<4>(task, p);
  else if (dim <= kUsualDim) chunks<8>(task, p);
  else chunks<16>(task, p);
}

}  // namespace

template <>
const char* refuse(const Attention& op) {
  return op.cache.head_dim > kMostDim ? "heads of more than 512 elements" : nullptr;
}
template <>
size_t workspace(const Attention& op) {
  Carve carve(nullptr);
  carve.take<float>(op.out.rows * op.heads * most_chunks(op) * (op.cache.head_dim + 2));
  return carve.used();
}

void enqueue(const Attention& op, const Place& p) {
  if (op.out.rows <= 0) return;
  const int64_t dim = op.cache.head_dim;
  const AttentionTask task{op, reinterpret_cast<float*>(p.workspace), most_chunks(op),
                           op.partial || dim % 16 ? Fragments{} : fragments_for(op.out, 0, p)};
  if (!enqueue_tiles(task, p)) all_chunks(task, p);
  enqueue_merge(task, p);
}

}  // namespace aerie::kernels::cuda

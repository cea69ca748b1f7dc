// Attention over a bf16 cache (attention_tile.h): which block goes through which chunks.
#include "kernels/cuda/attention_task.h"
#include "kernels/cuda/attention_tile.h"
#include "kernels/cuda/linear_work.h"

namespace aerie::kernels::cuda {
namespace {

// How many blocks go through the chunks of a tile of queries, and of a row that goes alone.
struct TileGrid {
  uint32_t tiles, splits, alone, alone_splits;
  AERIE_HOST_DEVICE TileGrid(int64_t rows, int64_t group, int64_t kv_heads, int64_t chunks, int64_t tiles_of_row) {
    constexpr int64_t kEnough = 528;  // blocks, four for each of 132 multiprocessors; more would wait for the first to end
    const auto splits_of = [&](int64_t n) {
      const int64_t s = kEnough / (n * kv_heads) < chunks ? kEnough / (n * kv_heads) : chunks;
      return static_cast<uint32_t>(s < 1 ? 1 : s);
    };
    tiles = static_cast<uint32_t>((rows * group + kTileQueries - 1) / kTileQueries);
    alone = static_cast<uint32_t>(rows * tiles_of_row);
    splits = splits_of(tiles);
    alone_splits = splits_of(alone);
  }
  AERIE_HOST_DEVICE uint32_t blocks() const { return tiles * splits + alone * alone_splits; }
};

struct TileTask {
  AttentionTask a;
  TileGrid grid;
  LinearWishes wishes;
};

// Behind the TileGrid's, blocks that bring the next weights near: attention leaves most of memory's time unused.
__device__ void attention_tile_ahead(const TileTask& task) {
  const uint32_t blocks = task.grid.blocks();
  if (blockIdx.x < blocks) return;
  const uint32_t part = (blockIdx.x - blocks) * gridDim.y + blockIdx.y;
  fetch_to_cache(task.wishes.next, part);
  fetch_to_cache(task.wishes.then, part);
}

// Grid (blocks of a TileGrid, kv heads).
template <int kTiles>
__device__ void attention_tile(const TileTask& task) {
  if (blockIdx.x >= task.grid.blocks()) return;
  const uint32_t shared = task.grid.tiles * task.grid.splits;
  const bool alone = blockIdx.x >= shared;
  const uint32_t at = alone ? blockIdx.x - shared : blockIdx.x, splits = alone ? task.grid.alone_splits : task.grid.splits;
  const Attention& op = task.a.op;
  AttentionTile<kTiles> tile(op, blockIdx.y, static_cast<uint32_t>(op.heads / op.cache.kv_heads), at / splits, alone);
  if (tile.first == tile.last) return;
  bool fresh = true;
  for (int64_t chunk = at % splits; chunk < task.a.chunks && !tile.done_before(chunk_begin(chunk)); chunk += splits) {
    if (!tile.take(chunk_begin(chunk), chunk_begin(chunk + 1))) continue;
    if (!fresh) sync_block();  // the last pages have been used
    tile.run(fresh);
    tile.store(task.a.partial, task.a.chunks, chunk);
    fresh = false;
  }
}

template <int kTiles>
void tile_chunks(const AttentionTask& task, const Place& p) {
  using Tile = AttentionTile<kTiles>;
  const Attention& op = task.op;
  const int64_t group = op.heads / op.cache.kv_heads;
  const TileGrid grid(bucket(op.out.rows), group, op.cache.kv_heads, task.chunks, Tile::tiles_of_row(static_cast<uint32_t>(group)));
  const LinearWishes wishes = wishes_for(p);
  const int64_t more = (wishes.parts() + op.cache.kv_heads - 1) / op.cache.kv_heads;
  launch<attention_tile<kTiles>, kTileWarps * 32, attention_tile_ahead>(p, {grid.blocks() + more, op.cache.kv_heads}, kTileWarps * 32,
                                                                        Tile::kShared, TileTask{task, grid, wishes});
}

}  // namespace

bool enqueue_tiles(const AttentionTask& task, const Place& p) {
  if (task.op.cache.dtype != DType::bf16) return false;
  switch (task.op.cache.head_dim) {
    case 32: return tile_chunks<1>(task, p), true;
    case 64: return tile_chunks<2>(task, p), true;
    case 96: return tile_chunks<3>(task, p), true;
    case 128: return tile_chunks<4>(task, p), true;
    default: return false;
  }
}

}  // namespace aerie::kernels::cuda

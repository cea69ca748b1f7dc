// Attention over a bf16 cache (attention_tile.h, attention_wide.h): which block goes through which chunks.
#include <algorithm>

#include "kernels/cuda/attention_task.h"
#include "kernels/cuda/attention_tile.h"
#include "kernels/cuda/attention_wide.h"
#include "kernels/cuda/linear_work.h"

namespace aerie::kernels::cuda {
namespace {

// Which blocks go through which chunks. A block has one tile or several (attention_tile.h, attention_wide.h): together, or
// of rows that go alone. Of a block's chunks those that exist come first, so that no other waits behind one without work.
struct TileGrid {
  Divisor kv_heads, group, tiles, alone;
  uint32_t splits, alone_splits;
  AERIE_HOST_DEVICE uint32_t blocks() const { return kv_heads.n * (tiles.n * splits + alone.n * alone_splits); }
};
template <class Tile>
TileGrid grid_for(int64_t rows, int64_t sequences, int64_t group, int64_t kv_heads, int64_t chunks) {
  const auto blocks_of = [](int64_t tiles, int64_t a_block) { return (tiles + a_block - 1) / a_block; };
  const auto splits_of = [&](int64_t blocks, int64_t enough = Tile::kEnough) {
    return static_cast<uint32_t>(std::clamp<int64_t>(enough / (blocks * kv_heads), 1, chunks));
  };
  const int64_t tiles = blocks_of(rows * group, Tile::kBlockTiles * kTileQueries);
  const int64_t alone = blocks_of(rows * Tile::tiles_of_row(static_cast<uint32_t>(group)), Tile::kAloneTiles);
  // With nobody else's text beside its own a row goes alone through its last chunk, seldom two; many rows' blocks then all run at once.
  const bool one_text = rows == 1 || sequences == 1;
  const uint32_t alone_splits = !one_text ? splits_of(alone) : Tile::kAloneTiles > 1 ? 1 : std::min(2u, splits_of(alone));
  const uint32_t splits = one_text && Tile::kAloneTiles > 1 ? splits_of(tiles, Tile::kEnough - alone * kv_heads) : splits_of(tiles);
  return {Divisor(kv_heads), Divisor(group), Divisor(tiles), Divisor(alone), splits, alone_splits};
}

struct TileTask {
  enum { kInShared = 1 };
  AttentionTask a;
  TileGrid grid;
  LinearWishes wishes;
};

// Behind the TileGrid's, blocks that bring the next weights near: attention leaves most of memory's time unused.
__device__ void attention_tile_ahead(const TileTask& task) {
  const uint32_t blocks = task.grid.blocks();
  if (blockIdx.x < blocks) return;
  fetch_to_cache(task.wishes.next, blockIdx.x - blocks);
  fetch_to_cache(task.wishes.then, blockIdx.x - blocks);
}

// Grid (blocks of a TileGrid and the wish's).
template <class Tile>
__device__ void attention_tile(const TileTask& task) {
  const TileGrid& grid = task.grid;
  if (blockIdx.x >= grid.blocks()) return;
  // First the rows that go alone, once; then what goes together; then what is left of the former.
  uint32_t at = blockIdx.x / grid.kv_heads;
  const uint32_t kv_head = blockIdx.x - at * grid.kv_heads.n, together = grid.tiles.n * grid.splits;
  const bool alone = at < grid.alone.n || at >= grid.alone.n + together;
  at -= at < grid.alone.n ? 0 : alone ? together : grid.alone.n;
  const Divisor& blocks = alone ? grid.alone : grid.tiles;
  const uint32_t split = at / blocks, splits = alone ? grid.alone_splits : grid.splits;
  Tile tile(task.a.op, grid.group, kv_head, at - split * blocks.n, alone);
  bool fresh = true;
  for (int64_t chunk = tile.first_chunk + split; chunk < tile.chunk_end && chunk < task.a.chunks; chunk += splits) {
    tile.run(static_cast<int32_t>(chunk), fresh);
    tile.store(task.a.partial, task.a.chunks, chunk);
    fresh = false;
  }
}

template <class Tile>
void tile_chunks(const AttentionTask& task, const Place& p) {
  const Attention& op = task.op;
  const TileGrid grid = grid_for<Tile>(bucket(op.out.rows), op.rows.sequences, op.heads / op.cache.kv_heads, op.cache.kv_heads, task.chunks);
  const LinearWishes wishes = wishes_for(p);
  launch<attention_tile<Tile>, Tile::kThreads, attention_tile_ahead>(p, {int64_t{grid.blocks()} + wishes.parts()}, kTileWarps * 32,
                                                                     Tile::kShared, TileTask{task, grid, wishes});
}

template <int kTiles>
bool any_chunks(const AttentionTask& task, const Place& p) {
  const Attention& op = task.op;
  const int64_t tiles = bucket(op.out.rows) * (op.heads / op.cache.kv_heads) / kTileQueries;
  if (tiles >= kWideWarps && tiles * op.cache.kv_heads >= p.options.many_tiles) tile_chunks<AttentionWide<kTiles>>(task, p);
  else tile_chunks<AttentionTile<kTiles>>(task, p);
  return true;
}

}  // namespace

bool enqueue_tiles(const AttentionTask& task, const Place& p) {
  if (task.op.cache.dtype != DType::bf16 || task.op.rows.window > 0 || task.op.cap > 0) return false;
  switch (task.op.cache.head_dim) {
    case 32: return any_chunks<1>(task, p);
    case 64: return any_chunks<2>(task, p);
    case 96: return any_chunks<3>(task, p);
    case 128: return any_chunks<4>(task, p);
    default: return false;
  }
}

}  // namespace aerie::kernels::cuda

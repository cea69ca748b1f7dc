// aerie.block/1: decoder layers of a drafter's package over blocks of rows that see each other.
#include <algorithm>

#include "core/drafter/services.h"
#include "core/drafter/shapes.h"

namespace aerie {

namespace {

constexpr int32_t kMostBlockRows = 33;  // the newest token's, and one for each level

Status fits_block(const DrafterResources& d, int32_t rows, int32_t filler) {
  const LlamaConfig& target = d.target->config();
  const DrafterConfig* const config = d.package->drafter();
  if (rows < 2 || rows > kMostBlockRows) return error(Code::invalid_argument, "a block of " + std::to_string(rows) + " rows");
  if (filler < 0 || filler >= target.vocab_size) return error(Code::mismatch, "filler " + std::to_string(filler) + " is no token of the target");
  if (!config || !config->decoder) return {};  // open_layers says so
  const LlamaConfig& c = *config->decoder;
  if (c.departures.reads_target) return error(Code::bad_format, d.package->path() + ": decoder: reads_target: blocks have keys and values of their own");
  if (c.hidden != target.hidden)
    return error(Code::mismatch, d.package->path() + ": decoder: hidden: " + std::to_string(c.hidden) + ", the target's embedding has " + std::to_string(target.hidden));
  if (int64_t{c.heads} * c.head_dim % kernels::kPanel)
    return error(Code::unsupported, d.package->path() + ": decoder: heads of " + std::to_string(int64_t{c.heads} * c.head_dim) + " columns together, no multiple of " +
                                        std::to_string(kernels::kPanel));
  return {};
}

int32_t block_open(const aerie_drafter_host* host, const aerie_package* package, int32_t rows, int32_t filler, aerie_layers** out,
                   aerie_drafter_error* err) {
  DrafterResources& d = *static_cast<DrafterResources*>(host->context);
  if (!package || !out || !d.opening || !d.package) return AERIE_D_INVALID;
  if (const Status s = fits_block(d, rows, filler); !s.ok()) return report(s, err);
  if (const Status s = open_layers(d); !s.ok()) return report(s, err);
  d.block_rows = rows;
  d.block_filler = filler;
  const std::vector<DecoderLayer>& layers = d.stack->layers;
  d.block_windows = std::any_of(layers.begin(), layers.end(), [](const DecoderLayer& w) { return w.window > 0; });
  *out = &d.layers_handle;
  return AERIE_D_OK;
}

bool is_block(const aerie_plan* plan, const aerie_layers* layers) { return layers && layers->own == plan->own && layers->own->block_rows > 0; }

int32_t block_feed(aerie_plan* plan, aerie_layers* layers, const aerie_draft_rows* rows, const aerie_tensor* x) {
  if (!is_block(plan, layers) || !rows || !rows->attention) return compute_fail(plan, "block feed: missing argument, or another drafter's layers");
  const Rows& at = rows->attention->rows;
  const LlamaConfig& c = *layers->own->package->drafter()->decoder;
  if (at.n == 0 || at.n != rows->n) return compute_fail(plan, "block feed: these rows have no positions");
  if (!is_activation(x, at.n, c.hidden) || x->rows != at.n)
    return compute_fail(plan, "block feed: shapes do not fit: " + shapes({{"x", x}}) + " for " + std::to_string(at.n) + " rows, the layers are " +
                                  std::to_string(c.hidden) + " wide");
  const DecoderStack& stack = *layers->own->stack;
  Plan& p = *plan->plan;
  kernels::Tensor angles[kMostRopeRows];
  stack.add_angles(p, at, angles);
  const kernels::Tensor kv = p.scratch(at.n, int64_t{2} * c.kv_heads * c.head_dim);
  for (int32_t i = 0; i < c.layers; ++i) {
    const DecoderLayer& layer = stack.layers[static_cast<size_t>(i)];
    record_keys_and_values(p, layer, stack.shape, layers->own->pool->cache(), i, at, angles[layer.rope], kv, from_abi(*x));
  }
  return AERIE_D_OK;
}

int32_t block_forward(aerie_plan* plan, aerie_layers* layers, const aerie_draft_rows* rows, const aerie_tensor* out) {
  if (!is_block(plan, layers) || !rows || !rows->attention) return compute_fail(plan, "block forward: missing argument, or another drafter's layers");
  const Rows& at = rows->attention->block;
  const LlamaConfig& c = *layers->own->package->drafter()->decoder;
  if (at.n == 0) return compute_fail(plan, "block forward: only the roots of a propose have blocks");
  if (!is_activation(out, at.n, c.hidden))
    return compute_fail(plan, "block forward: shapes do not fit: " + shapes({{"out", out}}) + " for " + std::to_string(at.n) + " rows, the layers are " +
                                  std::to_string(c.hidden) + " wide");
  const kernels::Tensor x = kernels::rows(from_abi(*out), 0, at.n);
  plan->plan->add(kernels::Embed{layers->own->target->embedding(), at.token, x, c.departures.embed_scale});
  record_layers(plan, at, &rows->attention->causal, x, x);
  return AERIE_D_OK;
}

}  // namespace

const aerie_service_block* block_service() {
  static const aerie_service_block table{sizeof table, 0, Walled<block_open>::call, Walled<block_feed>::call, Walled<block_forward>::call};
  return &table;
}

}  // namespace aerie

// aerie.layers/1: decoder layers of a drafter's package that are as a target's may be.
#include "core/drafter/services.h"
#include "core/drafter/shapes.h"

namespace aerie {

namespace {

// Heads of those that read the target's keys and values are as its own.
Status fits_target(const LlamaConfig& c, const LlamaConfig& target) {
  const Departures& d = c.departures;
  if (!d.reads_target) return {};
  if (target.departures.recurrent()) return error(Code::mismatch, "reads_target: the target has recurrent layers");
  for (int32_t i = 0; i < c.layers; ++i) {
    const bool wide = d.wide(i);
    const KvLayers theirs = wide ? KvLayers{target.kv_layers(true), target.departures.wide_kv_heads, target.departures.wide_head_dim}
                                 : KvLayers{target.kv_layers(false), target.kv_heads, target.head_dim};
    if (theirs.layers == 0 || theirs.kv_heads != c.kv_heads_of(i) || theirs.head_dim != c.head_dim_of(i))
      return error(Code::mismatch, "layer " + std::to_string(i) + " reads keys and values of " + std::to_string(c.kv_heads_of(i)) + " heads of " +
                                       std::to_string(c.head_dim_of(i)) + ", the target has " + std::to_string(theirs.layers) + " such layers of " +
                                       std::to_string(theirs.kv_heads) + " heads of " + std::to_string(theirs.head_dim));
  }
  return {};
}

int32_t layers_open(const aerie_drafter_host* host, const aerie_package* package, aerie_layers** out, aerie_drafter_error* err) {
  DrafterResources& d = *static_cast<DrafterResources*>(host->context);
  if (!package || !out || !d.opening || !d.package) return AERIE_D_INVALID;
  if (const Status s = open_layers(d); !s.ok()) return report(s, err);
  *out = &d.layers_handle;
  return AERIE_D_OK;
}

const LlamaConfig& config_of(const aerie_layers* layers) { return *layers->own->package->drafter()->decoder; }
int32_t layers_hidden(const aerie_layers* layers) { return config_of(layers).hidden; }
float layers_eps(const aerie_layers* layers) { return config_of(layers).rms_eps; }

int32_t layers_forward(aerie_plan* plan, aerie_layers* layers, const aerie_draft_rows* rows, const aerie_tensor* x, const aerie_tensor* out) {
  if (!layers || layers->own != plan->own || !rows) return compute_fail(plan, "layers forward: missing argument, or another drafter's layers");
  const LlamaConfig& c = config_of(layers);
  const bool of_target = c.departures.reads_target;
  if (!rows->attention) return compute_fail(plan, "layers forward: rows that attend to nothing");
  const Rows& at = of_target ? rows->attention->target : rows->attention->rows;
  if (at.n == 0 || (!of_target && at.n != rows->n)) return compute_fail(plan, "layers forward: rows of level 0 attend to nothing");
  if (!is_activation(x, at.n, c.hidden) || !is_activation(out, at.n, c.hidden) || (of_target && x->rows != at.n))
    return compute_fail(plan, "layers forward: shapes do not fit: " + shapes({{"x", x}, {"out", out}}) + " for " + std::to_string(at.n) +
                                  " rows, the layers are " + std::to_string(c.hidden) + " wide");
  record_layers(plan, at, nullptr, kernels::rows(from_abi(*x), 0, at.n), kernels::rows(from_abi(*out), 0, at.n));
  return AERIE_D_OK;
}

}  // namespace

Status open_layers(DrafterResources& d) {
  if (!d.shown_rows) return error(Code::invalid_argument, "a drafter of HOST_TOKENS is shown no rows and runs no layers");
  if (d.pool || d.stack) return error(Code::invalid_argument, "a drafter has one KV cache");
  const DrafterConfig* const config = d.package->drafter();
  if (!config || !config->decoder) return error(Code::bad_format, d.package->path() + ": decoder: there is none");
  const LlamaConfig& c = *config->decoder;
  if (const Status s = fits_target(c, d.target->config()); !s.ok()) return s.at(d.package->path() + ": decoder");
  auto stack = std::make_unique<DecoderStack>();
  AERIE_TRY(stack->load(d.weights, c));
  d.reads_target = c.departures.reads_target;
  if (!d.reads_target) {
    AERIE_ASSIGN(d.pool, KvPool::create(d.target->device(), {c.layers, c.kv_heads, c.head_dim, d.target->pool()->cache().dtype}, d.kv_positions()));
  }
  d.stack = std::move(stack);
  return {};
}

void record_layers(aerie_plan* plan, const Rows& rows, const kernels::AttentionRows* windowed, const kernels::Tensor& x, const kernels::Tensor& out) {
  const DrafterResources& own = *plan->own;
  const DecoderStack& stack = *own.stack;
  const LlamaConfig& c = *own.package->drafter()->decoder;
  Plan& p = *plan->plan;
  kernels::Tensor angles[kMostRopeRows];
  stack.add_angles(p, rows, angles);
  DecoderScratch working(p, rows.n, rows.longest, c.hidden, stack.shape, c.ffn);
  Rows within = rows;
  if (windowed) within.attention = *windowed;
  for (int32_t i = 0; i < c.layers; ++i) {
    const DecoderLayer& layer = stack.layers[static_cast<size_t>(i)];
    const kernels::KvCache& cache = own.reads_target ? own.target->pool()->cache(layer.wide) : own.pool->cache();
    record_decoder_layer(p, layer, stack.shape, cache, own.reads_target ? cache.layers - 1 : i, layer.window > 0 ? within : rows, angles[layer.rope],
                         working, i == 0 ? x : out, out);
  }
}

const aerie_service_layers* layers_service() {
  static const aerie_service_layers table{sizeof table, 0, Walled<layers_open>::call, layers_hidden, layers_eps, Walled<layers_forward>::call};
  return &table;
}

}  // namespace aerie

// aerie.compute/1: recording for plugins. A plugin may be wrong in any way, so every tensor, shape
// and index vector is checked before it becomes an op; the first failure poisons the plan.
#include <algorithm>
#include <cmath>
#include <string>

#include "core/drafter/services.h"
#include "core/drafter/shapes.h"
#include "core/model/decoder.h"
#include "core/package/rope_frequencies.h"
#include "core/package/rope_params.h"

namespace aerie {

using kernels::DType;
using kernels::Layout;
using kernels::Tensor;

int32_t compute_fail(aerie_plan* plan, const std::string& what) {
  plan->plan->fail(error(Code::plugin, "drafter " + plan->own->id + ": " + what));
  return AERIE_D_INVALID;
}

namespace {

bool present(const aerie_tensor* t) { return t && t->data; }
bool is_weight(const aerie_tensor* t, int64_t cols) {
  if (!present(t)) return false;
  const auto dtype = static_cast<DType>(t->dtype);
  return kernels::is_weight(dtype) && t->layout == 1 && t->rows > 0 && t->cols == cols && (t->scales || !kernels::has_scales(dtype));
}
// Rows to pick from: row-major f32 or bf16, or as weights are packed.
bool is_table(const aerie_tensor* t) {
  if (!present(t) || t->rows <= 0 || t->cols <= 0) return false;
  return t->layout == 0 ? t->dtype <= AERIE_DTYPE_BF16 && t->stride >= t->cols : is_weight(t, t->cols);
}
bool is_vector(const aerie_tensor* t, int64_t cols) { return is_activation(t) && t->rows == 1 && t->cols == cols; }
// Index vectors are i32, end to end: one row, or one column that is a tensor's only one.
// 0: it is none.
int64_t index_length(const aerie_tensor* t) {
  if (!t || !t->data || t->dtype != AERIE_DTYPE_I32 || t->layout != 0) return 0;
  return t->rows == 1 ? t->cols : t->cols == 1 && t->stride == 1 ? t->rows : 0;
}
bool is_index(const aerie_tensor* t, int64_t n) { return index_length(t) >= n; }
// Of an out, which may have more: kernels go by its rows.
Tensor first_rows(const aerie_tensor* out, int64_t n) {
  Tensor t = from_abi(*out);
  t.rows = n;
  return t;
}
int32_t misfit(aerie_plan* plan, const std::string& call, std::initializer_list<NamedTensor> tensors) {
  return compute_fail(plan, call + ": shapes do not fit: " + shapes(tensors));
}
Tensor optional(const aerie_tensor* t) { return present(t) ? from_abi(*t) : Tensor{}; }
const int32_t* ids(const aerie_tensor* t) { return t ? static_cast<const int32_t*>(t->data) : nullptr; }

int32_t tensor_create(const aerie_drafter_host* host, int64_t rows, int64_t cols, aerie_tensor* out) {
  auto& own = *static_cast<DrafterResources*>(host->context);
  constexpr int64_t kMaxSide = int64_t{1} << 24, kMaxElements = int64_t{1} << 32;
  if (!out || !own.opening || rows <= 0 || cols <= 0 || rows > kMaxSide || cols > kMaxSide || rows * cols > kMaxElements)
    return AERIE_D_INVALID;
  const auto bytes = static_cast<size_t>(rows * cols) * 4;
  own.tensors.reserve(own.tensors.size() + 1);  // what may throw comes before what would be lost
  void* memory = own.target->device()->allocate(bytes);
  if (!memory) return AERIE_D_NO_MEMORY;
  own.tensors.push_back(memory);
  // Zeroed, as promised: NaNs in fresh memory would look like the plugin's own.
  const auto failed = [](const Status& s) { return s.code() == Code::out_of_memory ? AERIE_D_NO_MEMORY : AERIE_D_FAILED; };
  auto queue = own.target->device()->make_queue();
  if (!queue.ok()) return failed(queue.status());
  const std::vector<char> zeros(std::min(bytes, size_t{1} << 20));
  for (size_t at = 0; at < bytes; at += zeros.size()) {
    const size_t some = std::min(zeros.size(), bytes - at);
    const kernels::Op op = kernels::Upload{static_cast<char*>(memory) + at, zeros.data(), static_cast<int64_t>(some)};
    if (const Status s = (*queue)->submit({&op, 1}); !s.ok()) return failed(s);
    if (const auto done = (*queue)->advance(kernels::kNoDeadline); !done.ok()) return failed(done.status());
  }
  *out = to_abi(kernels::matrix(memory, rows, cols));
  return AERIE_D_OK;
}

int32_t kv_create(const aerie_drafter_host* host, const aerie_kv_desc* desc, aerie_kv** out) {
  auto& own = *static_cast<DrafterResources*>(host->context);
  if (!desc || !out || !own.opening || !own.shown_rows || own.pool || desc->struct_size < sizeof(aerie_kv_desc)) return AERIE_D_INVALID;
  if (desc->layers < 1 || desc->layers > 64 || desc->kv_heads < 1 || desc->kv_heads > 1024 || desc->head_dim < 2 ||
      desc->head_dim > 1024 || desc->head_dim % 2 || !(desc->rope_theta > 0) || !std::isfinite(desc->rope_theta))
    return AERIE_D_INVALID;
  auto pool = KvPool::create(own.target->device(),
                             {desc->layers, desc->kv_heads, desc->head_dim, own.target->pool()->cache().dtype},
                             own.kv_positions());
  if (!pool.ok()) return AERIE_D_NO_MEMORY;
  RopeScaling scaling;
  if (own.package && own.package->drafter()) {  // checked when it was opened
    auto read = read_rope_scaling(*own.package->drafter());
    if (!read.ok()) return AERIE_D_INVALID;
    scaling = *read;
  }
  auto frequencies = own.weights.upload(rope_inverse_frequencies(desc->head_dim, desc->rope_theta, scaling));
  if (!frequencies.ok()) return AERIE_D_NO_MEMORY;
  own.pool = *pool;
  own.inv_freq = *frequencies;
  own.angle_scale = scaling.attention_factor;
  *out = &own.kv_handle;
  return AERIE_D_OK;
}

int32_t scratch(aerie_plan* plan, int64_t rows, int64_t cols, aerie_tensor* out) {
  if (!out || rows <= 0 || cols <= 0 || rows > (1 << 16) || cols > (1 << 24))
    return compute_fail(plan, "scratch: absurd size (" + std::to_string(rows) + ", " + std::to_string(cols) + ")");
  *out = to_abi(plan->plan->scratch(rows, cols));
  return out->data ? AERIE_D_OK : AERIE_D_NO_MEMORY;
}

int32_t embed_table(aerie_plan* plan, const Tensor& table, const aerie_tensor* index, const aerie_tensor* out) {
  const int64_t length = index_length(index);
  if (!is_activation(out) || out->cols != table.cols || length < 1)
    return misfit(plan, "embed of rows of " + std::to_string(table.cols), {{"ids", index}, {"out", out}});
  plan->plan->add(kernels::Embed{table, ids(index), first_rows(out, std::min(length, out->rows))});
  return AERIE_D_OK;
}
int32_t embed_target(aerie_plan* plan, const aerie_tensor* index, const aerie_tensor* out) {
  return embed_table(plan, plan->own->target->embedding(), index, out);
}
int32_t embed(aerie_plan* plan, const aerie_tensor* table, const aerie_tensor* index, const aerie_tensor* out) {
  // Token ids are the target's: a smaller table would be read past its end.
  if (!is_table(table)) return compute_fail(plan, "embed: the table is of a kind that has no rows to read");
  if (table->rows < plan->own->target->config().vocab_size)
    return compute_fail(plan, "embed: the table has " + std::to_string(table->rows) + " rows, the target's vocabulary " +
                                  std::to_string(plan->own->target->config().vocab_size));
  return embed_table(plan, from_abi(*table), index, out);
}

int32_t linear(aerie_plan* plan, const aerie_tensor* x, const aerie_tensor* w, const aerie_tensor* bias,
               const aerie_tensor* residual, const aerie_tensor* out) {
  if (!is_activation(x) || !is_weight(w, x->cols) || !is_activation(out, x->rows, w->rows) ||
      (present(bias) && !is_vector(bias, w->rows)) ||
      (present(residual) && !is_activation(residual, x->rows, w->rows)) || out->data == x->data)
    return misfit(plan, "linear", {{"x", x}, {"w", w}, {"bias", bias}, {"residual", residual}, {"out", out}});
  plan->plan->add(kernels::Linear{from_abi(*x), from_abi(*w), optional(bias), optional(residual), first_rows(out, x->rows)});
  return AERIE_D_OK;
}

int32_t rms_norm(aerie_plan* plan, const aerie_tensor* x, const aerie_tensor* weight, float eps,
                 const aerie_tensor* out) {
  if (!(eps >= 0)) return compute_fail(plan, "rms_norm: eps " + std::to_string(eps));
  if (!is_activation(x) || !is_vector(weight, x->cols) || !is_activation(out, x->rows, x->cols))
    return misfit(plan, "rms_norm", {{"x", x}, {"weight", weight}, {"out", out}});
  plan->plan->add(kernels::RmsNorm{from_abi(*x), from_abi(*weight), eps, first_rows(out, x->rows)});
  return AERIE_D_OK;
}

int32_t activate(aerie_plan* plan, int32_t kind, const aerie_tensor* x, const aerie_tensor* out) {
  if (kind < 0 || kind > AERIE_ACT_RELU) return compute_fail(plan, "activate: kind " + std::to_string(kind));
  if (!is_activation(x) || !is_activation(out, x->rows, x->cols)) return misfit(plan, "activate", {{"x", x}, {"out", out}});
  plan->plan->add(kernels::Activate{from_abi(*x), static_cast<kernels::Activation>(kind), first_rows(out, x->rows)});
  return AERIE_D_OK;
}

int32_t add(aerie_plan* plan, const aerie_tensor* a, const aerie_tensor* b, const aerie_tensor* out) {
  if (!is_activation(a) || !is_activation(b, a->rows, a->cols) || !is_activation(out, a->rows, a->cols))
    return misfit(plan, "add", {{"a", a}, {"b", b}, {"out", out}});
  plan->plan->add(kernels::Add{from_abi(*a), from_abi(*b), first_rows(out, a->rows)});
  return AERIE_D_OK;
}

int32_t copy_rows(aerie_plan* plan, const aerie_tensor* src, const aerie_tensor* src_index, const aerie_tensor* dst,
                  const aerie_tensor* dst_index, int64_t n) {
  if (!is_activation(src) || !is_activation(dst) || src->cols != dst->cols || n <= 0 ||
      (present(src_index) ? !is_index(src_index, n) : src->rows < n) ||
      (present(dst_index) ? !is_index(dst_index, n) : dst->rows < n))
    return misfit(plan, "copy_rows of " + std::to_string(n), {{"src", src}, {"src_index", src_index}, {"dst", dst}, {"dst_index", dst_index}});
  plan->plan->add(kernels::CopyRows{from_abi(*src), ids(src_index), from_abi(*dst), ids(dst_index), n});
  return AERIE_D_OK;
}

// `attn_in` null: the layer norms x itself.
int32_t any_decoder_layer(const char* what, aerie_plan* plan, const aerie_decoder_layer* w, aerie_kv* kv, int32_t layer,
                          const aerie_draft_rows* rows, const aerie_tensor* attn_in, const aerie_tensor* x,
                          const aerie_tensor* out) {
  const auto fail = [&](const std::string& why) { return compute_fail(plan, std::string(what) + ": " + why); };
  if (!w || !kv || !rows || !rows->attention || w->struct_size < sizeof(aerie_decoder_layer) || kv->own != plan->own || !kv->own->pool)
    return fail("missing argument");
  const kernels::KvCache& cache = kv->own->pool->cache();
  if (!is_activation(x) || x->rows != rows->n || !is_activation(out, x->rows, x->cols) || out->data == x->data ||
      layer < 0 || layer >= cache.layers || (attn_in && (!is_activation(attn_in) || attn_in->rows != rows->n)))
    return fail("rows do not fit: " + std::to_string(rows->n) + " rows, layer " + std::to_string(layer) + " of " +
                std::to_string(cache.layers) + ", " + shapes({{"x", x}, {"attn_in", attn_in}, {"out", out}}));
  if (!rows_attend(*rows)) return fail("rows of level 0 attend to nothing");
  const int64_t hidden = x->cols, q = int64_t{w->heads} * w->head_dim;
  if (w->heads < 1 || w->kv_heads != cache.kv_heads || w->head_dim != cache.head_dim || w->heads % w->kv_heads ||
      !(w->rms_eps >= 0) || !is_weight(&w->qkv, attn_in ? attn_in->cols : hidden) ||
      w->qkv.rows != (int64_t{w->heads} + 2 * int64_t{w->kv_heads}) * w->head_dim || !is_weight(&w->o, q) || w->o.rows != hidden ||
      !is_vector(&w->mlp_norm, hidden) || !is_weight(&w->gate_up, hidden) || w->gate_up.rows % 2 ||
      !is_weight(&w->down, w->gate_up.rows / 2) || w->down.rows != hidden ||
      (!attn_in && present(&w->attn_norm) && !is_vector(&w->attn_norm, hidden)) ||
      (present(&w->qkv_bias) && !is_vector(&w->qkv_bias, w->qkv.rows)))
    return fail("weights do not fit together: heads " + std::to_string(w->heads) + ", kv_heads " + std::to_string(w->kv_heads) + ", head_dim " +
                std::to_string(w->head_dim) + ", cache of " + std::to_string(cache.kv_heads) + " heads of " + std::to_string(cache.head_dim) + ", " +
                shapes({{"x", x}, {"attn_in", attn_in}, {"attn_norm", &w->attn_norm}, {"qkv", &w->qkv}, {"qkv_bias", &w->qkv_bias}, {"o", &w->o},
                        {"mlp_norm", &w->mlp_norm}, {"gate_up", &w->gate_up}, {"down", &w->down}}));
  DecoderLayer weights;
  weights.attn_norm = optional(&w->attn_norm);
  weights.qkv = from_abi(w->qkv);
  weights.qkv_bias = optional(&w->qkv_bias);
  weights.o = from_abi(w->o);
  weights.mlp_norm = from_abi(w->mlp_norm);
  weights.gate_up = from_abi(w->gate_up);
  weights.down = from_abi(w->down);
  const DecoderShape shape{w->heads, w->kv_heads, w->head_dim, w->rms_eps};
  const aerie_attention& at = *rows->attention;
  Plan& p = *plan->plan;
  if (!at.angles) {
    at.angles = p.scratch(rows->n, cache.head_dim);
    p.add(kernels::RopeAngles{at.rows.position, kv->own->inv_freq, kv->own->angle_scale, at.angles});
  }
  DecoderScratch working(p, rows->n, at.rows.longest, hidden, shape, w->gate_up.rows / 2);
  const Tensor made = first_rows(out, x->rows);
  if (attn_in)
    record_decoder_layer_from(p, weights, shape, cache, layer, at.rows, at.angles, working, from_abi(*attn_in), from_abi(*x), made);
  else
    record_decoder_layer(p, weights, shape, cache, layer, at.rows, at.angles, working, from_abi(*x), made);
  return AERIE_D_OK;
}

int32_t decoder_layer(aerie_plan* plan, const aerie_decoder_layer* w, aerie_kv* kv, int32_t layer,
                      const aerie_draft_rows* rows, const aerie_tensor* x, const aerie_tensor* out) {
  return any_decoder_layer("decoder_layer", plan, w, kv, layer, rows, nullptr, x, out);
}

int32_t decoder_layer_from(aerie_plan* plan, const aerie_decoder_layer* w, aerie_kv* kv, int32_t layer,
                           const aerie_draft_rows* rows, const aerie_tensor* attn_in, const aerie_tensor* x,
                           const aerie_tensor* out) {
  if (!attn_in) return compute_fail(plan, "decoder_layer_from: missing argument");
  return any_decoder_layer("decoder_layer_from", plan, w, kv, layer, rows, attn_in, x, out);
}

int32_t propose_hidden(aerie_plan* plan, const aerie_tensor* hidden, aerie_candidates* out) {
  const Model& target = *plan->own->target;
  if (!is_activation(hidden) || hidden->cols != target.config().hidden)
    return compute_fail(plan, "propose_hidden: hidden has the wrong shape: " + shapes({{"hidden", hidden}}) + ", the target is " +
                                  std::to_string(target.config().hidden) + " wide");
  return record_candidates(plan, target, from_abi(*hidden), out);
}

int32_t propose_logits(aerie_plan* plan, const aerie_tensor* logits, const aerie_tensor* vocab_map,
                       aerie_candidates* out) {
  if (!is_activation(logits) || (present(vocab_map) && !is_index(vocab_map, logits->cols)))
    return misfit(plan, "propose_logits", {{"logits", logits}, {"vocab_map", vocab_map}});
  return record_candidates(plan, from_abi(*logits), optional(vocab_map), out);
}

int32_t propose_head(aerie_plan* plan, const aerie_tensor* hidden, const aerie_tensor* w, const aerie_tensor* bias,
                     const aerie_tensor* vocab_map, aerie_candidates* out) {
  if (!is_activation(hidden) || !is_weight(w, hidden->cols) || (present(bias) && !is_vector(bias, w->rows)) ||
      (present(vocab_map) && !is_index(vocab_map, w->rows)))
    return misfit(plan, "propose_head", {{"hidden", hidden}, {"w", w}, {"bias", bias}, {"vocab_map", vocab_map}});
  return record_candidates(plan, LmHead{from_abi(*w), optional(bias), optional(vocab_map)}, from_abi(*hidden), out);
}

int32_t propose_level(aerie_plan* plan, int32_t level, const aerie_tensor* hidden, const aerie_tensor* w,
                      const aerie_tensor* bias, aerie_candidates* out) {
  if (!is_activation(hidden) || !is_weight(w, hidden->cols) || (present(bias) && !is_vector(bias, w->rows)))
    return misfit(plan, "propose_level", {{"hidden", hidden}, {"w", w}, {"bias", bias}});
  return record_level(plan, level, LmHead{from_abi(*w), optional(bias), {}}, from_abi(*hidden), out);
}

}  // namespace

const aerie_service_compute* compute_service() {
  static const aerie_service_compute table{
      sizeof table, 0, Walled<tensor_create>::call, Walled<kv_create>::call, Walled<scratch>::call,
      Walled<embed_target>::call, Walled<embed>::call, Walled<linear>::call, Walled<rms_norm>::call,
      Walled<activate>::call, Walled<add>::call, Walled<copy_rows>::call, Walled<decoder_layer>::call,
      Walled<decoder_layer_from>::call, Walled<propose_hidden>::call, Walled<propose_logits>::call,
      Walled<propose_head>::call, Walled<propose_level>::call};
  return &table;
}

}  // namespace aerie

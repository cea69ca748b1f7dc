#include "core/model/model.h"

#include <xxhash.h>

#include <algorithm>

namespace aerie {

using kernels::Tensor;

uint64_t vocabulary_hash(const Package& package) {
  const LlamaConfig& c = *package.target();
  const auto blob = package.blob("tokenizer");
  const int32_t sizes[2] = {c.vocab_size, c.vocab_used};
  return XXH64(blob.data(), blob.size(), XXH64(sizes, sizeof sizes, 0));
}

Model::Model(std::shared_ptr<kernels::Device> device, std::shared_ptr<const Package> package)
    : device_(device), package_(package), weights_(device, package) {}

Result<std::shared_ptr<Model>> Model::open(std::shared_ptr<kernels::Device> device,
                                           std::shared_ptr<const Package> package, const ModelOptions& options) {
  if (!package->target())
    return error(Code::mismatch, package->path() + ": a drafter package cannot be opened as a model");
  std::shared_ptr<Model> model(new Model(std::move(device), std::move(package)));
  AERIE_TRY(model->load(options));
  return model;
}

Status Model::load(const ModelOptions& options) {
  fast_prefill_ = options.fast_prefill;
  if (fast_prefill_)
    if (const Status s = device_->load_fast_linear(); !s.ok()) return s.at("prefill fast");
  const LlamaConfig& c = config();
  const auto get = [&](const std::string& name, Tensor* out) -> Status {
    AERIE_ASSIGN(*out, weights_.tensor(name));
    return {};
  };
  AERIE_TRY(get("embed", &embed_));
  AERIE_TRY(get("norm", &norm_));
  if (c.tied) lm_head_ = embed_;
  else AERIE_TRY(get("lm_head", &lm_head_));
  if (package_->has("candidate.up")) {
    AERIE_TRY(get("candidate.down", &candidate_head_.down));
    AERIE_TRY(get("candidate.up", &candidate_head_.up));
  }
  AERIE_TRY(stack_.load(weights_, c));
  vocab_hash_ = vocabulary_hash(*package_);
  // Four whole texts of a model that reads 131,072 tokens would be more than most machines have.
  const int64_t positions =
      options.kv_positions > 0 ? options.kv_positions : std::clamp<int64_t>(int64_t{4} * c.max_context, 4096, 32768);
  const int64_t state_floats = c.recurrent_layers() * stack_.delta.shape.floats();
  const KvLayers wide{c.kv_layers(true), c.departures.wide_kv_heads, c.departures.wide_head_dim};
  AERIE_ASSIGN(pool_, KvPool::create(device_, {c.kv_layers(false), c.kv_heads, c.head_dim, options.kv_dtype, wide}, positions, state_floats));
  stack_.delta.states = pool_->states();
  kv_full_ = options.kv_full;
  if (!options.keep_prefixes || recurrent()) return {};  // keys and values alone are no beginning
  prefixes_ = std::make_unique<PrefixIndex>(pool_);
  pool_->on_shortage([this] { return prefixes_->drop_one(*pool_); });
  return {};
}

Tensor Model::forward(Plan& plan, const Rows& rows, std::span<const int32_t> taps, const Tensor& features) const {
  const TappedRows all{taps, 0, features};
  return forward(plan, rows, features ? std::span<const TappedRows>(&all, 1) : std::span<const TappedRows>());
}

Tensor Model::forward(Plan& plan, const Rows& rows, std::span<const TappedRows> tapped, std::vector<DeltaInputs>* kept, int64_t kept_rows) const {
  const LlamaConfig& c = config();
  const int64_t n = rows.n, hidden = c.hidden;
  const Tensor x = plan.scratch(n, hidden), final = plan.scratch(n, hidden);
  DecoderScratch scratch(plan, n, rows.longest, hidden, stack_.shape, c.ffn);
  const auto tap = [&](int32_t layer, const Tensor& at) {
    for (const TappedRows& t : tapped)
      for (size_t i = 0; i < t.taps.size(); ++i)
        if (t.taps[i] == layer)
          plan.add(kernels::CopyRows{kernels::rows(at, t.first, t.out.rows), nullptr,
                                     kernels::columns(t.out, static_cast<int64_t>(i) * hidden, hidden), nullptr,
                                     t.out.rows});
  };
  plan.add(kernels::Embed{embed_, rows.token, x, c.departures.embed_scale});
  Tensor angles[kMostRopeRows];
  stack_.add_angles(plan, rows, angles);
  const Tensor inputs = stack_.add_inputs(plan, rows, x);
  const int64_t width = c.departures.layer_inputs;
  if (kept) kept->clear();
  for (int32_t i = 0; i < c.layers; ++i) {
    const DecoderLayer& layer = stack_.layers[static_cast<size_t>(i)];
    tap(i, x);
    const bool is_recurrent = c.departures.recurrent(i);
    if (kept && is_recurrent) kept->emplace_back(plan, kept_rows, stack_.delta.shape);
    record_decoder_layer(plan, layer, stack_.shape, pool_->cache(layer.wide), layer.number, rows, angles[layer.rope], scratch, x, x,
                         kept && is_recurrent ? &kept->back() : nullptr, inputs ? kernels::columns(inputs, i * width, width) : Tensor{});
  }
  tap(c.layers, x);
  plan.add(kernels::RmsNorm{x, norm_, c.rms_eps, final});
  tap(kFinalFeature, final);
  return final;
}

Tensor Model::logits(Plan& plan, const Tensor& hidden) const {
  const Tensor out = plan.scratch(hidden.rows, config().vocab_size);
  plan.add(kernels::Linear{hidden, lm_head_, {}, {}, out});
  if (const float cap = config().departures.logit_cap; cap > 0) plan.add(kernels::SoftCap{out, cap, out});
  return out;
}

}  // namespace aerie

#include "core/model/model.h"

#include <xxhash.h>

#include <algorithm>
#include <cmath>

#include "core/package/rope_frequencies.h"
#include "core/platform/file.h"

namespace aerie {

using kernels::Tensor;

DeviceWeights::DeviceWeights(std::shared_ptr<kernels::Device> device, std::shared_ptr<const Package> package)
    : device_(std::move(device)), package_(std::move(package)) {}

DeviceWeights::~DeviceWeights() {
  for (void* p : mapped_) device_->unmap_host(p);
  for (void* p : owned_) device_->release(p);
}

Result<Tensor> DeviceWeights::tensor(std::string_view name) {
  AERIE_ASSIGN(Tensor t, package_->tensor(name));
  const auto bring = [&](void*& p, int64_t bytes) -> Status {
    platform::will_need({static_cast<const uint8_t*>(p), static_cast<size_t>(bytes)});
    mapped_.reserve(mapped_.size() + 1);  // what may throw comes before what would be lost
    void* device = device_->map_host(p, static_cast<size_t>(bytes));
    if (!device) return device_->no_memory(package_->path() + ": " + std::string(name));
    mapped_.push_back(device);
    p = device;
    return {};
  };
  AERIE_TRY(bring(t.data, kernels::data_bytes(t.dtype, t.layout, t.rows, t.cols)));
  if (t.scales) AERIE_TRY(bring(t.scales, kernels::scale_bytes(t.dtype, t.rows, t.cols)));
  return t;
}

Result<Tensor> DeviceWeights::upload(std::span<const float> values) {
  owned_.reserve(owned_.size() + 1);
  void* memory = device_->allocate(values.size_bytes());
  if (!memory) return device_->no_memory(package_->path());
  owned_.push_back(memory);
  AERIE_ASSIGN(auto queue, device_->make_queue());
  const kernels::Op op = kernels::Upload{memory, values.data(), static_cast<int64_t>(values.size_bytes())};
  AERIE_TRY(queue->submit({&op, 1}));
  AERIE_ASSIGN(const auto state, queue->advance(kernels::kNoDeadline));
  (void)state;
  return kernels::matrix(memory, 1, static_cast<int64_t>(values.size()));
}

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
  const Departures& departures = c.departures;
  shape_ = {c.heads, c.kv_heads, c.head_dim, c.rms_eps, departures.gelu ? kernels::Activation::gelu_tanh : kernels::Activation::silu,
            departures.attention_scale, departures.residual_scale, departures.experts, departures.experts_used, departures.norm_experts,
            departures.sigmoid_experts, departures.expert_scale, departures.dense_ffn, departures.shared_ffn, departures.glu_limit,
            departures.output_gate, departures.recurrent() ? &delta_ : nullptr};
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
  layers_.resize(static_cast<size_t>(c.layers));
  for (int32_t i = 0; i < c.layers; ++i) AERIE_TRY(load_layer(i));
  if (departures.recurrent()) AERIE_TRY(load_delta());
  AERIE_TRY(load_ropes());
  vocab_hash_ = vocabulary_hash(*package_);
  // Four whole texts of a model that reads 131,072 tokens would be more than most machines have.
  const int64_t positions =
      options.kv_positions > 0 ? options.kv_positions : std::clamp<int64_t>(int64_t{4} * c.max_context, 4096, 32768);
  const int64_t state_floats = (c.layers - c.attention_layers()) * delta_.shape.floats();
  AERIE_ASSIGN(pool_, KvPool::create(device_, {c.attention_layers(), c.kv_heads, c.head_dim, options.kv_dtype}, positions, state_floats));
  delta_.states = pool_->states();
  kv_full_ = options.kv_full;
  if (!options.keep_prefixes || recurrent()) return {};  // keys and values alone are no beginning
  prefixes_ = std::make_unique<PrefixIndex>(pool_);
  pool_->on_shortage([this] { return prefixes_->drop_one(*pool_); });
  return {};
}

Status Model::load_layer(int32_t i) {
  const LlamaConfig& c = config();
  const Departures& departures = c.departures;
  const auto get = [&](const std::string& name, Tensor* out) -> Status {
    AERIE_ASSIGN(*out, weights_.tensor(name));
    return {};
  };
  DecoderLayer& w = layers_[static_cast<size_t>(i)];
  const std::string at = "layers." + std::to_string(i) + ".";
  if (departures.norms != Departures::Norms::after) {
    AERIE_TRY(get(at + "attn_norm", &w.attn_norm));
    AERIE_TRY(get(at + "mlp_norm", &w.mlp_norm));
  }
  if (departures.norms != Departures::Norms::before) {
    AERIE_TRY(get(at + "attn_post_norm", &w.attn_post_norm));
    AERIE_TRY(get(at + "mlp_post_norm", &w.mlp_post_norm));
  }
  if (!departures.windows.empty()) w.window = departures.windows[static_cast<size_t>(i)];
  if (departures.recurrent(i)) {
    DeltaWeights& d = w.delta;
    const std::pair<const char*, Tensor*> of_delta[] = {{"in", &d.in}, {"gates", &d.gates}, {"conv", &d.conv}, {"decay", &d.decay}, {"norm", &d.norm}, {"out", &d.out}};
    for (const auto& [name, tensor] : of_delta) AERIE_TRY(get(at + "delta." + name, tensor));
    delta_convs_.push_back(d.conv);
  } else {
    AERIE_TRY(get(at + "attn.qkv", &w.qkv));
    if (c.qkv_bias) AERIE_TRY(get(at + "attn.qkv.bias", &w.qkv_bias));
    if (c.qk_norm) {
      AERIE_TRY(get(at + "attn.q_norm", &w.q_norm));
      AERIE_TRY(get(at + "attn.k_norm", &w.k_norm));
    }
    if (departures.sinks) AERIE_TRY(get(at + "attn.sinks", &w.sinks));
    if (departures.output_gate) AERIE_TRY(get(at + "attn.gate", &w.gate));
    AERIE_TRY(get(at + "attn.o", &w.o));
    if (departures.o_bias) AERIE_TRY(get(at + "attn.o.bias", &w.o_bias));
  }
  const bool dense = departures.experts == 0 || i < departures.dense_layers;
  const std::string mlp = at + (dense ? "mlp." : "mlp.experts.");
  if (!dense) AERIE_TRY(get(at + "mlp.router", &w.router));
  AERIE_TRY(get(mlp + "gate_up", &w.gate_up));
  AERIE_TRY(get(mlp + "down", &w.down));
  if (dense) return {};
  if (departures.expert_choice) AERIE_TRY(get(at + "mlp.router.choice", &w.router_choice));
  if (departures.shared_ffn > 0) {
    AERIE_TRY(get(at + "mlp.shared.gate_up", &w.shared_gate_up));
    AERIE_TRY(get(at + "mlp.shared.down", &w.shared_down));
  }
  if (departures.shared_gate) AERIE_TRY(get(at + "mlp.shared.gate", &w.shared_gate));
  if (!departures.expert_bias) return {};
  AERIE_TRY(get(at + "mlp.router.bias", &w.router_bias));
  AERIE_TRY(get(mlp + "gate_up.bias", &w.gate_up_bias));
  AERIE_TRY(get(mlp + "down.bias", &w.down_bias));
  return {};
}

// Vectors as DeltaRule wants them are x / |x|, those of queries over sqrt(key_dim); what RmsNorm makes is sqrt(key_dim) times as long.
Status Model::load_delta() {
  const Departures& d = config().departures;
  delta_.shape = {d.delta_key_heads, d.delta_heads, d.delta_key_dim, d.delta_value_dim, d.delta_taps};
  const kernels::FpEnv env;
  const auto dim = static_cast<size_t>(d.delta_key_dim);
  AERIE_ASSIGN(delta_.q_scale, weights_.upload(std::vector<float>(dim, 1.0f / static_cast<float>(d.delta_key_dim))));
  AERIE_ASSIGN(delta_.k_scale, weights_.upload(std::vector<float>(dim, static_cast<float>(1 / std::sqrt(static_cast<double>(d.delta_key_dim))))));
  return {};
}

Status Model::load_ropes() {
  const LlamaConfig& c = config();
  if (c.rope_scaling.kind != RopeScaling::Kind::listed) {
    AERIE_ASSIGN(const Tensor made, weights_.upload(rope_inverse_frequencies(c.head_dim, c.rope_theta, c.rope_scaling)));
    ropes_ = {{made, c.rope_scaling.attention_factor}};
    return {};
  }
  const std::string name = "rope.frequencies";
  AERIE_ASSIGN(const Tensor listed, package_->tensor(name));
  AERIE_ASSIGN(const Tensor here, weights_.tensor(name));
  const int64_t half = c.head_dim / 2;
  for (int64_t i = 0; i < listed.rows; ++i) {
    const float* row = static_cast<const float*>(listed.data) + i * listed.stride;
    if (!std::all_of(row, row + half + 1, [](float v) { return std::isfinite(v) && v >= 0; }))
      return error(Code::bad_format, package_->path() + ": " + name + ": row " + std::to_string(i) + ": negative or not finite");
    ropes_.push_back({kernels::rows(kernels::columns(here, 0, half), i, 1), row[half]});
  }
  return {};
}

Tensor Model::forward(Plan& plan, const Rows& rows, std::span<const int32_t> taps, const Tensor& features) const {
  const TappedRows all{taps, 0, features};
  return forward(plan, rows, features ? std::span<const TappedRows>(&all, 1) : std::span<const TappedRows>());
}

Tensor Model::forward(Plan& plan, const Rows& rows, std::span<const TappedRows> tapped, std::vector<DeltaInputs>* kept) const {
  const LlamaConfig& c = config();
  const int64_t n = rows.n, hidden = c.hidden;
  const Tensor x = plan.scratch(n, hidden), final = plan.scratch(n, hidden);
  DecoderScratch scratch(plan, n, rows.longest, hidden, shape_, c.ffn);
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
  for (size_t i = 0; i < ropes_.size(); ++i) {
    angles[i] = plan.scratch(n, c.head_dim);
    plan.add(kernels::RopeAngles{rows.position, ropes_[i].frequencies, ropes_[i].scale, angles[i]});
  }
  if (kept) kept->clear();
  int32_t attended = 0, recurrent = 0;
  for (int32_t i = 0; i < c.layers; ++i) {
    const auto l = static_cast<size_t>(i);
    const auto turn = c.departures.layer_rope.empty() ? size_t{0} : static_cast<size_t>(c.departures.layer_rope[l]);
    tap(i, x);
    const bool is_recurrent = c.departures.recurrent(i);
    if (kept && is_recurrent) kept->emplace_back(plan, n, delta_.shape);
    record_decoder_layer(plan, layers_[l], shape_, pool_->cache(), is_recurrent ? recurrent++ : attended++, rows, angles[turn], scratch, x, x,
                         kept && is_recurrent ? &kept->back() : nullptr);
  }
  tap(c.layers, x);
  plan.add(kernels::RmsNorm{x, norm_, c.rms_eps, final});
  tap(kFinalFeature, final);
  return final;
}

Tensor Model::logits(Plan& plan, const Tensor& hidden) const {
  const Tensor out = plan.scratch(hidden.rows, config().vocab_size);
  plan.add(kernels::Linear{hidden, lm_head_, {}, {}, out});
  return out;
}

}  // namespace aerie

#include "tests/gpu/passes.h"

#include <numeric>

namespace aerie::gpu_bench {

Working::Layer::Layer(Bench& b, const Shape& s, DType t)
    : qkv(b.weight(t, s.qkv(), s.hidden)),
      o(b.weight(t, s.hidden, int64_t{s.heads} * s.dim)),
      gate_up(b.weight(t, 2 * s.ffn, s.hidden)),
      down(b.weight(t, s.hidden, s.ffn)) {}

Working::Working(Bench& b, const Shape& s, int64_t layers, int32_t context)
    : x(b.f32(kRows, s.hidden, 0.1f)), normed(b.f32(kRows, s.hidden, 0)), shape_(s) {
  const int32_t pages = (context + kPageSlots - 1) / kPageSlots;
  cache_ = {nullptr, pages * kPageSlots + kRows, static_cast<int32_t>(layers), s.kv_heads, s.dim, DType::bf16, nullptr};
  const int64_t kv_bytes = int64_t{2} * layers * cache_.slots * s.kv_heads * s.dim * 2;
  b.fill(cache_.data = b.memory(kv_bytes), kv_bytes);
  attn_ = b.f32(kRows, int64_t{s.heads} * s.dim, 0);
  qkv_ = b.f32(kRows, s.qkv(), 0);
  gate_up_ = b.f32(kRows, 2 * s.ffn, 0);
  act_ = b.f32(kRows, s.ffn, 0);
  angles_ = b.f32(kRows, s.dim, 0);
  norm_ = b.f32(1, s.hidden, 1.0f);
  frequencies_ = b.f32(1, s.dim / 2, 0.01f);
  std::vector<int32_t> page(static_cast<size_t>(pages)), own(kRows), slot(kRows);
  std::iota(page.begin(), page.end(), 0);
  std::iota(own.begin(), own.end(), 0);
  std::iota(slot.begin(), slot.end(), pages * kPageSlots);
  position = b.put(std::vector<int32_t>(kRows, context - 1));
  slots_ = b.put(slot);
  look_ = {b.put(page), pages, b.put(std::vector<int32_t>(kRows, 0)), position, b.put(own),
           b.put(std::vector<int32_t>(kRows, 1)), slots_, 1};
}

void Working::angles(std::vector<Op>& plan, int64_t n) const {
  plan.push_back(RopeAngles{position, frequencies_, 1.0f, rows(angles_, 0, n)});
}

void Working::layer(std::vector<Op>& plan, const Layer& w, int32_t index, int64_t n) const {
  const auto some = [&](const Tensor& t) { return rows(t, 0, n); };
  plan.push_back(RmsNorm{some(x), norm_, 1e-5f, some(normed)});
  plan.push_back(Linear{some(normed), w.qkv, {}, {}, some(qkv_)});
  plan.push_back(RopeAndStore{some(qkv_), some(angles_), shape_.heads, cache_, index, slots_});
  plan.push_back(Attention{columns(some(qkv_), 0, int64_t{shape_.heads} * shape_.dim), shape_.heads, cache_, index, look_,
                           0.088f, some(attn_), {}});
  plan.push_back(Linear{some(attn_), w.o, {}, some(x), some(x)});
  plan.push_back(RmsNorm{some(x), norm_, 1e-5f, some(normed)});
  plan.push_back(Linear{some(normed), w.gate_up, {}, {}, some(gate_up_)});
  plan.push_back(GatedActivate{some(gate_up_), Activation::silu, some(act_)});
  plan.push_back(Linear{some(act_), w.down, {}, some(x), some(x)});
}

Tensor Working::hidden(std::vector<Op>& plan, int64_t n) const {
  plan.push_back(RmsNorm{rows(x, 0, n), norm_, 1e-5f, rows(normed, 0, n)});
  return rows(normed, 0, n);
}

namespace {
std::vector<Working::Layer> make_layers(Bench& b, const Shape& s, DType t) {
  std::vector<Working::Layer> layers;
  for (int64_t l = 0; l < s.layers; ++l) layers.emplace_back(b, s, t);
  return layers;
}

// A walk from each row, so that all draw, as those of a tree do.
std::vector<WalkSeq> each_row() {
  std::vector<WalkSeq> seqs(Working::kRows);
  for (size_t i = 0; i < seqs.size(); ++i) seqs[i].root_row = static_cast<int32_t>(i);
  return seqs;
}
}  // namespace

TargetPass::TargetPass(Bench& b, const Shape& s, DType t, int32_t context)
    : shape_(s),
      layers_(make_layers(b, s, t)),
      head_(b.weight(t, s.vocab, s.hidden)),
      working_(b, s, s.layers, context),
      logits_(b.f32(Working::kRows, s.vocab, 0)),
      none_(b.put(std::vector<int32_t>(Working::kRows, -1))),
      seqs_(b.put(each_row())),
      out_(b.memory(Working::kRows * walk_out_bytes(1))),
      result_(static_cast<size_t>(Working::kRows * walk_out_bytes(1))) {}

std::vector<Op> TargetPass::plan(int64_t n) {
  std::vector<Op> plan;
  working_.angles(plan, n);
  for (size_t l = 0; l < layers_.size(); ++l) working_.layer(plan, layers_[l], static_cast<int32_t>(l), n);
  const Tensor logits = rows(logits_, 0, n);
  plan.push_back(Linear{working_.hidden(plan, n), head_, {}, {}, logits});
  plan.push_back(Walk{logits, static_cast<int32_t>(shape_.vocab), working_.position, none_, none_, seqs_,
                      static_cast<int32_t>(n), 1, out_});
  plan.push_back(Download{result_.data(), out_, n * walk_out_bytes(1)});
  return plan;
}

std::vector<std::pair<std::string, std::vector<Op>>> TargetPass::parts(int64_t n) const {
  static const char* const kNames[] = {"norm", "qkv", "rope and store", "attention", "o", "norm", "gate and up", "activate", "down"};
  std::vector<std::pair<std::string, std::vector<Op>>> parts;
  for (size_t i = 0; i < std::size(kNames); ++i) {
    parts.push_back({kNames[i], {}});
    for (size_t l = 0; l < layers_.size(); ++l) {
      std::vector<Op> layer;
      working_.layer(layer, layers_[l], static_cast<int32_t>(l), n);
      parts.back().second.push_back(layer.at(i));
    }
  }
  const Tensor logits = rows(logits_, 0, n);
  parts.push_back({"head", {Linear{rows(working_.normed, 0, n), head_, {}, {}, logits}}});
  parts.push_back({"walk", {Walk{logits, static_cast<int32_t>(shape_.vocab), working_.position, none_, none_, seqs_,
                                 static_cast<int32_t>(n), 1, out_}}});
  return parts;
}

std::vector<Op> TargetPass::widest(Bench& b, int64_t n, bool fast) const {
  return {Linear{b.f32(n, shape_.hidden, 0.1f), layers_[0].gate_up, {}, {}, b.f32(n, 2 * shape_.ffn, 0.0f), fast}};
}

EagleLevel::EagleLevel(Bench& b, const Shape& s, DType t, int32_t context)
    : shape_(s),
      fc_(b.weight(t, s.hidden, 2 * s.hidden)),
      head_(b.weight(t, s.vocab, s.hidden)),
      layer_(b, s, t),
      working_(b, s, 1, context),
      input_(b.f32(Working::kRows, 2 * s.hidden, 0.1f)),
      partial_(b.f32(Working::kRows, topk_partial_cols(s.vocab, kBest), 0)),
      token_(b.f32(Working::kRows, kBest, 0)),
      logp_(b.f32(Working::kRows, kBest, 0)),
      result_(static_cast<size_t>(Working::kRows) * kBest * 8) {}

std::vector<Op> EagleLevel::plan(int64_t n) {
  std::vector<Op> plan;
  working_.angles(plan, n);
  plan.push_back(Linear{rows(input_, 0, n), fc_, {}, {}, rows(working_.x, 0, n)});
  working_.layer(plan, layer_, 0, n);
  const LinearTopK head{working_.hidden(plan, n), head_, {}, kBest, static_cast<int32_t>(shape_.vocab), nullptr, nullptr,
                        rows(partial_, 0, n), static_cast<int32_t*>(token_.data), static_cast<float*>(logp_.data)};
  plan.push_back(head);
  plan.push_back(MergeTopK{head});
  plan.push_back(Download{result_.data(), token_.data, n * kBest * 4});
  plan.push_back(Download{result_.data() + n * kBest * 4, logp_.data, n * kBest * 4});
  return plan;
}

}  // namespace aerie::gpu_bench

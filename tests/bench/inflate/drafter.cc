// Drafter packages: every tensor name of every format says which axes are residual vectors, heads or vocabulary.
#include <cmath>
#include <regex>

#include "parts.h"

namespace aerie::inflate {

namespace {

// An integer parameter in [1, most]; absent: the fallback.
Result<int32_t> param(const Package& package, const std::string& name, int32_t fallback, int32_t most) {
  for (const auto& p : package.drafter()->params) {
    if (p.name != name) continue;
    if (!(p.value >= 1 && p.value <= most) || p.value != std::floor(p.value))
      return error(Code::mismatch, package.path() + ": parameter " + name + ": not an integer from 1 to " + std::to_string(most));
    return static_cast<int32_t>(p.value);
  }
  return fallback;
}

struct Drafter {
  const Job& job;
  const LlamaConfig& small_target;
  const Shape& big;
  Parts parts;
  Maps maps{};

  // Rows over a vocabulary of `small` ids, grown in proportion to the target's.
  int32_t grown(int32_t small) const {
    return static_cast<int32_t>(std::llround(static_cast<double>(small) * big.vocab / small_target.vocab_size));
  }
  Map vocabulary(int64_t small) const {
    return maps.rows_from(static_cast<int32_t>(small), grown(static_cast<int32_t>(small)), kNoise);
  }
  int32_t groups(const TensorInfo& t) const { return static_cast<int32_t>(t.cols / small_target.hidden); }

  Status tensor(const TensorInfo& t, PackageWriter& writer) {
    const std::string& n = t.name;
    const auto is = [&](const char* pattern) { return std::regex_match(n, std::regex(pattern)); };
    if (is("fc|fc_in|heads\\.\\d+\\.\\d+\\.linear|heads\\.\\d+\\.res_connection"))
      return parts.matrix(n, parts.residual_rows(), parts.residual_columns(groups(t)));
    if (is("fc\\.bias|heads\\.\\d+\\.\\d+\\.linear\\.bias|heads\\.\\d+\\.res_connection\\.bias"))
      return parts.vector(n, parts.residual_rows(), 1, 0);
    if (is("input_norm|hidden_norm|norm")) return parts.norm(n);
    if (is("lm_head|heads\\.\\d+\\.lm_head")) return parts.matrix(n, vocabulary(t.rows), parts.residual_columns());
    if (is("heads\\.\\d+\\.lm_head\\.bias")) return parts.vector(n, vocabulary(t.cols), 1, 0);
    if (n == "embed") {
      Map columns = parts.residual_columns();
      for (int32_t& c : columns) c = c == kQuiet ? kHot : c;
      return parts.matrix(n, vocabulary(t.rows), columns);
    }
    if (n == "vocab_map") {  // further draft ids mean tokens that can never be drawn
      AERIE_ASSIGN(const kernels::Tensor map, job.small->tensor(n));
      if (map.dtype != kernels::DType::i32 || map.rows != 1)
        return error(Code::mismatch, job.small->path() + ": tensor vocab_map: not a vector of i32");
      std::vector<int32_t> ids(static_cast<size_t>(grown(static_cast<int32_t>(t.cols))), big.vocab - 1);
      std::copy_n(static_cast<const int32_t*>(map.data), t.cols, ids.begin());
      return writer.add_tensor(n, kernels::matrix(ids.data(), 1, static_cast<int64_t>(ids.size()), kernels::DType::i32));
    }
    std::smatch m;
    if (std::regex_match(n, m, std::regex("layers\\.(\\d{1,4})\\.attn\\.qkv"))) {  // brings the rest of its layer along
      const int32_t i = std::stoi(m[1]);
      return parts.layer(i, i, groups(t));
    }
    if (is("layers\\.\\d+\\.attn\\.[qk]_norm")) {  // of a head, whose size stays
      Map same;
      for (int32_t i = 0; i < t.cols; ++i) same.push_back(i);
      return parts.vector(n, same, 1, 1);
    }
    if (is("layers\\.\\d+\\.(attn_norm|attn\\.qkv\\.bias|attn\\.o|mlp_norm|mlp\\.gate_up|mlp\\.down)")) return {};
    return error(Code::unsupported, job.small->path() + ": tensor " + n + ": inflate does not know it");
  }
};

Status inflate_model(const Job& job, const Job& target) {
  const LlamaConfig &small = *job.small->target(), &t = *target.small->target();
  const auto scaled = [](int32_t mine, int32_t theirs, int32_t big) {
    return static_cast<int32_t>(std::lround(static_cast<double>(mine) * big / theirs / 32)) * 32;
  };
  Job own = job;
  own.big = {scaled(small.hidden, t.hidden, target.big.hidden), std::max(small.layers, small.layers * target.big.layers / t.layers),
             std::max(small.heads, small.heads * target.big.heads / t.heads),
             std::max(small.kv_heads, small.kv_heads * target.big.kv_heads / t.kv_heads),
             scaled(small.ffn, t.ffn, target.big.ffn), target.big.vocab, 0};
  if (own.big.heads % own.big.kv_heads) own.big.heads = own.big.kv_heads * (small.heads / small.kv_heads);
  return inflate_target(own);
}

}  // namespace

Status inflate_drafter(const Job& job, const Job& target) {
  if (job.small->target()) return inflate_model(job, target);
  const LlamaConfig& t = *target.small->target();
  const DrafterConfig& d = *job.small->drafter();
  if (d.target_fingerprint != target.small->fingerprint())
    return error(Code::mismatch, job.small->path() + ": made for another target than " + target.small->path());
  const Shape& b = target.big;
  AERIE_ASSIGN(const int32_t hidden, param(*job.small, "hidden", t.hidden, 1 << 20));
  if (hidden != t.hidden)
    return error(Code::unsupported, job.small->path() + ": parameter hidden: a head of another width than its target");
  if (d.decoder && d.decoder->departs()) return error(Code::unsupported, job.small->path() + ": decoder: layers that depart from Llama's");
  // Heads without decoder layers (Medusa, Hydra) have none of these; their `heads` are something else.
  AERIE_ASSIGN(int32_t head_dim, param(*job.small, "head_dim", 0, 1024));
  if (d.decoder) head_dim = d.decoder->head_dim;
  const bool layers = head_dim > 0;
  int32_t heads = 1, kv_heads = 1, ffn = 32;
  if (d.decoder) heads = d.decoder->heads, kv_heads = d.decoder->kv_heads, ffn = d.decoder->ffn;
  if (layers && !d.decoder) {
    AERIE_ASSIGN(heads, param(*job.small, "heads", 0, 4096));
    AERIE_ASSIGN(kv_heads, param(*job.small, "kv_heads", heads, 4096));
    AERIE_ASSIGN(ffn, param(*job.small, "ffn", 0, 1 << 20));
  }
  if (layers) {
    if (heads < 1 || heads % kv_heads || head_dim % 32 || ffn < 32 || ffn % 32)
      return error(Code::unsupported, job.small->path() + ": " + std::to_string(heads) + " / " + std::to_string(kv_heads) + " heads of " +
                                          std::to_string(head_dim) + ", ffn " + std::to_string(ffn) +
                                          ": head size and ffn must be multiples of 32, kv_heads divide heads");
  }
  // The target's big groups where they hold the drafter's, else groups of the drafter's own size.
  int32_t big_heads = b.heads, big_kv = b.kv_heads;
  if (!place_heads(heads, kv_heads, big_heads, big_kv).ok()) {
    big_kv = std::max(kv_heads, b.heads / (heads / kv_heads));
    big_heads = big_kv * (heads / kv_heads);
  }
  AERIE_ASSIGN(Heads placed, place_heads(heads, kv_heads, big_heads, big_kv));
  AERIE_ASSIGN(auto writer, PackageWriter::create(job.output));
  const int32_t big_ffn = std::max(b.ffn, ffn);
  Drafter drafter{job, t, b, Parts(job, *writer, {t.hidden, b.hidden, ffn, big_ffn, layers ? head_dim : 32, std::move(placed)})};
  for (const TensorInfo& info : job.small->tensors()) AERIE_TRY(drafter.tensor(info, *writer));

  Map first_of;
  (void)place_layers(t.layers, b.layers, &first_of);
  DrafterConfig c = d;
  c.target_fingerprint = inflated_fingerprint(target);
  for (auto& p : c.params) {
    if (p.name == "hidden") p.value = b.hidden;
    else if (p.name == "heads" && layers) p.value = big_heads;
    else if (p.name == "kv_heads") p.value = big_kv;
    else if (p.name == "ffn") p.value = big_ffn;
    else if (p.name == "rms_eps") p.value = static_cast<double>(scaled_eps(p.value, t.hidden, b.hidden));
    else if (p.name == "vocab_size") p.value = b.vocab;
    else if (p.name == "draft_vocab") p.value = drafter.grown(static_cast<int32_t>(p.value));
    else if (p.name.starts_with("tap.")) {
      if (!(p.value >= 0 && p.value < t.layers))
        return error(Code::mismatch, job.small->path() + ": parameter " + p.name + ": the target has no such layer");
      p.value = first_of[static_cast<size_t>(p.value)];
    }
  }
  if (c.decoder) {  // norms of q and k are of a head's size, and have the smaller eps all the same
    LlamaConfig& own = *c.decoder;
    own.hidden = b.hidden, own.heads = big_heads, own.kv_heads = big_kv, own.ffn = big_ffn, own.vocab_size = own.vocab_used = b.vocab;
    own.rms_eps = scaled_eps(static_cast<double>(own.rms_eps), t.hidden, b.hidden);
  }
  writer->set_name(job.small->name() + "-inflated");
  writer->set_fingerprint(inflated_fingerprint({job.small, b, job.seed, {}}));
  writer->set_drafter(c);
  return writer->finish();
}

}  // namespace aerie::inflate

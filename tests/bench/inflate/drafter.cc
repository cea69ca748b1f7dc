// Drafter packages: every tensor name of every format says which axes are residual vectors, heads or vocabulary.
#include <cmath>
#include <regex>

#include "parts.h"

namespace aerie::inflate {

namespace {

double param(const DrafterConfig& d, const std::string& name, double fallback) {
  for (const auto& p : d.params)
    if (p.name == name) return p.value;
  return fallback;
}

struct Drafter {
  const Job& job;
  const LlamaConfig& small_target;
  const Shape& big;
  Parts parts;
  Maps maps;
  int32_t hidden;

  // Rows over a vocabulary of `small` ids, grown in proportion to the target's.
  int32_t grown(int32_t small) const {
    return static_cast<int32_t>(std::llround(static_cast<double>(small) * big.vocab / small_target.vocab_size));
  }
  Map vocabulary(int64_t small) const {
    return maps.rows_from(static_cast<int32_t>(small), grown(static_cast<int32_t>(small)), kNoise);
  }
  int32_t groups(const TensorInfo& t) const { return static_cast<int32_t>(t.cols / hidden); }

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
      std::vector<int32_t> ids(static_cast<size_t>(grown(static_cast<int32_t>(t.cols))), big.vocab - 1);
      std::copy_n(static_cast<const int32_t*>(map.data), t.cols, ids.begin());
      if (ids.size() > static_cast<size_t>(t.cols) && big.vocab == small_target.vocab_size)
        return error(Code::internal, "vocab_map: grew with the same vocabulary");
      return writer.add_tensor(n, kernels::matrix(ids.data(), 1, static_cast<int64_t>(ids.size()), kernels::DType::i32));
    }
    std::smatch m;
    if (std::regex_match(n, m, std::regex("layers\\.(\\d+)\\.attn\\.qkv"))) {  // brings the rest of its layer along
      const int32_t i = std::stoi(m[1]);
      return parts.layer(i, i, groups(t));
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
             scaled(small.ffn, t.ffn, target.big.ffn), target.big.vocab};
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
  // Heads without decoder layers (Medusa, Hydra) have none of these.
  const auto heads = static_cast<int32_t>(param(d, "head_dim", 0) > 0 ? param(d, "heads", 1) : 1);
  const auto kv_heads = static_cast<int32_t>(param(d, "kv_heads", heads)), head_dim = static_cast<int32_t>(param(d, "head_dim", 32));
  const auto ffn = static_cast<int32_t>(param(d, "ffn", 32));
  // The target's big groups where they hold the drafter's, else groups of the drafter's own size.
  int32_t big_heads = b.heads, big_kv = b.kv_heads;
  if (!place_heads(heads, kv_heads, big_heads, big_kv).ok()) {
    big_kv = std::max(kv_heads, b.heads / (heads / kv_heads));
    big_heads = big_kv * (heads / kv_heads);
  }
  AERIE_ASSIGN(Heads placed, place_heads(heads, kv_heads, big_heads, big_kv));
  AERIE_ASSIGN(auto writer, PackageWriter::create(job.output));
  const int32_t big_ffn = std::max(b.ffn, ffn);
  Drafter drafter{job, t, b, Parts(job, *writer, {t.hidden, b.hidden, ffn, big_ffn, head_dim, std::move(placed)}), Maps{}, t.hidden};
  for (const TensorInfo& info : job.small->tensors()) AERIE_TRY(drafter.tensor(info, *writer));

  Map first_of;
  (void)place_layers(t.layers, b.layers, &first_of);
  DrafterConfig c = d;
  c.target_fingerprint = inflated_fingerprint(target);
  const bool layers = param(d, "head_dim", 0) > 0;
  for (auto& p : c.params) {
    if (p.name == "hidden") p.value = b.hidden;
    else if (p.name == "heads" && layers) p.value = big_heads;
    else if (p.name == "kv_heads") p.value = big_kv;
    else if (p.name == "ffn") p.value = big_ffn;
    else if (p.name == "rms_eps") p.value = static_cast<double>(static_cast<float>(p.value) * static_cast<float>(t.hidden) / static_cast<float>(b.hidden));
    else if (p.name == "vocab_size") p.value = b.vocab;
    else if (p.name == "draft_vocab") p.value = drafter.grown(static_cast<int32_t>(p.value));
    else if (p.name.starts_with("tap.")) p.value = first_of[static_cast<size_t>(p.value)];
  }
  writer->set_name(job.small->name() + "-inflated");
  writer->set_fingerprint(inflated_fingerprint({job.small, b, job.seed, {}}));
  writer->set_drafter(c);
  return writer->finish();
}

}  // namespace aerie::inflate

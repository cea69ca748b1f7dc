#include "core/import/layer.h"

#include <algorithm>

namespace aerie {

Status LayerImport::step() {
  done_ = std::min(done_ + 1, steps_);
  if (options_.progress && !options_.progress(done_, steps_))
    return error(Code::cancelled, options_.source + ": conversion cancelled");
  return {};
}

Result<std::vector<float>> LayerImport::take(const std::string& name, int64_t rows, int64_t cols) {
  AERIE_TRY(step());
  return taker_.take(name, {rows, cols});
}

Result<std::vector<float>> LayerImport::stack(const std::string& from, std::initializer_list<Part> parts,
                                              int64_t cols) {
  AERIE_TRY(step());
  std::vector<float> all;
  for (const Part& p : parts) {
    std::vector<int64_t> shape{p.rows};
    if (cols) shape.push_back(cols);
    AERIE_ASSIGN(const auto part, taker_.take(from + p.name, shape));
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

Status LayerImport::weight(const std::string& to, const std::string& from, int64_t rows, int64_t cols) {
  AERIE_ASSIGN(const auto values, take(from, rows, cols));
  return sink_.weight(to, values, rows, cols);
}

Status LayerImport::vector(const std::string& to, const std::string& from, int64_t n) {
  AERIE_TRY(step());
  AERIE_ASSIGN(const auto values, taker_.take(from, {n}));
  return sink_.vector(to, values);
}

Status LayerImport::layer(const std::string& from, const std::string& to, const LlamaConfig& c, int64_t qkv_cols) {
  const int64_t h = c.hidden, in = qkv_cols ? qkv_cols : h, f = c.ffn, q = int64_t{c.heads} * c.head_dim, kv = int64_t{c.kv_heads} * c.head_dim;
  {
    AERIE_ASSIGN(
        const auto qkv,
        stack(from, {{"self_attn.q_proj.weight", q}, {"self_attn.k_proj.weight", kv}, {"self_attn.v_proj.weight", kv}},
              in));
    AERIE_TRY(sink_.weight(to + "attn.qkv", qkv, q + 2 * kv, in));
  }
  if (c.qkv_bias) {
    AERIE_ASSIGN(
        const auto bias,
        stack(from, {{"self_attn.q_proj.bias", q}, {"self_attn.k_proj.bias", kv}, {"self_attn.v_proj.bias", kv}}, 0));
    AERIE_TRY(sink_.vector(to + "attn.qkv.bias", bias));
    // Llama's attention_bias gives o_proj one, too. There is no op for it, and a zero one changes nothing.
    if (const std::string o_bias = from + "self_attn.o_proj.bias"; taker_.has(o_bias)) {
      AERIE_ASSIGN(const auto values, taker_.take(o_bias, {h}));
      if (std::any_of(values.begin(), values.end(), [](float v) { return v != 0; }))
        return error(Code::unsupported, options_.source + ": tensor " + o_bias + ": an output bias that is not zero");
    }
  }
  AERIE_TRY(weight(to + "attn.o", from + "self_attn.o_proj.weight", h, q));
  AERIE_TRY(vector(to + "mlp_norm", from + "post_attention_layernorm.weight", h));
  {
    AERIE_ASSIGN(const auto gate_up, stack(from, {{"mlp.gate_proj.weight", f}, {"mlp.up_proj.weight", f}}, h));
    AERIE_TRY(sink_.weight(to + "mlp.gate_up", gate_up, 2 * f, h));
  }
  return weight(to + "mlp.down", from + "mlp.down_proj.weight", h, f);
}

}  // namespace aerie

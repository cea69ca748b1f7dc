// Small checkpoints as GGUF files.
#pragma once

#include "unit/package/fixtures.h"
#include "unit/package/gguf_builder.h"

namespace aerie::test {

// The model of llama_sources(c), as llama.cpp's converter writes it: q and k of some with the pairs of a head side by side.
inline Gguf gguf_of(const Sources& sources, const LlamaConfig& c, const std::string& arch = "llama") {
  Gguf g;
  g.text("general.architecture", arch);
  g.u32(arch + ".embedding_length", static_cast<uint32_t>(c.hidden));
  g.u32(arch + ".block_count", static_cast<uint32_t>(c.layers));
  g.u32(arch + ".feed_forward_length", static_cast<uint32_t>(c.ffn));
  g.u32(arch + ".attention.head_count", static_cast<uint32_t>(c.heads));
  g.u32(arch + ".attention.head_count_kv", static_cast<uint32_t>(c.kv_heads));
  g.u32(arch + ".context_length", static_cast<uint32_t>(c.max_context));
  g.f32(arch + ".attention.layer_norm_rms_epsilon", c.rms_eps);
  g.f32(arch + ".rope.freq_base", c.rope_theta);
  g.u32(arch + ".attention.key_length", static_cast<uint32_t>(c.head_dim));
  g.u32(arch + ".attention.value_length", static_cast<uint32_t>(c.head_dim));
  g.u32(arch + ".rope.dimension_count", static_cast<uint32_t>(c.head_dim));
  static const std::pair<const char*, const char*> kNames[] = {
      {"model.embed_tokens.", "token_embd."}, {"model.norm.", "output_norm."},          {"lm_head.", "output."},
      {"model.layers.", "blk."},              {"input_layernorm.", "attn_norm."},       {"self_attn.q_proj.", "attn_q."},
      {"self_attn.k_proj.", "attn_k."},       {"self_attn.v_proj.", "attn_v."},         {"self_attn.o_proj.", "attn_output."},
      {"mlp.gate_proj.", "ffn_gate."},        {"post_attention_layernorm.", "ffn_norm."}, {"mlp.up_proj.", "ffn_up."},
      {"mlp.down_proj.", "ffn_down."},      {"self_attn.q_norm.", "attn_q_norm."},  {"self_attn.k_norm.", "attn_k_norm."}};
  for (const auto& [from, s] : sources) {
    std::string name = from;
    for (const auto& [hf, gguf] : kNames)
      if (const size_t at = name.find(hf); at != std::string::npos) name.replace(at, std::strlen(hf), gguf);
    std::vector<float> v = s.values;
    const int64_t heads = name.find("attn_q.") != std::string::npos ? c.heads : name.find("attn_k.") != std::string::npos ? c.kv_heads : 0;
    if (heads && (arch == "llama" || arch.starts_with("granite") || arch == "smollm3")) {
      const int64_t cols = static_cast<int64_t>(v.size()) / (heads * c.head_dim), half = c.head_dim / 2;
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t i = 0; i < c.head_dim; ++i)
          for (int64_t k = 0; k < cols; ++k)
            v[static_cast<size_t>((h * c.head_dim + i % half * 2 + i / half) * cols + k)] =
                s.values[static_cast<size_t>((h * c.head_dim + i) * cols + k)];
    }
    g.tensor(name, s.shape, v);
  }
  return g;
}

}  // namespace aerie::test

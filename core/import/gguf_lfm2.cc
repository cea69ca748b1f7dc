// LFM2's GGUF files: a layer without keys and values is a convolution.
#include <algorithm>

#include "core/import/gguf_family.h"

namespace aerie {

namespace {

constexpr DecoderNames kGgufLfm2Names = [] {
  DecoderNames n = kGgufNames;
  n.norm = "token_embd_norm";
  n.attn_post_norm = n.mlp_post_norm = "";
  n.convolution = &kGgufConvolution;
  return n;
}();

}  // namespace

Status gguf_lfm2(const GgufSource& g, SourceModel* m) {
  SourceRope rope;
  AERIE_TRY(plain_gguf_rope(g, m, &rope));
  m->names = &kGgufLfm2Names;
  LlamaConfig& c = m->config;
  Departures& d = c.departures;
  c.qk_norm = true;
  int32_t window = 0;
  AERIE_TRY(g.file.integer(g.arch + "attention.sliding_window", &window, 0));
  if (window != 0) return g.unsupported(g.arch + "attention.sliding_window: " + std::to_string(window));
  const std::string key = g.arch + "attention.head_count_kv";
  if (!g.file.is_list(key)) return {};
  AERIE_ASSIGN(const auto heads, g.file.integers(key));
  if (heads.size() != static_cast<size_t>(c.layers)) return g.bad(key + ": not a list of " + std::to_string(c.layers));
  for (const int32_t n : heads) {
    if (n != 0 && n != c.kv_heads) return g.unsupported(key + ": layers that attend differ");
    d.delta_layers.push_back(n == 0);
  }
  if (std::find(d.delta_layers.begin(), d.delta_layers.end(), 1) == d.delta_layers.end()) d.delta_layers.clear();
  else AERIE_TRY(g.file.integer(g.arch + "shortconv.l_cache", &d.delta_taps));
  return {};
}

}  // namespace aerie

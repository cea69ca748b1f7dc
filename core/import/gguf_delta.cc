// Recurrent layers (gated delta rule) as GGUF files describe them. Their heads of values come by turns of key heads, but for Qwen3-Next's.
#include <algorithm>

#include "core/import/gguf_family.h"

namespace aerie {

namespace {

constexpr DecoderNames kTiledNames = with_delta(kGgufMlpNormBehindAttention, &kGgufTiledDelta);
constexpr DecoderNames kGroupedNames = with_delta(kGgufMlpNormBehindAttention, &kGgufDelta);

// A list, of all blocks, or every layer but the last of so many.
Status read_recurrent_layers(const GgufSource& g, SourceModel* m) {
  std::vector<int32_t>& recurrent = m->config.departures.delta_layers;
  const auto layers = static_cast<size_t>(m->config.layers);
  const std::string key = g.arch + "attention.recurrent_layers", interval_key = g.arch + "full_attention_interval";
  if (g.file.is_list(key)) {
    AERIE_ASSIGN(const auto list, g.file.booleans(key));
    if (list.size() != layers && list.size() != layers + static_cast<size_t>(m->more_layers)) return g.bad(key + ": not a list of " + std::to_string(layers));
    recurrent.assign(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(layers));
  } else {
    int32_t interval = 4;
    AERIE_TRY(g.file.integer(interval_key, &interval, interval));
    if (interval < 1) return g.bad(interval_key + ": " + std::to_string(interval));
    for (size_t i = 1; i <= layers; ++i) recurrent.push_back(i % static_cast<size_t>(interval) != 0);
  }
  if (std::find(recurrent.begin(), recurrent.end(), 1) == recurrent.end()) recurrent.clear();
  return {};
}

Status read_delta(const GgufSource& g, const DecoderNames& names, SourceModel* m) {
  AERIE_TRY(partial_gguf_rope(g, m));
  Departures& d = m->config.departures;
  m->names = &names;
  m->config.qk_norm = d.output_gate = true;
  AERIE_TRY(read_recurrent_layers(g, m));
  if (!d.recurrent()) return {};
  int32_t inner = 0;
  AERIE_TRY(g.file.integer(g.arch + "ssm.conv_kernel", &d.delta_taps));
  AERIE_TRY(g.file.integer(g.arch + "ssm.state_size", &d.delta_key_dim));
  AERIE_TRY(g.file.integer(g.arch + "ssm.group_count", &d.delta_key_heads));
  AERIE_TRY(g.file.integer(g.arch + "ssm.time_step_rank", &d.delta_heads));
  AERIE_TRY(g.file.integer(g.arch + "ssm.inner_size", &inner));
  if (d.delta_heads < 1) return g.bad(g.arch + "ssm.time_step_rank: " + std::to_string(d.delta_heads));
  if (inner < 1 || inner % d.delta_heads) return g.bad(g.arch + "ssm.inner_size: " + std::to_string(inner));
  d.delta_value_dim = inner / d.delta_heads;
  return {};
}

}  // namespace

Status gguf_qwen35(const GgufSource& g, SourceModel* m) { return read_delta(g, kTiledNames, m); }
Status gguf_qwen3next(const GgufSource& g, SourceModel* m) { return read_delta(g, kGroupedNames, m); }

}  // namespace aerie

// gpt-oss in GGUF files. What llama.cpp has as constants no key says.
#include "core/import/gguf_family.h"
#include "core/package/validate.h"

namespace aerie {

Status gguf_gpt_oss(const GgufSource& g, SourceModel* m) {
  SourceRope rope;
  // llama.cpp rounds where YaRN's ramp begins and ends; the original does not, and no file says so.
  rope.whole_waves = false;
  AERIE_TRY(plain_gguf_rope(g, m, &rope));
  AERIE_TRY(package::check_rope_scaling(rope.scaling).at(g.file.name()));  // which no package will have
  float local = rope.theta;
  AERIE_TRY(g.file.number(g.arch + "rope.freq_base_swa", &local, rope.theta));
  if (local != rope.theta) return g.unsupported(g.arch + "rope.freq_base_swa: is not rope.freq_base");
  int32_t experts = 0;
  AERIE_TRY(g.file.integer(g.arch + "expert_count", &experts));
  if (experts < 1) return g.bad(g.arch + "expert_count: " + std::to_string(experts));
  m->names = &kGgufMlpNormBehindAttention;
  Departures& d = m->config.departures;
  d.sinks = d.expert_bias = true;
  d.glu_limit = 7;
  int32_t window = 0;
  AERIE_TRY(g.file.integer(g.arch + "attention.sliding_window", &window));
  if (window < 1) return g.bad(g.arch + "attention.sliding_window: " + std::to_string(window));
  AERIE_ASSIGN(const auto sliding, read_gguf_pattern(g, 2, *m));
  set_windows(sliding, window, m);
  return {};
}

}  // namespace aerie

#include <xxhash.h>

#include <cstdio>

#include "core/package/rope_frequencies.h"
#include "parts.h"

namespace aerie::inflate {

std::string inflated_fingerprint(const Job& job) {
  const Shape& b = job.big;
  const std::string text = "inflated " + job.small->fingerprint() + " " + std::to_string(b.hidden) + " " + std::to_string(b.layers) + " " +
                           std::to_string(b.heads) + " " + std::to_string(b.kv_heads) + " " + std::to_string(b.ffn) + " " +
                           std::to_string(b.vocab) + " " + std::to_string(job.seed) +
                           (b.experts > 0 ? " experts " + std::to_string(b.experts_used) + " of " + std::to_string(b.experts) : "");
  const XXH128_hash_t h = XXH3_128bits(text.data(), text.size());
  char hex[33];
  std::snprintf(hex, sizeof hex, "%016llx%016llx", static_cast<unsigned long long>(h.high64), static_cast<unsigned long long>(h.low64));
  return hex;
}

Status inflate_target(const Job& job) {
  const LlamaConfig* small = job.small->target();
  if (!small) return error(Code::mismatch, job.small->path() + ": not a target package");
  const Shape& b = job.big;
  AERIE_TRY(check_shape(*small, b));
  AERIE_ASSIGN(Heads heads, place_heads(small->heads, small->kv_heads, b.heads, b.kv_heads));
  AERIE_ASSIGN(auto writer, PackageWriter::create(job.output));
  Parts parts(job, *writer, {small->hidden, b.hidden, small->ffn, b.ffn, small->head_dim, std::move(heads), b.experts});

  const Maps maps;
  const Map vocabulary = maps.rows_from(small->vocab_size, b.vocab, kNoise);
  // An embedding's values are not multiplied by zero: the unused ones must be zero.
  Map embedding = parts.residual_columns();
  for (int32_t& c : embedding) c = c == kQuiet ? kHot : c;
  AERIE_TRY(parts.matrix("embed", vocabulary, embedding));
  Map first_of;
  const Map layers = place_layers(small->layers, b.layers, &first_of);
  for (int32_t i = 0, like = 0; i < b.layers; ++i) {
    const int32_t from = layers[static_cast<size_t>(i)];
    if (from >= 0) like = from;
    AERIE_TRY(from >= 0 ? parts.layer(from, i) : parts.idle_layer(like, i));
  }
  AERIE_TRY(parts.norm("norm"));
  AERIE_TRY(parts.matrix(small->tied ? "embed" : "lm_head", vocabulary, parts.residual_columns(), "lm_head"));
  AERIE_TRY(parts.candidate_head(vocabulary));

  LlamaConfig c = *small;
  c.hidden = b.hidden;
  c.layers = b.layers;
  c.heads = b.heads;
  c.kv_heads = b.kv_heads;
  c.ffn = b.ffn;
  c.vocab_size = b.vocab;
  c.tied = false;
  c.rms_eps = scaled_eps(static_cast<double>(small->rms_eps), small->hidden, b.hidden);
  if (b.experts > 0) {
    c.departures.experts = b.experts;
    c.departures.experts_used = b.experts_used;
    c.departures.norm_experts = true;
    std::vector<float> frequencies = rope_inverse_frequencies(c.head_dim, c.rope_theta, c.rope_scaling);
    frequencies.push_back(c.rope_scaling.attention_factor);
    c.rope_scaling = {};
    c.rope_scaling.kind = RopeScaling::Kind::listed;
    AERIE_TRY(writer->add_tensor("rope.frequencies", kernels::matrix(frequencies.data(), 1, static_cast<int64_t>(frequencies.size()))));
  }
  for (int32_t& t : c.tap_layers) t = first_of[static_cast<size_t>(t)];
  writer->set_name(job.small->name() + "-inflated");
  writer->set_fingerprint(inflated_fingerprint(job));
  writer->set_target(c);
  for (const char* name : {"tokenizer", "chat_template"})
    if (const auto blob = job.small->blob(name); !blob.empty()) AERIE_TRY(writer->add_blob(name, blob));
  return writer->finish();
}

}  // namespace aerie::inflate

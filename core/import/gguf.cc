// GGUF files of Llama-like models (llama.cpp). Quantised values become f32 on the way to the dtype that was asked for.
#include <algorithm>
#include <optional>

#include "core/import/gguf_family.h"
#include "core/import/gguf_tokenizer.h"
#include "core/import/mtp.h"
#include "core/import/taps.h"
#include "core/package/validate.h"

namespace aerie {

namespace {

// What would make the same tensors mean another model.
Status refuse_other_models(const GgufSource& g, const GgufFamily& family) {
  const GgufFile& file = g.file;
  int32_t parts = 1;
  AERIE_TRY(file.integer("split.count", &parts, 1));
  if (parts > 1) return g.unsupported("split.count: one of " + std::to_string(parts) + " files; join them (llama-gguf-split --merge)");
  bool causal = true;
  AERIE_TRY(file.boolean(g.arch + "attention.causal", &causal, true));
  if (!causal) return g.unsupported(g.arch + "attention.causal: false");
  const std::string_view of = family.architecture;
  const auto unset = [&](std::initializer_list<const char*> keys) -> Status {
    for (const char* key : keys)
      if (file.has(g.arch + key)) return g.unsupported(g.arch + key + ": is set");
    return {};
  };
  AERIE_TRY(unset({"attention.clamp_kqv", "attention.max_alibi_bias", "attention.layer_norm_epsilon"}));
  if (of == "gemma2") AERIE_TRY(unset({"rope.freq_base_swa"}));
  else AERIE_TRY(unset({"attn_logit_softcapping"}));
  const bool gemma4 = of == "gemma4";
  if (of != "gemma2" && !gemma4) AERIE_TRY(unset({"final_logit_softcapping"}));
  if (!gemma4)
    AERIE_TRY(unset({"attention.key_length_swa", "attention.value_length_swa", "rope.dimension_count_swa", "attention.shared_kv_layers",
                     "embedding_length_per_layer_input"}));
  return of.starts_with("granite") ? Status() : unset({"logit_scale", "residual_scale", "embedding_scale", "attention.scale"});
}

// Of block_count, those at the end that are for multi-token prediction.
Status read_more_layers(const GgufSource& g, const GgufFamily& family, SourceModel* m) {
  const std::string key = g.arch + "nextn_predict_layers";
  int32_t more = 0;
  AERIE_TRY(g.file.integer(key, &more, 0));
  if (more == 0) return {};
  if (!family.nextn) return g.unsupported(key + ": " + std::to_string(more));
  if (more < 0 || more >= m->config.layers) return g.bad(key + ": " + std::to_string(more));
  m->config.layers -= more;
  m->config.tap_layers = default_taps(m->config.layers);
  m->more_layers = more;
  return {};
}

// Where sizes may be lists, the largest: a layer without keys and values has none of them.
Status read_sizes(const GgufFile& file, const std::string& arch, bool by_layer, LlamaConfig* c) {
  const auto largest = [&](const std::string& key, int32_t* out, std::optional<int32_t> fallback = {}) -> Status {
    if (!by_layer || !file.is_list(key)) return fallback ? file.integer(key, out, *fallback) : file.integer(key, out);
    AERIE_ASSIGN(const auto list, file.integers(key));
    if (list.empty()) return error(Code::bad_format, file.name() + ": " + key + ": an empty list");
    *out = *std::max_element(list.begin(), list.end());
    return {};
  };
  AERIE_TRY(file.integer(arch + "embedding_length", &c->hidden));
  AERIE_TRY(file.integer(arch + "block_count", &c->layers));
  const std::string ffn = arch + "feed_forward_length";
  const bool experts_alone = file.has(arch + "expert_count") && !file.has(ffn);
  AERIE_TRY(largest(experts_alone ? arch + "expert_feed_forward_length" : ffn, &c->ffn));
  AERIE_TRY(file.integer(arch + "attention.head_count", &c->heads));
  AERIE_TRY(largest(arch + "attention.head_count_kv", &c->kv_heads, c->heads));
  AERIE_TRY(file.integer(arch + "context_length", &c->max_context));
  AERIE_TRY(file.number(arch + "attention.layer_norm_rms_epsilon", &c->rms_eps));
  const std::string heads = file.name() + ": " + arch + "attention.head_count: ";
  if (c->heads < 1) return error(Code::bad_format, heads + std::to_string(c->heads));
  AERIE_TRY(file.integer(arch + "attention.key_length", &c->head_dim, c->hidden / c->heads));
  int32_t value_length = c->head_dim;
  AERIE_TRY(file.integer(arch + "attention.value_length", &value_length, c->head_dim));
  if (value_length != c->head_dim)
    return error(Code::unsupported, file.name() + ": " + arch + "attention.value_length: is not the length of keys");
  const auto embed = file.tensors().find("token_embd.weight");
  if (embed == file.tensors().end() || embed->second.shape.size() != 2)
    return error(Code::bad_format, file.name() + ": tensor token_embd.weight: missing, or not a matrix");
  c->vocab_size = c->vocab_used = static_cast<int32_t>(std::min<int64_t>(embed->second.shape[0], INT32_MAX));
  if (c->layers > 0) c->tap_layers = default_taps(c->layers);
  AERIE_TRY(file.integer("tokenizer.ggml.bos_token_id", &c->bos_id, -1));
  AERIE_TRY(gguf_end_ids(file, &c->eos_ids));
  return package::check_config(*c).at(file.name());
}

Status add_text(const ConvertOptions& o, const GgufFile& file, Sink& sink, LlamaConfig* c) {
  if (o.tokenizer == kNoTokenizer) return {};
  if (!o.tokenizer.empty()) {
    AERIE_TRY(sink.tokenizer_file(o.tokenizer, c).status());
  } else {
    AERIE_ASSIGN(const auto tokenizer, gguf_tokenizer(file));
    if (!tokenizer) {
      sink.warn(o.source + ": no tokenizer inside: the package speaks token ids only");
      return {};
    }
    AERIE_TRY(sink.tokenizer(*tokenizer, file.raw("tokenizer.ggml."), c).at(o.source + ": tokenizer.ggml.tokens"));
  }
  std::string_view chat;
  if (file.has("tokenizer.chat_template")) AERIE_TRY(file.text("tokenizer.chat_template", &chat));
  return sink.writer().add_blob("chat_template", {reinterpret_cast<const uint8_t*>(chat.data()), chat.size()});
}

// What the keys say, and tensors that are parameters. m->names are the usual ones.
Status read_model(const GgufSource& g, const GgufFamily& family, SourceModel* m) {
  AERIE_TRY(refuse_other_models(g, family));
  AERIE_TRY(read_sizes(g.file, g.arch, family.by_layer, &m->config));
  AERIE_TRY(read_more_layers(g, family, m));
  AERIE_ASSIGN(m->config.departures.o_bias, has_output_bias(g.file, kGgufNames));
  AERIE_TRY(family.read(g, m));
  AERIE_TRY(read_gguf_experts(g, family, m));
  AERIE_TRY(settle(g.arch + "context_length", m).at(g.file.name()));
  return package::check_config(m->config).at(g.file.name());
}

}  // namespace

Status import_gguf(const ConvertOptions& o, Sink& sink) {
  AERIE_ASSIGN(const auto file, GgufFile::open(o.source));
  AERIE_ASSIGN(const GgufFamily* const family, gguf_family_of(*file));
  SourceModel m;
  m.wanted = o.context;
  m.names = &kGgufNames;
  m.neighbours = family->neighbours;
  const std::unique_ptr<TensorSource> source = as_ours(*file, m);
  TensorTaker take(*source);
  AERIE_TRY(read_model({*file, family->architecture + std::string("."), take}, *family, &m));
  for (const std::string& note : m.notes) sink.warn(o.source + ": " + note);
  // Some files of a tied model have the embedding twice.
  m.tied = !take.has("output.weight") || file->same("output.weight", "token_embd.weight");
  leave_out_more_layers(m, o, sink, &take);
  AERIE_TRY(import_model(o, sink, take, &m));
  AERIE_TRY(add_text(o, *file, sink, &m.config));
  sink.finish_target(o.source, m.config);
  return {};
}

Status import_gguf_mtp(const ConvertOptions& o, Sink& sink) {
  AERIE_ASSIGN(auto file, GgufFile::open(o.source));
  AERIE_ASSIGN(const GgufFamily* const family, gguf_family_of(*file));
  SourceModel m;
  m.names = &kGgufNames;
  m.neighbours = family->neighbours;
  const std::unique_ptr<TensorSource> source = as_ours(*file, m);
  TensorTaker take(*source);
  AERIE_TRY(read_model({*file, family->architecture + std::string("."), take}, *family, &m));
  if (m.more_layers == 0) return error(Code::mismatch, o.source + ": a target model, not a drafter for " + o.drafter_for);
  const std::string at = m.names->layers + std::to_string(m.config.layers) + ".", of = at + "nextn.";
  if (!take.has(of + "eh_proj.weight")) return error(Code::unsupported, o.source + ": tensor " + of + "eh_proj.weight: missing; no other layer for multi-token prediction is read");
  HeadSource head;
  head.config_path = o.source;
  head.hidden = m.config.hidden;
  AERIE_ASSIGN(head.target, open_target(o));
  head.source = std::move(file);
  // As llama.cpp has it: Qwen's drafted rows read what is normed.
  return import_mtp_layers(o, sink, head, *source,
                           {at, of + "eh_proj.weight", of + "enorm.weight", of + "hnorm.weight", of + "shared_head_norm.weight", at,
                            of + "embed_tokens.weight", of + "shared_head_head.weight", std::string_view(family->architecture).starts_with("qwen")},
                           &m);
}

}  // namespace aerie

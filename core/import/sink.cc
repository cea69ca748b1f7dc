#include "core/import/sink.h"

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <utility>

#include "core/import/candidate_head.h"
#include "core/import/lfs_pointer.h"
#include "core/platform/file.h"
#include "core/platform/utf8.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/narrow_floats.h"

namespace aerie {

using kernels::DType;
using kernels::Layout;

Result<std::unique_ptr<Sink>> Sink::create(const ConvertOptions& options) {
  std::unique_ptr<Sink> sink(new Sink(options));
  if (!sink->state_) return error(Code::out_of_memory, options.output + ": out of memory");
  WriterOptions w;
  w.compress = options.compress;
  AERIE_ASSIGN(sink->writer_, PackageWriter::create(options.output, w));
  return sink;
}

Sink::~Sink() { XXH3_freeState(state_); }

// Rounded to bf16, so that a model's f32 and bf16 releases are the same model.
void Sink::hash_values(const std::string& name, const std::vector<float>& values) {
  hash(name.data(), name.size() + 1);
  hash_rounded(values);
}

void Sink::hash_rounded(const std::vector<float>& values) {
  uint8_t rounded[1 << 14];  // in parts: the experts of a layer are many
  size_t n = 0;
  for (const float v : values) {
    const uint16_t r = kernels::to_bf16(v);
    rounded[n++] = static_cast<uint8_t>(r);
    rounded[n++] = static_cast<uint8_t>(r >> 8);
    if (n == sizeof rounded) hash(rounded, std::exchange(n, 0));
  }
  hash(rounded, n);
}

Status Sink::weight(const std::string& name, const SourceMatrix& m) {
  hash_values(name, m.values);
  remember_head(name, m);
  return pack(name, m.values, m.rows, m.cols, options_.dtype_of(name, m.stored));
}

Status Sink::pack(const std::string& name, const std::vector<float>& values, int64_t rows, int64_t cols, DType d) {
  // A router that is rounded sends rows to other experts, what says how fast a state is forgotten is in an exponent, and both are small: they
  // keep their values, in f32 where bf16 does not hold them.
  const auto fits = [](float v) { return kernels::from_bf16(kernels::to_bf16(v)) == v; };
  const bool precise = name.ends_with(".mlp.router") || name.ends_with(".mlp.shared.gate") || name.ends_with(".delta.gates");
  if (precise && options_.dtype.of(DType::bf16) != DType::f32)
    d = std::all_of(values.begin(), values.end(), fits) ? DType::bf16 : DType::f32;
  const kernels::Tensor t = packed(rows, cols, d);
  kernels::pack_panel16(values.data(), rows, cols, d, t.data, t.scales);
  return writer_->add_tensor(name, t);
}

kernels::Tensor Sink::packed(int64_t rows, int64_t cols, DType d) {
  data_.resize(static_cast<size_t>(kernels::data_bytes(d, Layout::panel16, rows, cols)));
  scales_.resize(static_cast<size_t>(kernels::scale_bytes(d, rows, cols)));
  return {data_.data(), scales_.empty() ? nullptr : scales_.data(), rows, cols, 0, d, Layout::panel16};
}

Status Sink::experts(const std::string& name, const Experts& all) {
  const kernels::Tensor t = packed(all.count * all.rows, all.cols, options_.dtype_of(name, all.stored));
  const int64_t panels = all.rows / kernels::kPanel;
  hash(name.data(), name.size() + 1);
  for (int64_t i = 0; i < all.count; ++i) {
    AERIE_ASSIGN(const auto values, all.read(i));
    hash_rounded(values);
    const kernels::Tensor own = kernels::panels(t, i * panels, panels);
    kernels::pack_panel16(values.data(), all.rows, all.cols, t.dtype, own.data, own.scales);
  }
  return writer_->add_tensor(name, t);
}

void Sink::remember_head(const std::string& name, const SourceMatrix& m) {
  if (options_.candidate_rank < 1 || (name != "lm_head" && (name != "embed" || untied_))) return;
  untied_ = name == "lm_head";
  head_ = m;
}

Status Sink::add_candidate_head() {
  const int32_t rank = options_.candidate_rank;
  if (rank < 1) return {};
  if (rank > head_.cols)
    return error(Code::invalid_argument, options_.source + ": candidate head: rank " + std::to_string(rank) +
                                             " is above the hidden size, " + std::to_string(head_.cols));
  Result<LowRank> made = low_rank(head_.values, head_.rows, head_.cols, rank, [this] { return wanted(); });
  if (!made.ok()) return made.status().at(options_.source + ": candidate head");
  const DType d = candidate_dtype(options_.dtype.of(options_.dtype_of("lm_head", head_.stored)));
  AERIE_TRY(pack("candidate.down", made->down, rank, head_.cols, d));
  AERIE_TRY(pack("candidate.up", made->up, head_.rows, rank, d));
  char percent[16];
  std::snprintf(percent, sizeof percent, "%.1f", 100 * made->kept);
  warn("candidate head: rank " + std::to_string(rank) + " holds " + percent + " % of the LM head (of its squared norm)");
  return {};
}

Status Sink::vector(const std::string& name, const std::vector<float>& values, int64_t rows) {
  hash_values(name, values);
  auto* data = const_cast<float*>(values.data());  // a Tensor's memory is never const; the writer only reads
  return writer_->add_tensor(name, kernels::matrix(data, rows, static_cast<int64_t>(values.size()) / rows));
}

Status Sink::indices(const std::string& name, const std::vector<int32_t>& values) {
  hash(name.data(), name.size() + 1);
  hash(values.data(), values.size() * 4);
  auto* data = const_cast<int32_t*>(values.data());
  return writer_->add_tensor(name, kernels::matrix(data, 1, static_cast<int64_t>(values.size()), DType::i32));
}

Status Sink::tokenizer(const text::Tokenizer& tokenizer, std::span<const uint8_t> source, LlamaConfig* c) {
  if (tokenizer.vocab_size() > c->vocab_size)
    return error(Code::mismatch,
                 std::to_string(tokenizer.vocab_size()) + " tokens, the model has " + std::to_string(c->vocab_size));
  c->vocab_used = std::min(c->vocab_used, tokenizer.vocab_size());
  if (c->bos_id < 0 && tokenizer.bos_id() < c->vocab_used) c->bos_id = tokenizer.bos_id();
  // The file's bytes: our own blob may change its version, the model would still be the same.
  hash(source.data(), source.size());
  return writer_->add_blob("tokenizer", tokenizer.serialize());
}

Result<bool> Sink::tokenizer_file(const std::string& path, LlamaConfig* c) {
  AERIE_ASSIGN(const auto bytes, platform::read_file(path, 64u << 20));
  AERIE_TRY(refuse_lfs_pointer(bytes).at(path));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (text.starts_with("IQ== 0\n"))  // "!", the first of OpenAI's ranks
    return error(Code::unsupported, path + ": a tiktoken vocabulary, which lacks its pre-tokenizer; take the tokenizer.json");
  const bool json = path.ends_with(".json") || (first != text.npos && text[first] == '{' && !path.ends_with(".model"));
  text::Tokenizer::Rows rows{c->vocab_size, {}};
  const auto made = json ? text::Tokenizer::from_hf_json(text, &rows) : text::Tokenizer::from_sentencepiece(bytes);
  if (!rows.left_out.empty())  // Gemma 3's, where the model is for text
    warn(path + ": special tokens that the model has no row for are left out, from \"" + shown(rows.left_out, 80) + "\" on");
  if (!made.ok()) return made.status().at(path);
  AERIE_TRY(tokenizer(**made, bytes, c).at(path));
  return (*made)->bos_id() >= 0;
}

std::string Sink::fingerprint() const {
  const XXH128_hash_t h = XXH3_128bits_digest(state_);
  char hex[33];
  std::snprintf(hex, sizeof hex, "%016llx%016llx", static_cast<unsigned long long>(h.high64),
                static_cast<unsigned long long>(h.low64));
  return hex;
}

void Sink::hash_departures(const Departures& d) {
  char text[256];
  const int n = std::snprintf(text, sizeof text, " norms %d gelu %d whole %d scales %.9g %.9g %.9g", static_cast<int>(d.norms), d.gelu,
                              d.whole_qk_norm, static_cast<double>(d.embed_scale), static_cast<double>(d.residual_scale),
                              static_cast<double>(d.attention_scale));
  hash(text, static_cast<size_t>(n));
  if (d.experts > 0) {
    const int m = std::snprintf(text, sizeof text, " experts %d of %d norm %d", d.experts_used, d.experts, d.norm_experts);
    hash(text, static_cast<size_t>(m));
  }
  if (d.normed_experts) hash(" normed", 7);
  if (d.dense_layers > 0 || d.shared_ffn > 0 || d.expert_choice) {
    const int m = std::snprintf(text, sizeof text, " dense %d of %d shared %d gate %d choice %d sigmoid %d scale %.9g", d.dense_layers, d.dense_ffn,
                                d.shared_ffn, d.shared_gate, d.expert_choice, d.sigmoid_experts, static_cast<double>(d.expert_scale));
    hash(text, static_cast<size_t>(m));
  }
  if (d.glu_limit != 0) {  // biases and sinks are tensors: known by their names
    const int m = std::snprintf(text, sizeof text, " limit %.9g", static_cast<double>(d.glu_limit));
    hash(text, static_cast<size_t>(m));
  }
  if (d.recurrent()) {  // and a gate of what attention gives is a tensor
    const int m = std::snprintf(text, sizeof text, " delta %d x %d of %d x %d taps %d", d.delta_heads, d.delta_value_dim, d.delta_key_heads,
                                d.delta_key_dim, d.delta_taps);
    hash(text, static_cast<size_t>(m));
  }
  if (!d.wide_layers.empty() || !d.kv_layers.empty() || d.v_norm || d.logit_cap != 0) {
    const int m = std::snprintf(text, sizeof text, " wide %d x %d readers' ffn %d v_norm %d cap %.9g", d.wide_kv_heads, d.wide_head_dim, d.reader_ffn,
                                d.v_norm, static_cast<double>(d.logit_cap));
    hash(text, static_cast<size_t>(m));
  }
  if (d.score_cap != 0) {
    const int m = std::snprintf(text, sizeof text, " score cap %.9g", static_cast<double>(d.score_cap));
    hash(text, static_cast<size_t>(m));
  }
  for (const auto* list : {&d.windows, &d.layer_rope, &d.delta_layers, &d.wide_layers, &d.kv_layers}) hash(list->data(), list->size() * sizeof(int32_t));
}

void Sink::hash_config(const LlamaConfig& c) {
  const RopeScaling& r = c.rope_scaling;
  char text[512];
  int n =
      std::snprintf(text, sizeof text,
                    "llama vocab %d hidden %d layers %d heads %d %d x %d ffn %d eps %.9g rope %.9g %d %.9g %.9g %.9g "
                    "%d tied %d bias %d%s",
                    c.vocab_size, c.hidden, c.layers, c.heads, c.kv_heads, c.head_dim, c.ffn,
                    static_cast<double>(c.rms_eps), static_cast<double>(c.rope_theta), static_cast<int>(r.kind),
                    static_cast<double>(r.factor), static_cast<double>(r.low_freq_factor),
                    static_cast<double>(r.high_freq_factor), r.original_context, c.tied, c.qkv_bias, c.qk_norm ? " qk_norm" : "");
  if (r.kind == RopeScaling::Kind::yarn)
    n += std::snprintf(text + n, sizeof text - static_cast<size_t>(n), " attention %.9g", static_cast<double>(r.attention_factor));
  hash(text, static_cast<size_t>(n));
  if (c.departs()) hash_departures(c.departures);
}

void Sink::finish_target(const std::string& path, const LlamaConfig& c) {
  hash_config(c);
  writer_->set_name(name_from_path(path));
  writer_->set_fingerprint(fingerprint());
  writer_->set_target(c);
}

void Sink::finish_drafter(const std::string& name, const DrafterConfig& c) {
  std::string text = c.plugin_id + " for " + c.target_fingerprint;
  for (const auto& p : c.params) {
    char value[32];
    std::snprintf(value, sizeof value, " %.17g", p.value);
    text += " " + p.name + value;
  }
  hash(text.data(), text.size());
  if (c.decoder) hash_config(*c.decoder);
  writer_->set_name(name);
  writer_->set_fingerprint(fingerprint());
  writer_->set_drafter(c);
}

std::string shown(const std::string& name, size_t most) {
  std::string out(most, 0);
  out.resize(one_line(name, out.data(), most));
  return out;
}

std::string name_from_path(const std::string& path) {
  std::string name = platform::file_name(path);
  for (const char* extension : {".safetensors", ".aerie", ".gguf", ".bin"})
    if (name.ends_with(extension) && name != extension) name.resize(name.size() - std::string(extension).size());
  return shown(name, 255);
}

}  // namespace aerie

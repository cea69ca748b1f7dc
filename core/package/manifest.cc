#include "core/package/manifest.h"

#include "core/package/format.h"
#include "core/package/validate.h"
#include "manifest_generated.h"

namespace aerie::package {

namespace {

// Two tables for each tensor; a manifest of real models is depth 3.
constexpr flatbuffers::uoffset_t kMaxDepth = 16;
constexpr flatbuffers::uoffset_t kMaxTables = 100'000;

using Builder = flatbuffers::FlatBufferBuilder;

flatbuffers::Offset<fbs::Stored> encode(Builder& b, const StoredRow& s) {
  flatbuffers::Offset<flatbuffers::Vector<const fbs::Chunk*>> chunks;
  if (!s.chunks.empty()) {
    std::vector<fbs::Chunk> rows;
    rows.reserve(s.chunks.size());
    for (const ChunkRow& c : s.chunks) rows.emplace_back(c.xxh64, c.stored_bytes, c.raw_bytes);
    chunks = b.CreateVectorOfStructs(rows);
  }
  return fbs::CreateStored(b, s.offset, s.stored_bytes, s.raw_bytes, static_cast<fbs::Codec>(s.codec), chunks, s.xxh64);
}

flatbuffers::Offset<fbs::Target> encode(Builder& b, const LlamaConfig& c) {
  flatbuffers::Offset<fbs::RopeScaling> scaling;
  if (const RopeScaling& r = c.rope_scaling; r.kind != RopeScaling::Kind::none)
    scaling = fbs::CreateRopeScaling(b, static_cast<fbs::RopeKind>(r.kind), r.factor, r.low_freq_factor,
                                     r.high_freq_factor, r.original_context, r.attention_factor);
  flatbuffers::Offset<fbs::Departures> departures;
  if (c.departs()) {
    const Departures& d = c.departures;
    const auto windows = b.CreateVector(d.windows), layer_rope = b.CreateVector(d.layer_rope);
    const auto listed = [&b](const std::vector<int32_t>& values) {
      return values.empty() ? flatbuffers::Offset<flatbuffers::Vector<int32_t>>() : b.CreateVector(values);
    };
    const auto delta_layers = listed(d.delta_layers), wide_layers = listed(d.wide_layers), kv_layers = listed(d.kv_layers);
    departures = fbs::CreateDepartures(b, static_cast<fbs::Norms>(d.norms), d.gelu, d.whole_qk_norm, d.embed_scale, d.residual_scale,
                                       d.attention_scale, windows, layer_rope, d.experts, d.experts_used, d.norm_experts,
                                       d.o_bias, d.sinks, d.expert_bias, d.glu_limit, d.dense_layers, d.dense_ffn, d.shared_ffn,
                                       d.shared_gate, d.expert_choice, d.sigmoid_experts, d.expert_scale, d.output_gate, delta_layers,
                                       d.delta_key_heads, d.delta_heads, d.delta_key_dim, d.delta_value_dim, d.delta_taps, wide_layers,
                                       d.wide_kv_heads, d.wide_head_dim, kv_layers, d.reader_ffn, d.v_norm, d.layer_inputs, d.layer_scales,
                                       d.logit_cap, d.normed_experts, d.reads_target, d.score_cap);
  }
  const auto eos = b.CreateVector(c.eos_ids);
  const auto taps = b.CreateVector(c.tap_layers);
  return fbs::CreateTarget(b, c.vocab_size, c.vocab_used, c.hidden, c.layers, c.heads, c.kv_heads, c.head_dim, c.ffn,
                           c.max_context, c.rms_eps, c.rope_theta, scaling, c.tied, c.qkv_bias, c.bos_id, eos, taps,
                           c.qk_norm, departures);
}

flatbuffers::Offset<fbs::Drafter> encode(Builder& b, const DrafterConfig& c) {
  std::vector<flatbuffers::Offset<fbs::Param>> params;
  for (const auto& p : c.params) params.push_back(fbs::CreateParam(b, b.CreateString(p.name), p.value));
  flatbuffers::Offset<fbs::Target> decoder;
  if (c.decoder) decoder = encode(b, *c.decoder);
  const auto plugin = b.CreateString(c.plugin_id);
  const auto fingerprint = b.CreateString(c.target_fingerprint);
  return fbs::CreateDrafter(b, plugin, fingerprint, b.CreateVector(params), decoder);
}

// What a manifest says may be no more than its bytes: FlatBuffers may refer to one string or vector from many places, and
// whoever writes packages does not, so a small file could ask for all memory.
class Copied {
 public:
  explicit Copied(size_t bytes) : left_(bytes) {}
  Status count(size_t bytes) {
    if (bytes > left_) return error(Code::bad_format, "the same names or chunks again and again: more than its bytes could hold");
    left_ -= bytes;
    return {};
  }
  Status text(const flatbuffers::String* s, std::string* out) {
    if (!s) return {};
    AERIE_TRY(count(s->size()));
    *out = s->str();
    return {};
  }

 private:
  size_t left_;
};

Status bad(const std::string& what) { return error(Code::bad_format, what); }

template <class E>
bool known(E value, E last) {
  return static_cast<uint8_t>(value) <= static_cast<uint8_t>(last);
}

Status decode(const fbs::Stored& s, const std::string& where, Copied& copied, StoredRow* out) {
  if (!known(s.codec(), fbs::Codec::zstd)) return error(Code::unsupported, where + ": codec: unknown to this build");
  *out = {s.offset(), s.stored_bytes(), s.raw_bytes(), static_cast<Codec>(s.codec()), {}, s.xxh64()};
  if (s.chunks()) {
    // The Verifier (2.0.8) checks that a vector of structs lies inside, but not that it is aligned for them.
    if (reinterpret_cast<uintptr_t>(s.chunks()->Data()) % alignof(fbs::Chunk))
      return bad(where + ": chunks: misaligned");
    AERIE_TRY(copied.count(size_t{s.chunks()->size()} * sizeof(fbs::Chunk)));
    out->chunks.reserve(s.chunks()->size());
    for (const fbs::Chunk* c : *s.chunks()) out->chunks.push_back({c->xxh64(), c->stored_bytes(), c->raw_bytes()});
  }
  return {};
}

Status decode(const fbs::Departures& from, Departures* d) {
  if (!known(from.norms(), fbs::Norms::both)) return error(Code::unsupported, "norms: unknown to this build");
  *d = {static_cast<Departures::Norms>(from.norms()), from.gelu(), from.whole_qk_norm(), from.embed_scale(), from.residual_scale(),
        from.attention_scale(), from.experts(), from.experts_used(), from.norm_experts(), from.o_bias(), from.sinks(), from.expert_bias(),
        from.glu_limit(), from.dense_layers(), from.dense_ffn(), from.shared_ffn(), from.shared_gate(), from.expert_choice(),
        from.sigmoid_experts(), from.expert_scale(), {}, {}, from.output_gate(), {}, from.delta_key_heads(), from.delta_heads(),
        from.delta_key_dim(), from.delta_value_dim(), from.delta_taps(), {}, from.wide_kv_heads(), from.wide_head_dim(), {}, from.reader_ffn(),
        from.v_norm(), from.layer_inputs(), from.layer_scales(), from.logit_cap(), from.reads_target(), from.normed_experts(), from.score_cap()};
  if (from.wide_layers()) d->wide_layers.assign(from.wide_layers()->begin(), from.wide_layers()->end());
  if (from.kv_layers()) d->kv_layers.assign(from.kv_layers()->begin(), from.kv_layers()->end());
  if (from.windows()) d->windows.assign(from.windows()->begin(), from.windows()->end());
  if (from.layer_rope()) d->layer_rope.assign(from.layer_rope()->begin(), from.layer_rope()->end());
  if (from.delta_layers()) d->delta_layers.assign(from.delta_layers()->begin(), from.delta_layers()->end());
  return {};
}

Status decode(const fbs::Target& t, LlamaConfig* out) {
  LlamaConfig& c = *out;
  c.vocab_size = t.vocab_size();
  c.vocab_used = t.vocab_used();
  c.hidden = t.hidden();
  c.layers = t.layers();
  c.heads = t.heads();
  c.kv_heads = t.kv_heads();
  c.head_dim = t.head_dim();
  c.ffn = t.ffn();
  c.max_context = t.max_context();
  c.rms_eps = t.rms_eps();
  c.rope_theta = t.rope_theta();
  c.tied = t.tied();
  c.qkv_bias = t.qkv_bias();
  c.qk_norm = t.qk_norm();
  c.bos_id = t.bos_id();
  if (t.eos_ids()) c.eos_ids.assign(t.eos_ids()->begin(), t.eos_ids()->end());
  if (t.tap_layers()) c.tap_layers.assign(t.tap_layers()->begin(), t.tap_layers()->end());
  if (t.departures()) AERIE_TRY(decode(*t.departures(), &c.departures));
  if (const fbs::RopeScaling* r = t.rope_scaling()) {
    if (!known(r->kind(), fbs::RopeKind::listed))
      return error(Code::unsupported, "rope_scaling: unknown to this build");
    const auto kind = static_cast<RopeScaling::Kind>(r->kind());
    c.rope_scaling = {kind, r->factor(), r->low_freq_factor(), r->high_freq_factor(), r->original_context(),
                      kind == RopeScaling::Kind::yarn ? r->attention_factor() : 1.0f};  // no other kind has one
  }
  return {};
}

}  // namespace

std::vector<uint8_t> encode_manifest(const Manifest& m) {
  Builder b;
  flatbuffers::Offset<fbs::Target> target;
  flatbuffers::Offset<fbs::Drafter> drafter;
  if (m.target) target = encode(b, *m.target);
  if (m.drafter) drafter = encode(b, *m.drafter);
  std::vector<flatbuffers::Offset<fbs::Tensor>> tensors;
  for (const TensorRow& t : m.tensors) {
    const auto stored = encode(b, t.stored);
    const auto name = b.CreateString(t.name);
    tensors.push_back(fbs::CreateTensor(b, name, static_cast<fbs::DType>(t.dtype), static_cast<fbs::Layout>(t.layout),
                                        t.rows, t.cols, t.scales_offset, stored));
  }
  std::vector<flatbuffers::Offset<fbs::Blob>> blobs;
  for (const BlobRow& r : m.blobs) {
    const auto stored = encode(b, r.stored);
    blobs.push_back(fbs::CreateBlob(b, b.CreateString(r.name), stored));
  }
  const auto name = b.CreateString(m.name);
  const auto fingerprint = b.CreateString(m.fingerprint);
  const auto tensor_rows = b.CreateVector(tensors);
  const auto blob_rows = b.CreateVector(blobs);
  fbs::FinishManifestBuffer(b, fbs::CreateManifest(b, static_cast<fbs::Kind>(m.kind), name, fingerprint, target,
                                                   drafter, tensor_rows, blob_rows));
  return {b.GetBufferPointer(), b.GetBufferPointer() + b.GetSize()};
}

Result<Manifest> decode_manifest(std::span<const uint8_t> bytes) {
  flatbuffers::Verifier verifier(bytes.data(), bytes.size(), kMaxDepth, kMaxTables);
  if (bytes.size() < 16 || !fbs::VerifyManifestBuffer(verifier)) return bad("not a valid FlatBuffer");
  const fbs::Manifest& f = *fbs::GetManifest(bytes.data());
  Manifest m;
  if (!known(f.kind(), fbs::Kind::drafter)) return error(Code::unsupported, "kind: unknown to this build");
  m.kind = static_cast<PackageKind>(f.kind());
  Copied copied(bytes.size());
  AERIE_TRY(copied.text(f.name(), &m.name));
  AERIE_TRY(copied.text(f.fingerprint(), &m.fingerprint));
  if (f.target()) AERIE_TRY(decode(*f.target(), &m.target.emplace()));
  if (f.drafter()) {
    DrafterConfig& d = m.drafter.emplace();
    AERIE_TRY(copied.text(f.drafter()->plugin_id(), &d.plugin_id));
    AERIE_TRY(copied.text(f.drafter()->target_fingerprint(), &d.target_fingerprint));
    if (f.drafter()->decoder()) AERIE_TRY(decode(*f.drafter()->decoder(), &d.decoder.emplace()));
    if (f.drafter()->params())
      for (const fbs::Param* p : *f.drafter()->params())
        AERIE_TRY(copied.text(p->name(), &d.params.emplace_back(DrafterConfig::Param{{}, p->value()}).name));
  }
  if (f.tensors()) {
    m.tensors.reserve(f.tensors()->size());
    for (const fbs::Tensor* t : *f.tensors()) {
      TensorRow& row = m.tensors.emplace_back();
      AERIE_TRY(copied.text(t->name(), &row.name));
      AERIE_TRY(check_name(row.name));
      if (!known(t->dtype(), fbs::DType::mxfp4))
        return error(Code::unsupported, row.name + ": dtype: unknown to this build");
      if (!known(t->layout(), fbs::Layout::panel16))
        return error(Code::unsupported, row.name + ": layout: unknown to this build");
      row.dtype = static_cast<kernels::DType>(t->dtype());
      row.layout = static_cast<kernels::Layout>(t->layout());
      row.rows = t->rows();
      row.cols = t->cols();
      row.scales_offset = t->scales_offset();
      AERIE_TRY(decode(*t->stored(), row.name, copied, &row.stored));
    }
  }
  if (f.blobs()) {
    for (const fbs::Blob* blob : *f.blobs()) {
      BlobRow& row = m.blobs.emplace_back();
      AERIE_TRY(copied.text(blob->name(), &row.name));
      AERIE_TRY(check_name(row.name));
      AERIE_TRY(decode(*blob->stored(), row.name, copied, &row.stored));
    }
  }
  return m;
}

Result<Described> describe(std::span<const uint8_t> file) {
  AERIE_ASSIGN(const Header h, decode_header(file));
  Result<Manifest> m = decode_manifest(file.subspan(h.manifest_offset, h.manifest_bytes));
  if (!m.ok()) return m.status().at("manifest");
  AERIE_TRY(check_manifest(*m, h.data_bytes));
  return Described{h.major,
                   h.minor,
                   h.file_bytes,
                   h.manifest_bytes,
                   file.subspan(h.data_offset, h.data_bytes),
                   std::move(m).value()};
}

}  // namespace aerie::package

#include "core/import/convert.h"

#include <cstring>

#include "core/import/sink.h"
#include "core/import/source.h"
#include "core/platform/file.h"
#include "kernels/cpu/cpu_device.h"

namespace aerie {

using kernels::DType;
using kernels::Layout;

Result<std::unique_ptr<Sink>> Sink::create(const ConvertOptions& options) {
  std::unique_ptr<Sink> sink(new Sink(options));
  WriterOptions w;
  w.compress = options.compress;
  AERIE_ASSIGN(sink->writer_, PackageWriter::create(options.output, w));
  return sink;
}

Sink::~Sink() { XXH3_freeState(state_); }

void Sink::hash_values(const std::string& name, const std::vector<float>& values) {
  hash(name.data(), name.size() + 1);
  std::vector<uint16_t> rounded(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    uint32_t bits;
    std::memcpy(&bits, &values[i], 4);
    rounded[i] = static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
  hash(rounded.data(), rounded.size() * 2);
}

Status Sink::weight(const std::string& name, const std::vector<float>& values, int64_t rows, int64_t cols) {
  hash_values(name, values);
  const DType d = options_.dtype;
  kernels::Tensor t;
  t.dtype = d;
  t.layout = Layout::panel16;
  t.rows = rows;
  t.cols = t.stride = cols;
  data_.assign(static_cast<size_t>(kernels::data_bytes(d, t.layout, rows, cols)), 0);
  scales_.assign(static_cast<size_t>(kernels::scale_bytes(d, rows, cols)), 0);
  t.data = data_.data();
  t.scales = scales_.empty() ? nullptr : scales_.data();
  kernels::pack_panel16(values.data(), rows, cols, d, t.data, t.scales);
  return writer_->add_tensor(name, t);
}

Status Sink::vector(const std::string& name, const std::vector<float>& values) {
  hash_values(name, values);
  return writer_->add_tensor(name, kernels::matrix(const_cast<float*>(values.data()), 1, static_cast<int64_t>(values.size())));
}

std::string Sink::fingerprint() const {
  const XXH128_hash_t h = XXH3_128bits_digest(state_);
  char hex[33];
  std::snprintf(hex, sizeof hex, "%016llx%016llx", static_cast<unsigned long long>(h.high64),
                static_cast<unsigned long long>(h.low64));
  return hex;
}

namespace {

using Importer = Status (*)(const ConvertOptions&, Sink&);

Result<Importer> recognise(const ConvertOptions& o) {
  if (platform::path_kind(o.source) == platform::PathKind::directory) {
    AERIE_ASSIGN(const auto source, open_safetensors(o.source));
    const auto& t = source->tensors();
    // Names, not the config's claims (official heads say LlamaForCausalLM).
    if (t.count("model.embed_tokens.weight")) return Importer{import_llama_directory};
    if (t.count("midlayer.self_attn.q_proj.weight") || t.count("d2t"))
      return error(Code::unsupported, o.source + ": an EAGLE-3 head; EAGLE-1 and EAGLE-2 heads are read");
    if (t.count("fc.weight") && t.count("layers.0.self_attn.q_proj.weight")) return Importer{import_eagle};
    return error(Code::unsupported, o.source + ": neither a Llama model (model.embed_tokens.weight) nor an EAGLE head (fc.weight)");
  }
  AERIE_ASSIGN(const auto file, platform::MappedFile::open(o.source));
  if (file->bytes().size() >= 5 && std::memcmp(file->bytes().data(), "AERIE", 5) == 0) return Importer{import_package};
  if (file->bytes().size() >= 4 && std::memcmp(file->bytes().data(), "GGUF", 4) == 0)
    return error(Code::unsupported, o.source + ": GGUF is not read yet");
  return Importer{import_llama2c};
}

}  // namespace

Status convert(const ConvertOptions& o) {
  if (o.source.empty() || o.output.empty()) return error(Code::invalid_argument, "convert: source and output are needed");
  AERIE_ASSIGN(const Importer importer, recognise(o));
  if (importer == import_eagle && o.drafter_for.empty())
    return error(Code::invalid_argument, o.source + ": a drafter head; name its target with --drafter-for");
  if (importer != import_eagle && importer != import_package && !o.drafter_for.empty())
    return error(Code::mismatch, o.source + ": a target model, not a drafter for " + o.drafter_for);
  AERIE_ASSIGN(auto sink, Sink::create(o));
  AERIE_TRY(importer(o, *sink));
  return sink->writer().finish();
}

}  // namespace aerie

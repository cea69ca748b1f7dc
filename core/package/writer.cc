#include "core/package/writer.h"

#include <xxhash.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>

#include "core/package/layout.h"
#include "core/platform/file.h"
#include "manifest_generated.h"

namespace aerie {

namespace {

// Data comes first in the file (it is written as it arrives), the manifest last.
class FileWriter final : public PackageWriter {
 public:
  FileWriter(std::unique_ptr<platform::AtomicFile> file, const WriterOptions& options)
      : file_(std::move(file)), options_(options) {}

  // Room for the header, which is known last.
  Status begin() {
    static const uint8_t zeros[package::kDataAlign] = {};
    return file_->append(zeros);
  }
  void set_name(std::string name) override { name_ = std::move(name); }
  void set_fingerprint(std::string hex) override { fingerprint_ = std::move(hex); }
  void set_target(LlamaConfig config) override { llama_ = std::make_unique<LlamaConfig>(std::move(config)); }
  void set_drafter(DrafterConfig config) override { drafter_ = std::make_unique<DrafterConfig>(std::move(config)); }

  Status add_blob(std::string name, std::span<const uint8_t> bytes) override {
    AERIE_ASSIGN(const auto extent, write_extent({bytes}));
    blobs_.push_back(fb::CreateBlobDirect(builder_, name.c_str(), extent));
    return {};
  }

  Status add_tensor(std::string name, const kernels::Tensor& t) override {
    uint64_t data = 0, scales = 0, raw = 0;
    AERIE_TRY(package::tensor_bytes(t.dtype, t.layout, static_cast<uint64_t>(t.rows), static_cast<uint64_t>(t.cols),
                                    &data, &scales, &raw)
                  .at("tensor " + name));
    if (t.layout == kernels::Layout::row_major && t.stride != t.cols)
      return error(Code::internal, "tensor " + name + ": rows are not contiguous");
    static const uint8_t zeros[package::kAlign] = {};
    std::vector<std::span<const uint8_t>> parts{{static_cast<const uint8_t*>(t.data), data}};
    if (scales) {
      parts.push_back({zeros, scales - data});
      parts.push_back({static_cast<const uint8_t*>(t.scales), raw - scales});
    }
    AERIE_ASSIGN(const auto extent, write_extent(parts));
    tensors_.push_back(fb::CreateTensorDirect(builder_, name.c_str(), static_cast<fb::DType>(t.dtype),
                                              static_cast<fb::Layout>(t.layout), static_cast<uint64_t>(t.rows),
                                              static_cast<uint64_t>(t.cols), scales, extent));
    return {};
  }

  Status finish() override;

 private:
  Status pad_to(uint64_t alignment) {
    static const uint8_t zeros[package::kDataAlign] = {};
    const uint64_t over = file_->size() % alignment;
    return over ? file_->append({zeros, alignment - over}) : Status();
  }
  Result<flatbuffers::Offset<fb::Extent>> write_extent(const std::vector<std::span<const uint8_t>>& parts);

  std::unique_ptr<platform::AtomicFile> file_;
  WriterOptions options_;
  flatbuffers::FlatBufferBuilder builder_;
  std::vector<flatbuffers::Offset<fb::Tensor>> tensors_;
  std::vector<flatbuffers::Offset<fb::Blob>> blobs_;
  std::string name_, fingerprint_;
  std::unique_ptr<LlamaConfig> llama_;
  std::unique_ptr<DrafterConfig> drafter_;
  std::vector<uint8_t> raw_, packed_;
};

Result<flatbuffers::Offset<fb::Extent>> FileWriter::write_extent(const std::vector<std::span<const uint8_t>>& parts) {
  AERIE_TRY(pad_to(package::kAlign));
  const uint64_t offset = file_->size() - package::kDataAlign;
  raw_.clear();
  for (const auto& p : parts) raw_.insert(raw_.end(), p.begin(), p.end());
  const uint64_t hash = XXH64(raw_.data(), raw_.size(), 0);
  if (!options_.compress || raw_.empty()) {
    AERIE_TRY(file_->append(raw_));
    return fb::CreateExtent(builder_, offset, raw_.size(), raw_.size(), hash, fb::Codec::raw);
  }
  std::vector<fb::Chunk> chunks;
  const auto step = static_cast<size_t>(std::clamp<int64_t>(options_.chunk_bytes, 4096, package::kMaxChunk));
  for (size_t at = 0; at < raw_.size(); at += step) {
    const size_t n = std::min(step, raw_.size() - at);
    packed_.resize(ZSTD_compressBound(n));
    const size_t size = ZSTD_compress(packed_.data(), packed_.size(), raw_.data() + at, n, 12);
    if (ZSTD_isError(size)) return error(Code::internal, std::string("zstd: ") + ZSTD_getErrorName(size));
    AERIE_TRY(file_->append({packed_.data(), size}));
    chunks.emplace_back(size, n, XXH64(raw_.data() + at, n, 0));
  }
  const uint64_t stored = file_->size() - package::kDataAlign - offset;
  return fb::CreateExtentDirect(builder_, offset, stored, raw_.size(), hash, fb::Codec::zstd, &chunks);
}

Status FileWriter::finish() {
  if ((llama_ != nullptr) == (drafter_ != nullptr)) return error(Code::internal, "package: set_target or set_drafter, one of them");
  if (fingerprint_.empty()) return error(Code::internal, "package: no fingerprint");
  flatbuffers::Offset<fb::Llama> llama;
  flatbuffers::Offset<fb::Drafter> drafter;
  if (llama_) {
    const LlamaConfig& c = *llama_;
    AERIE_TRY(package::check(c));
    const RopeScaling& s = c.rope_scaling;
    const auto rope = fb::CreateRope(builder_, c.rope_theta, static_cast<fb::RopeKind>(s.kind), s.factor, s.low_freq_factor,
                                     s.high_freq_factor, static_cast<uint32_t>(s.original_context));
    const auto u = [](int32_t v) { return static_cast<uint32_t>(v); };
    llama = fb::CreateLlamaDirect(builder_, u(c.vocab_size), u(c.vocab_used), u(c.hidden), u(c.layers), u(c.heads),
                                  u(c.kv_heads), u(c.head_dim), u(c.ffn), u(c.max_context), c.rms_eps, rope, c.tied,
                                  c.qkv_bias, c.bos_id, &c.eos_ids, &c.tap_layers);
  } else {
    AERIE_TRY(package::check(*drafter_));
    std::vector<flatbuffers::Offset<fb::Param>> params;
    for (const auto& p : drafter_->params) params.push_back(fb::CreateParamDirect(builder_, p.name.c_str(), p.value));
    drafter = fb::CreateDrafterDirect(builder_, drafter_->plugin_id.c_str(), drafter_->target_fingerprint.c_str(), &params);
  }
  const auto manifest = fb::CreateManifestDirect(builder_, llama_ ? fb::Kind::target : fb::Kind::drafter, name_.c_str(),
                                                 fingerprint_.c_str(), llama, drafter, &tensors_, &blobs_);
  builder_.Finish(manifest);

  package::Header h{};
  std::memcpy(h.magic, package::kMagic, sizeof h.magic);
  h.major = package::kMajor;
  h.minor = package::kMinor;
  h.header_bytes = sizeof h;
  h.data_offset = package::kDataAlign;
  h.data_bytes = file_->size() - package::kDataAlign;
  AERIE_TRY(pad_to(package::kAlign));
  h.manifest_offset = file_->size();
  h.manifest_bytes = builder_.GetSize();
  if (h.manifest_bytes > package::kMaxManifest) return error(Code::limit, "package: the manifest is too large");
  h.manifest_xxh64 = XXH64(builder_.GetBufferPointer(), h.manifest_bytes, 0);
  AERIE_TRY(file_->append({builder_.GetBufferPointer(), h.manifest_bytes}));
  h.file_bytes = file_->size();
  h.header_xxh64 = XXH64(&h, offsetof(package::Header, header_xxh64), 0);
  AERIE_TRY(file_->write_at(0, {reinterpret_cast<const uint8_t*>(&h), sizeof h}));
  return file_->finish();
}

}  // namespace

Result<std::unique_ptr<PackageWriter>> PackageWriter::create(const std::string& path, const WriterOptions& options) {
  AERIE_ASSIGN(auto file, platform::AtomicFile::create(path));
  auto writer = std::make_unique<FileWriter>(std::move(file), options);
  AERIE_TRY(writer->begin());
  return std::unique_ptr<PackageWriter>(std::move(writer));
}

}  // namespace aerie

// Package reader. Order of trust: length, magic, version, header hash, manifest hash, FlatBuffers
// verifier, then every number before it is used.
#include <xxhash.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <new>

#include "core/package/layout.h"
#include "core/package/package.h"
#include "core/platform/file.h"
#include "manifest_generated.h"

namespace aerie {

namespace {

using kernels::DType;
using kernels::Layout;
using kernels::Tensor;

struct AlignedDelete {
  void operator()(uint8_t* p) const { ::operator delete(p, std::align_val_t{package::kAlign}); }
};
using AlignedBytes = std::unique_ptr<uint8_t, AlignedDelete>;

struct Piece {  // a tensor or blob, in memory
  const uint8_t* raw = nullptr;
  uint64_t bytes = 0;
};

class FilePackage final : public Package {
 public:
  FilePackage(std::string path) : path_(std::move(path)) {}

  Status load(std::span<const uint8_t> bytes, const OpenOptions& options);
  void keep(std::unique_ptr<platform::MappedFile> file) { file_ = std::move(file); }

  const std::string& path() const override { return path_; }
  const std::string& name() const override { return name_; }
  PackageKind kind() const override { return kind_; }
  const std::string& fingerprint() const override { return fingerprint_; }
  const LlamaConfig* target() const override { return kind_ == PackageKind::target ? &llama_ : nullptr; }
  const DrafterConfig* drafter() const override { return kind_ == PackageKind::drafter ? &drafter_ : nullptr; }
  const std::vector<TensorInfo>& tensors() const override { return infos_; }
  bool has(std::string_view name) const override { return index_.find(name) != index_.end(); }

  Result<Tensor> tensor(std::string_view name) const override {
    const auto it = index_.find(name);
    if (it == index_.end()) return error(Code::not_found, path_ + ": tensor " + std::string(name) + " is missing");
    const TensorInfo& info = infos_[it->second];
    const Piece& piece = pieces_[it->second];
    Tensor t;
    // The kernels never write to weights; Tensor has one pointer type for both.
    t.data = const_cast<uint8_t*>(piece.raw);
    if (scales_[it->second] != 0) t.scales = const_cast<uint8_t*>(piece.raw + scales_[it->second]);
    t.rows = info.rows;
    t.cols = info.cols;
    t.stride = info.cols;
    t.dtype = info.dtype;
    t.layout = info.layout;
    return t;
  }

  std::span<const uint8_t> blob(std::string_view name) const override {
    const auto it = blobs_.find(name);
    return it == blobs_.end() ? std::span<const uint8_t>() : std::span(it->second.raw, it->second.bytes);
  }

 private:
  Status read_config(const fb::Manifest& m);
  Status read_tensors(const fb::Manifest& m);
  Status check_target_tensors() const;
  Result<Piece> piece(const fb::Extent& e, const std::string& what);
  Status unpack(const fb::Extent& e, const uint8_t* stored, uint8_t* raw);
  bool progress(uint64_t bytes) {
    done_ += bytes;
    return !options_->progress || options_->progress(done_, data_.size());
  }

  std::string path_;
  std::unique_ptr<platform::MappedFile> file_;
  std::span<const uint8_t> data_;
  const OpenOptions* options_ = nullptr;
  uint64_t done_ = 0, end_ = 0;
  std::string name_, fingerprint_;
  PackageKind kind_ = PackageKind::target;
  LlamaConfig llama_;
  DrafterConfig drafter_;
  std::vector<TensorInfo> infos_;
  std::vector<Piece> pieces_;
  std::vector<uint64_t> scales_;
  std::map<std::string, size_t, std::less<>> index_;
  std::map<std::string, Piece, std::less<>> blobs_;
  std::vector<AlignedBytes> unpacked_;
};

Status FilePackage::load(std::span<const uint8_t> bytes, const OpenOptions& options) {
  const auto bad = [](const std::string& what) { return error(Code::bad_format, what); };
  options_ = &options;
  package::Header h;
  if (bytes.size() < sizeof h) return bad("header: " + std::to_string(bytes.size()) + " bytes, 128 are the least");
  std::memcpy(&h, bytes.data(), sizeof h);
  if (std::memcmp(h.magic, package::kMagic, sizeof h.magic) != 0) return bad("header: magic: not an .aerie file");
  if (h.major != package::kMajor)
    return error(Code::unsupported, "header: format version " + std::to_string(h.major) + ", this library reads " +
                                        std::to_string(package::kMajor));
  if (h.header_xxh64 != XXH64(&h, offsetof(package::Header, header_xxh64), 0)) return bad("header: checksum is wrong");
  if (h.file_bytes != bytes.size())
    return bad("header: file length: " + std::to_string(bytes.size()) + " bytes, " + std::to_string(h.file_bytes) +
               " were written (truncated?)");
  const auto inside = [&](uint64_t off, uint64_t n) { return off <= bytes.size() && n <= bytes.size() - off; };
  if (h.header_bytes != sizeof h || h.manifest_bytes == 0 || h.manifest_bytes > package::kMaxManifest ||
      h.manifest_offset % package::kAlign != 0 || !inside(h.manifest_offset, h.manifest_bytes))
    return bad("header: manifest range");
  if (h.data_offset % package::kAlign != 0 || !inside(h.data_offset, h.data_bytes)) return bad("header: data range");
  const uint8_t* manifest = bytes.data() + h.manifest_offset;
  if (XXH64(manifest, h.manifest_bytes, 0) != h.manifest_xxh64) return bad("manifest: checksum is wrong");
  flatbuffers::Verifier verifier(manifest, h.manifest_bytes, 16, 1000000);
  if (!fb::VerifyManifestBuffer(verifier)) return bad("manifest: not a valid FlatBuffer");
  const fb::Manifest& m = *fb::GetManifest(manifest);
  data_ = bytes.subspan(h.data_offset, h.data_bytes);
  AERIE_TRY(read_config(m));
  AERIE_TRY(read_tensors(m));
  options_ = nullptr;
  return {};
}

Status FilePackage::read_config(const fb::Manifest& m) {
  name_ = m.name()->str();
  fingerprint_ = m.fingerprint()->str();
  if (m.kind() == fb::Kind::target) {
    const fb::Llama* l = m.llama();
    if (!l) return error(Code::bad_format, "manifest: a target without a config");
    kind_ = PackageKind::target;
    LlamaConfig& c = llama_;
    // Numbers beyond int32 become -1 and fail the range checks.
    const auto i32 = [](uint32_t v) { return v > 0x7fffffffu ? -1 : static_cast<int32_t>(v); };
    c.vocab_size = i32(l->vocab_size());
    c.vocab_used = i32(l->vocab_used());
    c.hidden = i32(l->hidden());
    c.layers = i32(l->layers());
    c.heads = i32(l->heads());
    c.kv_heads = i32(l->kv_heads());
    c.head_dim = i32(l->head_dim());
    c.ffn = i32(l->ffn());
    c.max_context = i32(l->max_context());
    c.rms_eps = l->rms_eps();
    c.rope_theta = l->rope()->theta();
    if (l->rope()->kind() > fb::RopeKind::llama3) return error(Code::unsupported, "manifest: unknown rope scaling");
    c.rope_scaling.kind = static_cast<RopeScaling::Kind>(l->rope()->kind());
    c.rope_scaling.factor = l->rope()->factor();
    c.rope_scaling.low_freq_factor = l->rope()->low_freq_factor();
    c.rope_scaling.high_freq_factor = l->rope()->high_freq_factor();
    c.rope_scaling.original_context = i32(l->rope()->original_context());
    c.tied = l->tied();
    c.qkv_bias = l->qkv_bias();
    c.bos_id = l->bos_id();
    if (l->eos_ids()) c.eos_ids.assign(l->eos_ids()->begin(), l->eos_ids()->end());
    if (l->tap_layers()) c.tap_layers.assign(l->tap_layers()->begin(), l->tap_layers()->end());
    return package::check(c);
  }
  if (m.kind() != fb::Kind::drafter || !m.drafter()) return error(Code::bad_format, "manifest: kind");
  kind_ = PackageKind::drafter;
  drafter_.plugin_id = m.drafter()->plugin_id()->str();
  drafter_.target_fingerprint = m.drafter()->target_fingerprint()->str();
  if (m.drafter()->params())
    for (const fb::Param* p : *m.drafter()->params()) drafter_.params.push_back({p->name()->str(), p->value()});
  return package::check(drafter_);
}

Status FilePackage::read_tensors(const fb::Manifest& m) {
  for (const fb::Tensor* t : *m.tensors()) {
    const std::string name = t->name()->str(), what = "tensor " + name;
    if (t->dtype() > fb::DType::int4 || t->layout() > fb::Layout::panel16)
      return error(Code::unsupported, what + ": unknown dtype or layout");
    TensorInfo info;
    info.name = name;
    info.dtype = static_cast<DType>(t->dtype());
    info.layout = static_cast<Layout>(t->layout());
    uint64_t data = 0, scales = 0, raw = 0;
    if (Status s = package::tensor_bytes(info.dtype, info.layout, t->rows(), t->cols(), &data, &scales, &raw); !s.ok())
      return s.at(what);
    if (t->extent()->raw_bytes() != raw || t->scales_offset() != scales)
      return error(Code::bad_format, what + ": " + std::to_string(t->extent()->raw_bytes()) + " bytes, the shape needs " +
                                         std::to_string(raw));
    info.rows = static_cast<int64_t>(t->rows());
    info.cols = static_cast<int64_t>(t->cols());
    info.codec = t->extent()->codec() == fb::Codec::raw ? "raw" : "zstd";
    info.stored_bytes = static_cast<int64_t>(t->extent()->stored_bytes());
    info.raw_bytes = static_cast<int64_t>(raw);
    if (!index_.emplace(name, infos_.size()).second) return error(Code::bad_format, what + ": listed twice");
    AERIE_ASSIGN(const Piece p, piece(*t->extent(), what));
    infos_.push_back(std::move(info));
    pieces_.push_back(p);
    scales_.push_back(scales);
  }
  if (kind_ == PackageKind::target) AERIE_TRY(check_target_tensors());
  if (m.blobs())
    for (const fb::Blob* b : *m.blobs()) {
      const std::string name = b->name()->str();
      AERIE_ASSIGN(const Piece p, piece(*b->extent(), "blob " + name));
      if (!blobs_.emplace(name, p).second) return error(Code::bad_format, "blob " + name + ": listed twice");
    }
  return {};
}

Status FilePackage::check_target_tensors() const {
  Status status;
  size_t expected = 0;
  package::for_each_tensor(llama_, [&](const std::string& name, int64_t rows, int64_t cols, bool weight) {
    ++expected;
    if (!status.ok()) return;
    const auto it = index_.find(name);
    if (it == index_.end()) {
      status = error(Code::bad_format, "tensor " + name + ": missing");
      return;
    }
    const TensorInfo& t = infos_[it->second];
    if (t.rows != rows || t.cols != cols)
      status = error(Code::bad_format, "tensor " + name + ": shape (" + std::to_string(t.rows) + ", " +
                                           std::to_string(t.cols) + "), the config needs (" + std::to_string(rows) +
                                           ", " + std::to_string(cols) + ")");
    else if (weight ? t.layout != Layout::panel16 : t.layout != Layout::row_major || t.dtype != DType::f32)
      status = error(Code::bad_format, "tensor " + name + ": dtype or layout does not fit its use");
  });
  AERIE_TRY(status);
  if (infos_.size() == expected) return {};
  for (const TensorInfo& t : infos_) {
    bool known = false;
    package::for_each_tensor(llama_, [&](const std::string& n, int64_t, int64_t, bool) { known = known || n == t.name; });
    if (!known) return error(Code::bad_format, "tensor " + t.name + ": unexpected");
  }
  return error(Code::bad_format, "manifest: tensors");
}

Result<Piece> FilePackage::piece(const fb::Extent& e, const std::string& what) {
  const auto bad = [&](const std::string& why) { return error(Code::bad_format, what + ": " + why); };
  if (e.offset() % package::kAlign != 0 || e.offset() < end_ || e.offset() > data_.size() ||
      e.stored_bytes() > data_.size() - e.offset())
    return bad("offset or length lies outside the file, or overlaps");
  end_ = e.offset() + e.stored_bytes();
  const uint8_t* stored = data_.data() + e.offset();
  Piece p;
  p.bytes = e.raw_bytes();
  if (e.codec() == fb::Codec::raw) {
    if (e.stored_bytes() != e.raw_bytes()) return bad("stored length of a raw tensor");
    p.raw = stored;
    if (options_->check_data && XXH64(p.raw, p.bytes, 0) != e.xxh64()) return bad("checksum is wrong");
    if (!progress(e.stored_bytes())) return error(Code::cancelled, "load cancelled");
    return p;
  }
  if (e.codec() != fb::Codec::zstd || !e.chunks() || e.chunks()->size() == 0) return bad("codec");
  // Before a byte is allocated: the chunks must add up, and each frame must say what the row says.
  uint64_t raw = 0, at = 0;
  for (const fb::Chunk* c : *e.chunks()) {
    if (c->raw_bytes() == 0 || c->raw_bytes() > package::kMaxChunk || c->stored_bytes() > e.stored_bytes() - at)
      return bad("chunk sizes");
    if (ZSTD_getFrameContentSize(stored + at, c->stored_bytes()) != c->raw_bytes()) return bad("chunk: frame size");
    raw += c->raw_bytes();
    at += c->stored_bytes();
  }
  if (raw != e.raw_bytes() || at != e.stored_bytes()) return bad("chunks do not add up");
  auto* memory = static_cast<uint8_t*>(::operator new(std::max<uint64_t>(raw, 1), std::align_val_t{package::kAlign}, std::nothrow));
  if (!memory) return error(Code::out_of_memory, what + ": no memory for " + std::to_string(raw) + " bytes");
  unpacked_.emplace_back(memory);
  p.raw = memory;
  if (Status s = unpack(e, stored, memory); !s.ok()) return s.at(what);
  return p;
}

Status FilePackage::unpack(const fb::Extent& e, const uint8_t* stored, uint8_t* raw) {
  for (const fb::Chunk* c : *e.chunks()) {
    const size_t n = ZSTD_decompress(raw, c->raw_bytes(), stored, c->stored_bytes());
    if (ZSTD_isError(n) || n != c->raw_bytes()) return error(Code::bad_format, "chunk: does not unpack");
    if (XXH64(raw, n, 0) != c->xxh64()) return error(Code::bad_format, "chunk: checksum is wrong");
    raw += n;
    stored += c->stored_bytes();
    if (!progress(c->stored_bytes())) return error(Code::cancelled, "load cancelled");
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<const Package>> Package::open(const std::string& path, const OpenOptions& options) {
  AERIE_ASSIGN(auto file, platform::MappedFile::open(path));
  auto p = std::make_shared<FilePackage>(path);
  if (Status s = p->load(file->bytes(), options); !s.ok()) return s.at(path);
  p->keep(std::move(file));
  return std::shared_ptr<const Package>(std::move(p));
}

Result<std::shared_ptr<const Package>> Package::open_memory(std::span<const uint8_t> bytes, const std::string& name,
                                                            const OpenOptions& options) {
  auto p = std::make_shared<FilePackage>(name);
  if (reinterpret_cast<uintptr_t>(bytes.data()) % package::kAlign != 0)
    return error(Code::invalid_argument, name + ": package bytes must be 64-byte aligned");
  if (Status s = p->load(bytes, options); !s.ok()) return s.at(name);
  return std::shared_ptr<const Package>(std::move(p));
}

}  // namespace aerie

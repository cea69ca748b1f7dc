#include "core/package/writer.h"

#include <xxhash.h>
#include <zstd.h>

#include <algorithm>
#include <new>

#include "core/package/format.h"
#include "core/package/manifest.h"
#include "core/package/validate.h"
#include "core/platform/file.h"

namespace aerie {

namespace {

using package::StoredRow;

// Weights hardly compress; higher levels cost minutes and win a percent.
constexpr int kZstdLevel = 3;

// Header, data, manifest: the manifest is known only after the data is written.
class FileWriter final : public PackageWriter {
 public:
  FileWriter(std::unique_ptr<platform::AtomicFile> file, const WriterOptions& options)
      : file_(std::move(file)), options_(options), zstd_(nullptr, ZSTD_freeCCtx) {}

  Status begin() {
    const uint64_t most = package::kMaxChunkBytes;
    if (options_.chunk_bytes < 1 || static_cast<uint64_t>(options_.chunk_bytes) > most)
      return error(Code::invalid_argument, "chunk_bytes: must be 1 to 16 MiB");
    if (options_.compress) {
      zstd_.reset(ZSTD_createCCtx());
      if (!zstd_) return error(Code::out_of_memory, file_->path() + ": out of memory");
      ZSTD_CCtx_setParameter(zstd_.get(), ZSTD_c_compressionLevel, kZstdLevel);
    }
    return file_->append(std::vector<uint8_t>(package::kDataAlignment));  // the header comes last
  }

  void set_name(std::string name) override { manifest_.name = std::move(name); }
  void set_fingerprint(std::string hex) override { manifest_.fingerprint = std::move(hex); }
  void set_target(LlamaConfig config) override {
    manifest_.kind = PackageKind::target;
    manifest_.target = std::move(config);
    manifest_.drafter.reset();
  }
  void set_drafter(DrafterConfig config) override {
    manifest_.kind = PackageKind::drafter;
    manifest_.drafter = std::move(config);
    manifest_.target.reset();
  }

  Status add_blob(std::string name, std::span<const uint8_t> bytes) override {
    return guarded([&]() -> Status {
      if (bytes.empty()) return {};  // reads back as absent, which is the same thing
      package::BlobRow row{std::move(name), {}};
      AERIE_TRY(store({bytes}, &row.stored));
      manifest_.blobs.push_back(std::move(row));
      return {};
    });
  }

  Status add_tensor(std::string name, const kernels::Tensor& t) override {
    return guarded([&]() -> Status {
      package::TensorRow row{std::move(name), t.dtype, t.layout, t.rows, t.cols, 0, {}};
      const auto refuse = [&](const char* what) { return error(Code::invalid_argument, row.name + ": " + what); };
      uint64_t raw = 0;
      if (!package::tensor_extent(t.dtype, t.layout, t.rows, t.cols, &raw, &row.scales_offset))
        return refuse("a package cannot hold this shape, dtype and layout");
      if (!t.data || (row.scales_offset && !t.scales)) return refuse("has no data");
      if (t.layout == kernels::Layout::row_major && t.rows > 1 && t.stride != t.cols)
        return refuse("its rows are not contiguous");
      const auto* data = static_cast<const uint8_t*>(t.data);
      if (row.scales_offset) {
        const auto n = static_cast<uint64_t>(kernels::data_bytes(t.dtype, t.layout, t.rows, t.cols));
        const uint8_t zeros[package::kBlobAlignment] = {};
        AERIE_TRY(store({{data, n},
                         {zeros, row.scales_offset - n},
                         {static_cast<const uint8_t*>(t.scales), raw - row.scales_offset}},
                        &row.stored));
      } else {
        AERIE_TRY(store({{data, raw}}, &row.stored));
      }
      manifest_.tensors.push_back(std::move(row));
      return {};
    });
  }

  Status finish() override {
    return guarded([&]() -> Status {
      const uint64_t data_bytes = file_->size() - package::kDataAlignment;
      AERIE_TRY(package::check_manifest(manifest_, data_bytes));
      const std::vector<uint8_t> manifest = package::encode_manifest(manifest_);
      if (manifest.size() > package::kMaxManifestBytes) return error(Code::limit, "manifest: more than 16 MiB");
      AERIE_TRY(pad());
      package::Header h;
      h.manifest_offset = file_->size();
      h.manifest_bytes = manifest.size();
      h.manifest_xxh64 = XXH64(manifest.data(), manifest.size(), 0);
      h.data_offset = package::kDataAlignment;
      h.data_bytes = data_bytes;
      AERIE_TRY(file_->append(manifest));
      h.file_bytes = file_->size();
      AERIE_TRY(file_->write_at(0, package::encode_header(h)));
      AERIE_TRY(file_->commit());
      done_ = true;
      return {};
    });
  }

 private:
  // A failure sticks: a package with a piece missing must not be finished.
  template <class F>
  Status guarded(const F& f) {
    if (!failed_.ok()) return failed_;
    if (done_) return error(Code::internal, file_->path() + ": the package is finished");
    try {
      failed_ = f();
    } catch (const std::bad_alloc&) {
      failed_ = error(Code::out_of_memory, "out of memory");
    }
    if (failed_.ok()) return {};
    if (!failed_.message().starts_with(file_->path())) failed_ = failed_.at(file_->path());
    file_.reset();  // its temporary goes now, not when the caller lets go of us
    return failed_;
  }

  Status pad() {
    const uint64_t n = package::align_up(file_->size(), package::kBlobAlignment) - file_->size();
    const uint8_t zeros[package::kBlobAlignment] = {};
    return file_->append({zeros, n});
  }

  using Pieces = std::vector<std::span<const uint8_t>>;

  // The pieces one after the other, as one blob.
  Status store(const Pieces& pieces, StoredRow* row) {
    AERIE_TRY(pad());
    row->offset = file_->size() - package::kDataAlignment;
    const std::unique_ptr<XXH64_state_t, XXH_errorcode (*)(XXH64_state_t*)> hash(XXH64_createState(), XXH64_freeState);
    if (!hash) throw std::bad_alloc();
    XXH64_reset(hash.get(), 0);
    for (const auto& p : pieces) {
      XXH64_update(hash.get(), p.data(), p.size());
      row->raw_bytes += p.size();
    }
    row->xxh64 = XXH64_digest(hash.get());
    if (options_.compress) {
      AERIE_ASSIGN(const bool smaller, compress(pieces, row));
      if (smaller) return {};
    }
    row->codec = package::Codec::raw;
    row->chunks.clear();
    row->stored_bytes = row->raw_bytes;
    for (const auto& p : pieces) AERIE_TRY(file_->append(p));
    return {};
  }

  // False, and nothing written, when compression does not pay (or pays so well that a reader, which
  // limits expansion, would refuse it: a tensor of zeros).
  Result<bool> compress(const Pieces& pieces, StoredRow* row) {
    std::vector<uint8_t> packed;
    std::vector<uint8_t> frame(ZSTD_compressBound(static_cast<size_t>(options_.chunk_bytes)));
    for (const auto& p : pieces) {
      for (size_t at = 0; at < p.size();) {
        const size_t n = std::min<size_t>(p.size() - at, static_cast<size_t>(options_.chunk_bytes));
        const size_t size = ZSTD_compress2(zstd_.get(), frame.data(), frame.size(), p.data() + at, n);
        if (ZSTD_isError(size)) return error(Code::internal, std::string("zstd: ") + ZSTD_getErrorName(size));
        row->chunks.push_back({XXH64(frame.data(), size, 0), static_cast<uint32_t>(size), static_cast<uint32_t>(n)});
        packed.insert(packed.end(), frame.begin(), frame.begin() + static_cast<ptrdiff_t>(size));
        at += n;
      }
    }
    if (packed.size() + packed.size() / 50 >= row->raw_bytes || row->raw_bytes / package::kMaxExpansion > packed.size())
      return false;
    row->codec = package::Codec::zstd;
    row->stored_bytes = packed.size();
    AERIE_TRY(file_->append(packed));
    return true;
  }

  std::unique_ptr<platform::AtomicFile> file_;
  WriterOptions options_;
  std::unique_ptr<ZSTD_CCtx, size_t (*)(ZSTD_CCtx*)> zstd_;
  package::Manifest manifest_;
  Status failed_;
  bool done_ = false;
};

}  // namespace

Result<std::unique_ptr<PackageWriter>> PackageWriter::create(const std::string& path, const WriterOptions& options) {
  AERIE_ASSIGN(auto file, platform::AtomicFile::create(path));
  auto writer = std::make_unique<FileWriter>(std::move(file), options);
  AERIE_TRY(writer->begin());
  return std::unique_ptr<PackageWriter>(std::move(writer));
}

}  // namespace aerie

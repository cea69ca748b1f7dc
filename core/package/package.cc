#include "core/package/package.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <new>

#include "core/package/format.h"
#include "core/package/manifest.h"
#include "core/package/unpack.h"
#include "core/platform/file.h"

namespace aerie {

namespace {

using package::AlignedBytes;
using package::Codec;
using package::Manifest;
using package::StoredRow;

class OpenPackage final : public Package {
 public:
  OpenPackage(std::string path, std::shared_ptr<const platform::MappedFile> file)
      : path_(std::move(path)), file_(std::move(file)) {}

  Status load(std::span<const uint8_t> bytes, const OpenOptions& options) {
    AERIE_TRY(align(&bytes));
    AERIE_ASSIGN(package::Described d, package::describe(bytes));
    manifest_ = std::move(d.manifest);
    uint64_t total = 0, done = 0;
    for (const auto& t : manifest_.tensors) total += t.stored.raw_bytes;
    for (const auto& b : manifest_.blobs) total += b.stored.raw_bytes;
    const auto advance = [&](uint64_t n) { return !options.progress || options.progress(done += n, total); };
    for (const auto& t : manifest_.tensors) {
      Result<const uint8_t*> raw = bring(t.stored, d.data, options, advance);
      if (!raw.ok()) return raw.status().at(t.name);
      tensors_[t.name] = {*raw, &t};
      infos_.push_back({t.name, t.dtype, t.layout, t.rows, t.cols, t.stored.codec == Codec::zstd ? "zstd" : "raw",
                        static_cast<int64_t>(t.stored.stored_bytes), static_cast<int64_t>(t.stored.raw_bytes)});
    }
    for (const auto& b : manifest_.blobs) {
      Result<const uint8_t*> raw = bring(b.stored, d.data, options, advance);
      if (!raw.ok()) return raw.status().at(b.name);
      blobs_[b.name] = {*raw, b.stored.raw_bytes};
    }
    return {};
  }

  const std::string& path() const override { return path_; }
  const std::string& name() const override { return manifest_.name; }
  PackageKind kind() const override { return manifest_.kind; }
  const std::string& fingerprint() const override { return manifest_.fingerprint; }
  const LlamaConfig* target() const override { return manifest_.target ? &*manifest_.target : nullptr; }
  const DrafterConfig* drafter() const override { return manifest_.drafter ? &*manifest_.drafter : nullptr; }
  const std::vector<TensorInfo>& tensors() const override { return infos_; }
  bool has(std::string_view name) const override { return tensors_.find(name) != tensors_.end(); }

  Result<kernels::Tensor> tensor(std::string_view name) const override {
    const auto it = tensors_.find(name);
    if (it == tensors_.end()) return error(Code::not_found, path_ + ": " + std::string(name) + ": no such tensor");
    const package::TensorRow& row = *it->second.row;
    // A Tensor's pointers are not const because the kernels' outputs are Tensors too; these pages are read-only.
    auto* data = const_cast<uint8_t*>(it->second.data);
    const int64_t stride = row.layout == kernels::Layout::row_major ? row.cols : 0;
    return kernels::Tensor{
        data,      row.scales_offset ? data + row.scales_offset : nullptr, row.rows, row.cols, stride, row.dtype,
        row.layout};
  }

  std::span<const uint8_t> blob(std::string_view name) const override {
    const auto it = blobs_.find(name);
    return it == blobs_.end() ? std::span<const uint8_t>() : it->second;
  }

 private:
  struct Loaded {
    const uint8_t* data = nullptr;
    const package::TensorRow* row = nullptr;
  };

  // Offsets in the file are aligned; so the file must be.
  Status align(std::span<const uint8_t>* bytes) {
    if (reinterpret_cast<uintptr_t>(bytes->data()) % package::kBlobAlignment == 0) return {};
    AlignedBytes copy = package::allocate_aligned(bytes->size());
    if (!copy) return error(Code::out_of_memory, "no memory for an aligned copy");
    std::memcpy(copy.get(), bytes->data(), bytes->size());
    *bytes = {copy.get(), bytes->size()};
    unpacked_.push_back(std::move(copy));
    return {};
  }

  Result<const uint8_t*> bring(const StoredRow& s, std::span<const uint8_t> data, const OpenOptions& options,
                               const std::function<bool(uint64_t)>& advance) {
    const auto stored = data.subspan(s.offset, s.stored_bytes);
    if (s.codec == Codec::raw) {
      if (options.check_data) AERIE_TRY(check(s, data));
      if (!advance(s.raw_bytes)) return error(Code::cancelled, "cancelled");
      return stored.data();
    }
    AERIE_ASSIGN(AlignedBytes raw, package::unpack(s, stored, advance));
    unpacked_.push_back(std::move(raw));
    return static_cast<const uint8_t*>(unpacked_.back().get());
  }

  // The checksum, and the zeros up to the next blob.
  static Status check(const StoredRow& s, std::span<const uint8_t> data) {
    if (XXH64(data.data() + s.offset, s.raw_bytes, 0) != s.xxh64)
      return error(Code::bad_format, "checksum is wrong, the file is damaged");
    const uint64_t end = s.offset + s.stored_bytes;
    const auto next = std::min<uint64_t>(package::align_up(end, package::kBlobAlignment), data.size());
    if (std::any_of(data.begin() + static_cast<ptrdiff_t>(end), data.begin() + static_cast<ptrdiff_t>(next),
                    [](uint8_t v) { return v != 0; }))
      return error(Code::bad_format, "the padding after it is not zero");
    return {};
  }

  std::string path_;
  std::shared_ptr<const platform::MappedFile> file_;
  Manifest manifest_;
  std::vector<TensorInfo> infos_;
  std::map<std::string, Loaded, std::less<>> tensors_;
  std::map<std::string, std::span<const uint8_t>, std::less<>> blobs_;
  std::vector<AlignedBytes> unpacked_;
};

Result<std::shared_ptr<const Package>> load(const std::string& name, std::shared_ptr<const platform::MappedFile> file,
                                            std::span<const uint8_t> bytes, const OpenOptions& options) {
  try {
    auto package = std::make_shared<OpenPackage>(name, std::move(file));
    if (const Status s = package->load(bytes, options); !s.ok()) return s.at(name);
    return std::shared_ptr<const Package>(std::move(package));
  } catch (const std::bad_alloc&) {
    return error(Code::out_of_memory, name + ": out of memory");
  }
}

}  // namespace

Result<std::shared_ptr<const Package>> Package::open(const std::string& path, const OpenOptions& options) {
  AERIE_ASSIGN(auto file, platform::MappedFile::open(path));
  const auto bytes = file->bytes();
  return load(path, std::move(file), bytes, options);
}

Result<std::shared_ptr<const Package>> Package::open_memory(std::span<const uint8_t> bytes, const std::string& name,
                                                            const OpenOptions& options) {
  return load(name, nullptr, bytes, options);
}

}  // namespace aerie

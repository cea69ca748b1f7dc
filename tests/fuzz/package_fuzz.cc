// libFuzzer entry for the package reader. Checksums would stop every mutation at the door, so what comes in
// is also wrapped: as a manifest, and as a data region, of a file whose header is right.
//
//   clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -I. -IBUILD/generated tests/fuzz/package_fuzz.cc
//     core/package/*.cc core/platform/file_posix.cc core/platform/utf8.cc kernels/cpu/{mxfp4,pack,q4_1}.cc -lzstd -lxxhash -o package_fuzz
//   ./package_fuzz -max_len=65536 -max_total_time=180 CORPUS
#include <xxhash.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "core/package/format.h"
#include "core/package/manifest.h"
#include "core/package/package.h"

namespace {

using aerie::package::Header;
using Bytes = std::vector<uint8_t>;

// Touch everything an open package hands out: a pointer past its memory must show here.
void use(const aerie::Package& p) {
  uint64_t sum = 0;
  for (const auto& info : p.tensors()) {
    const auto t = p.tensor(info.name);
    if (!t.ok()) std::abort();
    const auto* data = static_cast<const uint8_t*>(t->data);
    for (int64_t n = aerie::kernels::data_bytes(t->dtype, t->layout, t->rows, t->cols), i = 0; i < n; i += 61)
      sum += data[i];
    sum += data[aerie::kernels::data_bytes(t->dtype, t->layout, t->rows, t->cols) - 1];
    if (t->scales)
      sum += static_cast<const uint8_t*>(t->scales)[aerie::kernels::scale_bytes(t->dtype, t->rows, t->cols) - 1];
  }
  for (const uint8_t b : p.blob("tokenizer")) sum += b;
  volatile uint64_t sink = sum;
  (void)sink;
}

void open(const Bytes& file) {
  aerie::OpenOptions check;
  check.check_data = true;
  for (const auto& options : {aerie::OpenOptions{}, check}) {
    const auto p = aerie::Package::open_memory(file, "fuzz", options);
    if (p.ok()) use(**p);
  }
}

Bytes wrap(const Bytes& manifest, const Bytes& data) {
  Bytes file(aerie::package::kDataAlignment);
  file.insert(file.end(), data.begin(), data.end());
  file.resize(aerie::package::align_up(file.size(), aerie::package::kBlobAlignment));
  Header h;
  h.data_offset = aerie::package::kDataAlignment;
  h.data_bytes = data.size();
  h.manifest_offset = file.size();
  h.manifest_bytes = manifest.size();
  h.manifest_xxh64 = XXH64(manifest.data(), manifest.size(), 0);
  file.insert(file.end(), manifest.begin(), manifest.end());
  h.file_bytes = file.size();
  const auto header = aerie::package::encode_header(h);
  std::copy(header.begin(), header.end(), file.begin());
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes input(data, data + size);
  open(input);
  // [u16 manifest length][manifest][data], all checksums made right, chunk checksums too.
  if (size < 2) return 0;
  const size_t n = std::min<size_t>(size - 2, data[0] | data[1] << 8);
  Bytes manifest(data + 2, data + 2 + n);
  const Bytes rest(data + 2 + n, data + size);
  open(wrap(manifest, rest));
  auto decoded = aerie::package::decode_manifest(manifest);
  if (!decoded.ok()) return 0;
  const auto mend = [&](aerie::package::StoredRow& s) {
    uint64_t at = s.offset;
    for (auto& c : s.chunks) {
      if (at > rest.size() || c.stored_bytes > rest.size() - at) return;
      c.xxh64 = XXH64(rest.data() + at, c.stored_bytes, 0);
      at += c.stored_bytes;
    }
  };
  for (auto& t : decoded->tensors) mend(t.stored);
  for (auto& b : decoded->blobs) mend(b.stored);
  open(wrap(aerie::package::encode_manifest(*decoded), rest));
  return 0;
}

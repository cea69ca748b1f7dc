// Small packages and checkpoints made on the spot, in a folder that goes away.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/package/format.h"
#include "core/package/manifest.h"
#include "core/package/validate.h"
#include "core/package/writer.h"
#include "kernels/cpu/cpu_device.h"
#include "manifest_generated.h"
#include "tests/support/temporary_folder.h"

namespace aerie::test {

using Bytes = std::vector<uint8_t>;
namespace fs = std::filesystem;

struct Folder : TemporaryFolder {
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& e : fs::directory_iterator(path())) all.push_back(e.path().filename().string());
    std::sort(all.begin(), all.end());
    return all;
  }
};

// How long the table of a target's departures is in a manifest: fields that older readers do not know make it longer.
inline int departures_bytes(const package::Manifest& m) {
  const Bytes manifest = package::encode_manifest(m);
  const auto* table = reinterpret_cast<const uint8_t*>(fbs::GetManifest(manifest.data())->target()->departures());
  return flatbuffers::ReadScalar<flatbuffers::voffset_t>(table - flatbuffers::ReadScalar<flatbuffers::soffset_t>(table));
}

inline Bytes slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  Bytes all(in ? static_cast<size_t>(in.tellg()) : 0);
  in.seekg(0);
  in.read(reinterpret_cast<char*>(all.data()), static_cast<std::streamsize>(all.size()));
  return all;
}

inline void spit(const std::string& path, const void* data, size_t n) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path, std::ios::binary).write(static_cast<const char*>(data), static_cast<std::streamsize>(n));
}
inline void spit(const std::string& path, const std::string& text) { spit(path, text.data(), text.size()); }
inline void spit(const std::string& path, const Bytes& bytes) { spit(path, bytes.data(), bytes.size()); }

// Reproducible values of the size weights have. Multiples of 1/64: exact in bf16 and half.
inline std::vector<float> values(const std::string& name, int64_t n) {
  uint64_t s = std::hash<std::string>{}(name) | 1;
  std::vector<float> v(static_cast<size_t>(n));
  for (float& x : v) {
    s = s * 6364136223846793005u + 1442695040888963407u;
    x = static_cast<float>(static_cast<int>(s >> 33) % 128) / 64.0f;
  }
  return v;
}

inline LlamaConfig small_config() {
  LlamaConfig c;
  c.vocab_size = c.vocab_used = 20;
  c.hidden = 8;
  c.layers = 2;
  c.heads = 2;
  c.kv_heads = 1;
  c.head_dim = 4;
  c.ffn = 12;
  c.max_context = 32;
  c.bos_id = 1;
  c.eos_ids = {2, 3};
  c.tap_layers = {0, 1};
  return c;
}

// A tensor and the memory it looks at.
struct Packed {
  Bytes data, scales;
  kernels::Tensor tensor;
};

inline Packed pack(const std::vector<float>& v, int64_t rows, int64_t cols, kernels::DType dtype) {
  Packed p;
  const auto layout = kernels::Layout::panel16;
  p.data.resize(static_cast<size_t>(kernels::data_bytes(dtype, layout, rows, cols)));
  p.scales.resize(static_cast<size_t>(kernels::scale_bytes(dtype, rows, cols)));
  kernels::pack_panel16(v.data(), rows, cols, dtype, p.data.data(), p.scales.data());
  p.tensor = {p.data.data(), p.scales.empty() ? nullptr : p.scales.data(), rows, cols, 0, dtype, layout};
  return p;
}

inline const std::string kFingerprint = "0123456789abcdef0123456789abcdef";

// Every tensor the config implies; `skip` is left out.
inline Status write_target(const std::string& path, const LlamaConfig& c, kernels::DType dtype,
                           const WriterOptions& options = {}, const std::string& skip = "") {
  AERIE_ASSIGN(auto w, PackageWriter::create(path, options));
  w->set_name("tiny");
  w->set_fingerprint(kFingerprint);
  w->set_target(c);
  AERIE_TRY(w->add_blob("tokenizer", Bytes(77, 'T')));
  for (const auto& e : package::expected_tensors(c)) {
    if (e.name == skip) continue;
    std::vector<float> v = values(e.name, e.rows * e.cols);
    if (e.weight)
      AERIE_TRY(w->add_tensor(e.name, pack(v, e.rows, e.cols, e.precise && kernels::has_scales(dtype) ? kernels::DType::bf16 : dtype).tensor));
    else
      AERIE_TRY(w->add_tensor(e.name, kernels::matrix(v.data(), e.rows, e.cols)));
  }
  AERIE_TRY(w->add_blob("chat_template", Bytes{'h', 'i'}));
  return w->finish();
}

inline Bytes target_bytes(kernels::DType dtype = kernels::DType::int8, bool compress = false) {
  const Folder folder;
  WriterOptions o;
  o.compress = compress;
  o.chunk_bytes = 512;  // several chunks even here
  EXPECT_TRUE(write_target(folder / "t.aerie", small_config(), dtype, o).ok());
  return slurp(folder / "t.aerie");
}

// A file from parts, whatever they say: what a hostile writer would do. Checksums are right.
struct Parts {
  package::Header header;
  package::Manifest manifest;
  Bytes data;
};

inline Parts take_apart(const Bytes& file) {
  const auto d = package::describe(file);
  EXPECT_TRUE(d.ok()) << d.status().message();
  return {*package::decode_header(file), d->manifest, Bytes(d->data.begin(), d->data.end())};
}

Bytes put_together(const Parts& parts, Bytes manifest);
inline Bytes put_together(const Parts& parts) { return put_together(parts, package::encode_manifest(parts.manifest)); }

inline Status open_status(const Bytes& file, const OpenOptions& options = {}) {
  return Package::open_memory(file, "mem.aerie", options).status();
}

// A package with one field changed, all checksums right, is refused by a message that names it.
inline void expect_refused(const Bytes& file, const std::string& names, const std::function<void(package::Manifest&)>& change) {
  Parts parts = take_apart(file);
  change(parts.manifest);
  const Status s = open_status(put_together(parts));
  EXPECT_EQ(s.code(), Code::bad_format) << names;
  EXPECT_NE(s.message().find(names), std::string::npos) << names << " / " << s.message();
}

// ---- safetensors ----

struct Source {
  std::string dtype = "F32";
  std::vector<int64_t> shape;
  std::vector<float> values;
};
using Sources = std::map<std::string, Source>;

Bytes safetensors(const Sources& tensors);

inline Source source(const std::string& name, std::vector<int64_t> shape, const std::string& dtype = "F32") {
  int64_t n = 1;
  for (const int64_t d : shape) n *= d;
  return {dtype, std::move(shape), values(name, n)};
}

// The layer's projections, MLP and second norm under Hugging Face's names.
void add_layer(Sources* s, const std::string& at, const LlamaConfig& c, const std::string& dtype);
Sources llama_sources(const LlamaConfig& c, const std::string& dtype = "F32");
std::string llama_json(const LlamaConfig& c, const std::string& more = "");
Sources eagle_sources(const LlamaConfig& c);
std::string eagle_json(const LlamaConfig& c, const std::string& more = "\"bias\": false");

}  // namespace aerie::test

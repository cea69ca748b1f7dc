// Damaged and hostile packages: an error that names the file and the field, never a crash, never a large
// allocation. Buffers are exactly as long as the file, so that a sanitizer sees every byte too far.
#include <xxhash.h>
#include <zstd.h>

#include <cmath>
#include <functional>
#include <limits>

#include "manifest_generated.h"
#include "unit/package/fixtures.h"

namespace aerie::test {
namespace {

using kernels::DType;

void expect_bad(const Bytes& file, const std::string& what, Code code = Code::bad_format) {
  const Status s = open_status(file);
  EXPECT_EQ(s.code(), code) << what << ": " << s.message();
  EXPECT_EQ(s.message().rfind("mem.aerie: ", 0), 0u) << s.message();
}

// FlatBuffers may refer to one string or vector from everywhere: copies of it are not to fill the memory.
TEST(PackageDamage, OneNameAgainAndAgain) {
  const Parts parts = take_apart(target_bytes(DType::f32, false));
  for (const bool chunks : {false, true}) {
    flatbuffers::FlatBufferBuilder b;
    const auto text = b.CreateString(std::string(200, 'x'));
    std::vector<flatbuffers::Offset<fbs::Param>> params;
    std::vector<flatbuffers::Offset<fbs::Tensor>> tensors;
    const auto rows = b.CreateVectorOfStructs(std::vector<fbs::Chunk>(200, fbs::Chunk(1, 1, 1)));
    const auto stored = fbs::CreateStored(b, 0, 200, 200, fbs::Codec::zstd, rows, 0);
    const auto name = b.CreateString("t");
    for (int i = 0; i < 2000 && chunks; ++i)
      tensors.push_back(fbs::CreateTensor(b, name, fbs::DType::f32, fbs::Layout::row_major, 1, 50, 0, stored));
    for (int i = 0; i < 2000 && !chunks; ++i) params.push_back(fbs::CreateParam(b, text, 1.0));
    const auto drafter = fbs::CreateDrafter(b, name, name, b.CreateVector(params));
    const auto all = b.CreateVector(tensors);
    fbs::FinishManifestBuffer(b, fbs::CreateManifest(b, fbs::Kind::drafter, name, name, 0, drafter, all, 0));
    const Status s = open_status(put_together(parts, Bytes(b.GetBufferPointer(), b.GetBufferPointer() + b.GetSize())));
    EXPECT_EQ(s.code(), Code::bad_format);
    EXPECT_NE(s.message().find("again and again"), std::string::npos) << s.message();
  }
}

TEST(PackageDamage, TruncationAnywhere) {
  for (const bool compress : {false, true}) {
    const Bytes file = target_bytes(DType::int4, compress);
    ASSERT_TRUE(open_status(file).ok());
    const Parts parts = take_apart(file);
    std::vector<size_t> cuts;
    for (size_t i = 0; i < package::kHeaderBytes; ++i) cuts.push_back(i);
    for (size_t i = parts.header.manifest_offset; i < file.size(); ++i) cuts.push_back(i);
    for (const auto& t : parts.manifest.tensors)
      for (const uint64_t at : {t.stored.offset, t.stored.offset + t.stored.stored_bytes})
        for (const int d : {-1, 0, 1}) cuts.push_back(parts.header.data_offset + at + static_cast<uint64_t>(d));
    for (const size_t n : cuts) {
      const Bytes cut(file.begin(), file.begin() + static_cast<ptrdiff_t>(std::min(n, file.size() - 1)));
      const Status s = open_status(cut);
      ASSERT_EQ(s.code(), Code::bad_format) << n;
      // The same cut by someone who puts the length and the header's checksum right again.
      if (n < package::kHeaderBytes) continue;
      Bytes mended = cut;
      package::Header h = parts.header;
      h.file_bytes = mended.size();
      const auto bytes = package::encode_header(h);
      std::copy(bytes.begin(), bytes.end(), mended.begin());
      ASSERT_EQ(open_status(mended).code(), Code::bad_format) << n;
    }
    Bytes longer = file;
    longer.push_back(0);
    expect_bad(longer, "a byte too many");
  }
}

TEST(PackageDamage, EveryByteFlipped) {
  for (const bool compress : {false, true}) {
    const Bytes file = target_bytes(DType::int8, compress);
    const Parts parts = take_apart(file);
    OpenOptions check;
    check.check_data = true;
    for (size_t i = 0; i < file.size(); ++i) {
      Bytes broken = file;
      broken[i] ^= static_cast<uint8_t>(1 + i % 255);
      const bool data = i >= parts.header.data_offset && i < parts.header.data_offset + parts.header.data_bytes;
      const Status s = open_status(broken);
      if (data) {
        ASSERT_TRUE(s.ok() || s.code() == Code::bad_format) << i << s.message();
      } else {
        ASSERT_FALSE(s.ok()) << i;
      }
      const Status checked = open_status(broken, check);
      // Between two zstd blobs nothing is looked at unless it belongs to a raw one.
      if (!compress) {
        ASSERT_EQ(checked.code(), i == 8 || i == 9 ? Code::unsupported : Code::bad_format) << i;
      }
    }
  }
}

TEST(PackageDamage, EveryManifestByteFlippedWithTheChecksumMended) {
  const Parts parts = take_apart(target_bytes(DType::int8, true));
  const Bytes manifest = package::encode_manifest(parts.manifest);
  for (size_t i = 0; i < manifest.size(); ++i)
    for (const uint8_t x : {0x01, 0x80, 0xFF}) {
      Bytes broken = manifest;
      broken[i] ^= x;
      (void)open_status(put_together(parts, broken));  // may be harmless; must not crash
    }
}

TEST(PackageDamage, MagicAndVersion) {
  const Bytes file = target_bytes();
  Bytes other = file;
  other[0] = 'G';
  expect_bad(other, "magic");
  other = file;
  other[5] = '\n';
  EXPECT_NE(open_status(other).message().find("as text"), std::string::npos);
  Parts parts = take_apart(file);
  parts.header.major = 2;
  expect_bad(put_together(parts), "a later major", Code::unsupported);
  EXPECT_NE(open_status(put_together(parts)).message().find("2.0"), std::string::npos);
  parts.header.major = 1;
  parts.header.minor = 9;
  EXPECT_TRUE(open_status(put_together(parts)).ok());  // later minors only add
}

TEST(PackageDamage, HostileHeaders) {
  const Bytes file = target_bytes();
  const package::Header good = *package::decode_header(file);
  const uint64_t max = std::numeric_limits<uint64_t>::max();
  const auto with = [&](const std::function<void(package::Header&)>& change) {
    package::Header h = good;
    change(h);
    Bytes f = file;
    const auto bytes = package::encode_header(h);
    std::copy(bytes.begin(), bytes.end(), f.begin());
    return f;
  };
  for (const uint64_t v : {uint64_t{0}, uint64_t{64}, good.file_bytes, max - 63, max - 4095, max}) {
    expect_bad(with([&](auto& h) { h.manifest_offset = v; }), "manifest offset");
    expect_bad(with([&](auto& h) { h.data_offset = v; }), "data offset");
    if (v != 64) expect_bad(with([&](auto& h) { h.data_bytes = v; }), "data length");
    expect_bad(with([&](auto& h) { h.manifest_bytes = v; }), "manifest length");
    if (v != good.file_bytes) expect_bad(with([&](auto& h) { h.file_bytes = v; }), "file length");
  }
  expect_bad(with([&](auto& h) { h.manifest_offset = good.data_offset; }), "overlap");
  expect_bad(with([&](auto& h) { h.manifest_bytes -= 4; }), "manifest checksum");
}

TEST(PackageDamage, ManifestsThatAreNotFlatBuffers) {
  const Parts parts = take_apart(target_bytes());
  for (const size_t n : {0, 4, 15, 16, 200}) {
    expect_bad(put_together(parts, Bytes(n, 0)), "zeros");
    expect_bad(put_together(parts, Bytes(n, 0xFF)), "ones");
  }
}

// One field changed, all checksums right: refused, and by a message that names the field.
TEST(PackageDamage, EveryNumberIsJudged) {
  const Bytes file = target_bytes(DType::int8, true);
  const auto refused = [&](const std::string& names, const std::function<void(package::Manifest&)>& change) { expect_refused(file, names, change); };
  using M = package::Manifest;
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const int32_t big = std::numeric_limits<int32_t>::max();
  for (const int32_t v : {-1, 0, big}) {
    refused("vocab_size", [&](M& m) { m.target->vocab_size = v; });
    refused("vocab_used", [&](M& m) { m.target->vocab_used = v; });
    refused("hidden", [&](M& m) { m.target->hidden = v; });
    refused("layers", [&](M& m) { m.target->layers = v; });
    refused("heads", [&](M& m) { m.target->heads = v; });
    refused("kv_heads", [&](M& m) { m.target->kv_heads = v; });
    refused("head_dim", [&](M& m) { m.target->head_dim = v; });
    refused("ffn", [&](M& m) { m.target->ffn = v; });
    refused("max_context", [&](M& m) { m.target->max_context = v; });
  }
  refused("vocab_used", [](M& m) { m.target->vocab_used = m.target->vocab_size + 1; });
  refused("head_dim", [](M& m) { m.target->head_dim = 3; });
  refused("kv_heads", [](M& m) { m.target->heads = 3, m.target->kv_heads = 2; });
  for (const float v : {0.0f, -1.0f, nan, inf}) {
    refused("rms_eps", [&](M& m) { m.target->rms_eps = v; });
    refused("rope_theta", [&](M& m) { m.target->rope_theta = v; });
    refused("rope_scaling.factor", [&](M& m) { m.target->rope_scaling = {RopeScaling::Kind::linear, v, 1, 4, 8192}; });
    refused("rope_scaling.low", [&](M& m) { m.target->rope_scaling = {RopeScaling::Kind::llama3, 8, v, 4, 8192}; });
    refused("rope_scaling.high", [&](M& m) { m.target->rope_scaling = {RopeScaling::Kind::llama3, 8, 1, v, 8192}; });
  }
  refused("rope_scaling.attention_factor", [](M& m) { m.target->rope_scaling = {RopeScaling::Kind::yarn, 8, 1, 32, 4096, 0}; });
  refused("rope_scaling.high", [](M& m) { m.target->rope_scaling = {RopeScaling::Kind::yarn, 8, 32, 1, 4096, 1}; });
  refused("rope_scaling.original", [](M& m) { m.target->rope_scaling = {RopeScaling::Kind::llama3, 8, 1, 4, 0}; });
  const auto departs = [](M& m) -> Departures& {
    m.target->rope_scaling.kind = RopeScaling::Kind::listed;
    m.target->departures.gelu = true;
    return m.target->departures;
  };
  refused("rope.frequencies: the tensor is missing", [&](M& m) { departs(m); });
  refused("rope_scaling: must be listed", [](M& m) { m.target->departures.gelu = true; });
  for (const float v : {0.0f, -1.0f, nan, inf}) {
    refused("embed_scale", [&](M& m) { departs(m).embed_scale = v; });
    refused("residual_scale", [&](M& m) { departs(m).residual_scale = v; });
    if (v != 0) refused("attention_scale", [&](M& m) { departs(m).attention_scale = v; });
    if (v != 0) refused("score_cap", [&](M& m) { departs(m).score_cap = v; });
  }
  refused("windows count", [&](M& m) { departs(m).windows = {4}; });
  refused("windows", [&](M& m) { departs(m).windows = {4, -1}; });
  refused("layer_rope count", [&](M& m) { departs(m).layer_rope = {0, 0, 0}; });
  refused("layer_rope", [&](M& m) { departs(m).layer_rope = {0, kMostRopeRows}; });
  refused("whole_qk_norm", [&](M& m) { departs(m).whole_qk_norm = true; });
  refused("bos_id", [](M& m) { m.target->bos_id = m.target->vocab_used; });
  refused("eos_ids", [](M& m) { m.target->eos_ids = {-1}; });
  refused("eos_ids", [](M& m) { m.target->eos_ids.assign(65, 1); });
  refused("tap_layers", [](M& m) { m.target->tap_layers = {m.target->layers}; });
  refused("tap_layers", [](M& m) { m.target->tap_layers.assign(9, 0); });
  refused("fingerprint", [](M& m) { m.fingerprint = "xyz"; });
  for (const char* name : {"a\nb", "a\xC2\x9B" "31m", "\xff", "cut \xE2\x82"}) refused("name", [&](M& m) { m.name = name; });
  refused("kind", [](M& m) { m.kind = PackageKind::drafter; });
  refused("kind", [](M& m) { m.target.reset(); });

  const auto tensor = [](M& m, const std::string& name) -> package::TensorRow& {
    for (auto& t : m.tensors)
      if (t.name == name) return t;
    std::abort();
  };
  const int64_t most = std::numeric_limits<int64_t>::max();
  for (const int64_t v : {int64_t{-1}, int64_t{0}, int64_t{1} << 32, most}) {
    refused("embed", [&](M& m) { tensor(m, "embed").rows = v; });
    refused("embed", [&](M& m) { tensor(m, "embed").cols = v; });
  }
  refused("embed", [&](M& m) { tensor(m, "embed").rows = tensor(m, "embed").cols = most; });
  const uint64_t umax = std::numeric_limits<uint64_t>::max();
  for (const uint64_t v : {umax, umax - 63, uint64_t{0}, uint64_t{1} << 40}) {
    refused("embed", [&](M& m) { tensor(m, "embed").stored.raw_bytes = v; });
    refused("embed", [&](M& m) { tensor(m, "embed").stored.stored_bytes = v; });
    refused("offset", [&](M& m) { tensor(m, "norm").stored.offset = v; });
    refused("scales", [&](M& m) { tensor(m, "embed").scales_offset = v; });
  }
  refused("embed", [&](M& m) { tensor(m, "embed").stored.chunks.pop_back(); });
  refused("embed", [&](M& m) { tensor(m, "embed").stored.chunks[0].raw_bytes = 17 << 20; });
  refused("embed", [&](M& m) { tensor(m, "embed").stored.chunks[0].stored_bytes = 0; });
  refused("embed: chunk 0", [&](M& m) { tensor(m, "embed").stored.chunks[0].xxh64 ^= 1; });
  refused("embed: checksum", [&](M& m) { tensor(m, "embed").stored.xxh64 ^= 1; });
  refused("embed", [&](M& m) { tensor(m, "embed").dtype = DType::f32; });
  refused("embed", [&](M& m) { tensor(m, "embed").layout = kernels::Layout::row_major; });
  refused("norm", [&](M& m) { tensor(m, "norm").layout = kernels::Layout::panel16; });
  refused("layers.1.attn.o: the tensor is missing", [&](M& m) { tensor(m, "layers.1.attn.o").name = "other"; });
  refused("lm_head: unexpected", [&](M& m) { m.target->tied = true; });
  refused("attn.qkv.bias: the tensor is missing", [&](M& m) { m.target->qkv_bias = true; });
  refused("twice", [&](M& m) { tensor(m, "layers.1.attn.o").name = "layers.0.attn.o"; });
  refused("twice", [&](M& m) { m.blobs[1].name = m.blobs[0].name; });
  refused("names", [&](M& m) { m.blobs[0].name = ""; });
  refused("names", [&](M& m) { m.blobs[0].name = "\x1b[31m"; });
  refused("shape", [&](M& m) { m.target->ffn = 13; });
}

TEST(PackageDamage, AnAttentionFactorIsYarnsAlone) {
  Parts parts = take_apart(target_bytes());
  for (const float factor : {0.0f, 0.5f, std::numeric_limits<float>::quiet_NaN()}) {
    parts.manifest.target->rope_scaling = {RopeScaling::Kind::linear, 8, 1, 4, 8192, factor};
    const auto p = Package::open_memory(put_together(parts), "mem.aerie", {});
    ASSERT_TRUE(p.ok()) << p.status().message();
    EXPECT_EQ((*p)->target()->rope_scaling.attention_factor, 1);
  }
}

TEST(PackageDamage, DrafterNumbersAreJudged) {
  Parts parts;
  parts.manifest.kind = PackageKind::drafter;
  parts.manifest.fingerprint = kFingerprint;
  DrafterConfig good;
  good.plugin_id = "eagle";
  good.target_fingerprint = kFingerprint;
  good.params = {{"hidden", 8}};
  const auto status = [&](const std::function<void(DrafterConfig&)>& change) {
    DrafterConfig d = good;
    change(d);
    parts.manifest.drafter = d;
    return open_status(put_together(parts));
  };
  EXPECT_TRUE(status([](auto&) {}).ok());
  EXPECT_FALSE(status([](auto& d) { d.plugin_id = "../../evil"; }).ok());
  EXPECT_FALSE(status([](auto& d) { d.plugin_id = ""; }).ok());
  EXPECT_FALSE(status([](auto& d) { d.target_fingerprint = "none"; }).ok());
  EXPECT_FALSE(status([](auto& d) { d.params.push_back({"hidden", 9}); }).ok());
  EXPECT_FALSE(status([](auto& d) { d.params[0].value = NAN; }).ok());
  EXPECT_FALSE(status([](auto& d) { d.params[0].name = "a b"; }).ok());
  EXPECT_FALSE(status([](auto& d) { d.params.assign(257, {"x", 1}); }).ok());
  const auto scaled = [&](double kind, double factor) {
    return status([&](auto& d) { d.params.insert(d.params.end(), {{"rope_scaling", kind}, {"rope_scaling.factor", factor}}); });
  };
  EXPECT_TRUE(scaled(1, 8).ok());
  EXPECT_NE(scaled(4, 8).message().find("rope_scaling: unknown"), std::string::npos);
  EXPECT_NE(scaled(2, 0).message().find("rope_scaling.factor"), std::string::npos);
}

// A drafter package around one zstd blob of ours.
Bytes with_frame(const Bytes& frame, uint64_t raw_bytes, uint32_t chunk_raw) {
  Parts parts;
  parts.data = frame;
  parts.manifest.kind = PackageKind::drafter;
  parts.manifest.fingerprint = kFingerprint;
  parts.manifest.drafter = DrafterConfig{"x", kFingerprint, {}, {}};
  package::BlobRow row{"tokenizer", {0, frame.size(), raw_bytes, package::Codec::zstd, {}, 0}};
  row.stored.chunks.push_back({XXH64(frame.data(), frame.size(), 0), static_cast<uint32_t>(frame.size()), chunk_raw});
  parts.manifest.blobs.push_back(row);
  return put_together(parts);
}

TEST(PackageDamage, ZstdFrames) {
  const auto frame_of = [](size_t n) {
    const Bytes zeros(n);
    Bytes frame(ZSTD_compressBound(n));
    frame.resize(ZSTD_compress(frame.data(), frame.size(), zeros.data(), n, 3));
    return frame;
  };
  const Bytes frame = frame_of(2000);
  expect_bad(with_frame(frame, 1999, 1999), "the frame is longer than the manifest says");
  expect_bad(with_frame(frame, 2001, 2001), "the frame is shorter");
  expect_bad(with_frame(Bytes(40, 7), 2000, 2000), "not a frame");
  Bytes two = frame;
  two.insert(two.end(), frame.begin(), frame.end());
  expect_bad(with_frame(two, 2000, 2000), "two frames in a chunk");
  Bytes tail = frame;
  tail.push_back(0);
  expect_bad(with_frame(tail, 2000, 2000), "a byte after the frame");
  // A bomb: 16 MiB out of some 500 bytes, all of it consistent.
  const Status bomb = open_status(with_frame(frame_of(16 << 20), 16 << 20, 16 << 20));
  EXPECT_NE(bomb.message().find("claim"), std::string::npos) << bomb.message();
  const Bytes streamed = {0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x58, 0x01, 0x00, 0x00};  // no content size
  expect_bad(with_frame(streamed, 0x58, 0x58), "a frame that does not tell its size");
}

TEST(PackageDamage, WeightsOfFourBitsNeedTheirScalesAndMinima) {
  for (const DType dtype : {DType::int4, DType::q4_1, DType::mxfp4}) {
    const Bytes file = target_bytes(dtype);
    const auto refused = [&](const std::string& what, const std::function<void(package::TensorRow&)>& change) {
      Parts parts = take_apart(file);
      change(parts.manifest.tensors[0]);
      expect_bad(put_together(parts), what);
    };
    using Row = package::TensorRow;
    refused("do not go together", [](Row& t) { t.layout = kernels::Layout::row_major; });
    refused("scales offset", [](Row& t) { t.scales_offset += 64; });
    refused("scales offset", [](Row& t) { t.scales_offset = 0; });
    refused("the manifest says", [](Row& t) { t.stored.raw_bytes -= 16; });
    refused("the manifest says", [](Row& t) { t.dtype = t.dtype == DType::int4 ? DType::q4_1 : DType::int4; });
    refused("out of range", [](Row& t) { t.cols = int64_t{1} << 40; });
  }
}

TEST(PackageDamage, UnknownEnumsAreAnotherVersionsNotDamage) {
  Parts parts = take_apart(target_bytes());
  parts.manifest.tensors[0].dtype = static_cast<DType>(9);
  expect_bad(put_together(parts), "dtype", Code::unsupported);
  parts = take_apart(target_bytes());
  parts.manifest.tensors[0].layout = static_cast<kernels::Layout>(9);
  expect_bad(put_together(parts), "layout", Code::unsupported);
  parts = take_apart(target_bytes());
  parts.manifest.blobs[0].stored.codec = static_cast<package::Codec>(9);
  expect_bad(put_together(parts), "codec", Code::unsupported);
  parts = take_apart(target_bytes());
  parts.manifest.kind = static_cast<PackageKind>(9);
  expect_bad(put_together(parts), "kind", Code::unsupported);
  parts = take_apart(target_bytes());
  parts.manifest.target->rope_scaling.kind = static_cast<RopeScaling::Kind>(9);
  expect_bad(put_together(parts), "rope", Code::unsupported);
  parts = take_apart(target_bytes());
  parts.manifest.target->departures.norms = static_cast<Departures::Norms>(9);
  expect_bad(put_together(parts), "norms", Code::unsupported);
}

}  // namespace
}  // namespace aerie::test

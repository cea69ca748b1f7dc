// What is written comes back, and what must not be written is refused.
#ifndef _WIN32
#include <sys/resource.h>
#endif
#include <sys/stat.h>

#include <csignal>
#include <cstdlib>

#include "core/platform/file.h"
#include "unit/package/fixtures.h"

namespace aerie::test {
namespace {

using kernels::DType;

class RoundTrip : public testing::TestWithParam<std::tuple<DType, bool>> {};

TEST_P(RoundTrip, GivesBackEveryValue) {
  const auto [dtype, compress] = GetParam();
  const Folder folder;
  LlamaConfig config = small_config();
  config.hidden = 64;
  config.ffn = 172;  // K that is not a multiple of 32
  config.qkv_bias = true;
  config.rope_scaling = {RopeScaling::Kind::llama3, 8, 1, 4, 4096};
  WriterOptions o;
  o.compress = compress;
  o.chunk_bytes = 1000;
  const Status written = write_target(folder / "t.aerie", config, dtype, o);
  ASSERT_TRUE(written.ok()) << written.message();
  OpenOptions checked;
  checked.check_data = true;
  const auto opened = Package::open(folder / "t.aerie", checked);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  const Package& p = **opened;
  EXPECT_EQ(p.name(), "tiny");
  EXPECT_EQ(p.fingerprint(), kFingerprint);
  EXPECT_EQ(p.kind(), PackageKind::target);
  ASSERT_NE(p.target(), nullptr);
  EXPECT_EQ(p.drafter(), nullptr);
  EXPECT_EQ(p.target()->ffn, 172);
  EXPECT_EQ(p.target()->eos_ids, config.eos_ids);
  EXPECT_EQ(p.target()->tap_layers, config.tap_layers);
  EXPECT_EQ(p.target()->rope_scaling.kind, RopeScaling::Kind::llama3);
  EXPECT_EQ(p.target()->rope_scaling.original_context, 4096);
  EXPECT_EQ(p.target()->rms_eps, config.rms_eps);
  EXPECT_TRUE(p.target()->qkv_bias);
  bool zstd = false;
  for (const TensorInfo& t : p.tensors()) zstd |= t.codec == "zstd";
  EXPECT_EQ(zstd, compress);
  EXPECT_EQ(p.blob("tokenizer").size(), 77u);
  EXPECT_EQ(p.blob("chat_template")[1], 'i');
  EXPECT_TRUE(p.blob("absent").empty());
  for (const auto& e : package::expected_tensors(config)) {
    ASSERT_TRUE(p.has(e.name));
    const auto t = p.tensor(e.name);
    ASSERT_TRUE(t.ok());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(t->data) % 64, 0u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(t->scales) % 64, 0u);
    const std::vector<float> v = values(e.name, e.rows * e.cols);
    if (!e.weight) {
      EXPECT_EQ(std::memcmp(t->data, v.data(), v.size() * 4), 0) << e.name;
      EXPECT_EQ(t->stride, e.cols);
      continue;
    }
    const Packed want = pack(v, e.rows, e.cols, dtype);
    EXPECT_EQ(t->dtype, dtype);
    EXPECT_EQ(std::memcmp(t->data, want.data.data(), want.data.size()), 0) << e.name;
    if (!want.scales.empty()) {
      EXPECT_EQ(std::memcmp(t->scales, want.scales.data(), want.scales.size()), 0) << e.name;
    }
    EXPECT_NEAR(kernels::panel16_at(*t, e.rows - 1, e.cols - 1), v.back(), dtype == DType::mxfp4 ? 0.5 : kernels::is_nibbles(dtype) ? 0.3 : dtype == DType::fp8 ? 0.07 : 0.02) << e.name;
  }
  EXPECT_EQ(p.tensor("nothing").status().code(), Code::not_found);
  EXPECT_NE(p.tensor("nothing").status().message().find("t.aerie: nothing"), std::string::npos);
  EXPECT_EQ(folder.names(), std::vector<std::string>{"t.aerie"});
}

INSTANTIATE_TEST_SUITE_P(All, RoundTrip,
                         testing::Combine(testing::Values(DType::f32, DType::bf16, DType::fp8, DType::int8, DType::int4, DType::q4_1, DType::mxfp4),
                                          testing::Bool()));

TEST(PackageFile, DrafterRoundTrip) {
  const Folder folder;
  auto w = PackageWriter::create(folder / "d.aerie");
  ASSERT_TRUE(w.ok());
  DrafterConfig d;
  d.plugin_id = "eagle";
  d.target_fingerprint = kFingerprint;
  d.params = {{"hidden", 8}, {"rms_eps", 1e-5}};
  (*w)->set_drafter(d);
  (*w)->set_fingerprint("aaaaaaaaaaaaaaaa");
  ASSERT_TRUE((*w)->add_tensor("fc", pack(values("fc", 128), 8, 16, DType::int4).tensor).ok());
  int32_t ids[4] = {1, -2, 3, 4};
  ASSERT_TRUE((*w)->add_tensor("d2t", kernels::matrix(ids, 1, 4, DType::i32)).ok());
  ASSERT_TRUE((*w)->finish().ok());
  const auto p = Package::open(folder / "d.aerie");
  ASSERT_TRUE(p.ok()) << p.status().message();
  ASSERT_NE((*p)->drafter(), nullptr);
  EXPECT_EQ((*p)->drafter()->params[1].value, 1e-5);
  EXPECT_EQ((*p)->drafter()->target_fingerprint, kFingerprint);
  EXPECT_EQ(static_cast<const int32_t*>((*p)->tensor("d2t")->data)[1], -2);
}

TEST(PackageFile, MemoryNeedNotBeAligned) {
  const Bytes file = target_bytes();
  Bytes shifted(file.size() + 1);
  std::copy(file.begin(), file.end(), shifted.begin() + 1);
  const auto p = Package::open_memory({shifted.data() + 1, file.size()}, "mem");
  ASSERT_TRUE(p.ok()) << p.status().message();
  EXPECT_EQ(reinterpret_cast<uintptr_t>((*p)->tensor("embed")->data) % 64, 0u);
}

TEST(PackageFile, RawPagesCannotBeWritten) {
  const auto p = [] {
    const Folder folder;  // gone before a child of this test dies with one of its own; the mapping stays
    EXPECT_TRUE(write_target(folder / "t.aerie", small_config(), DType::f32).ok());
    return Package::open(folder / "t.aerie");
  }();
  ASSERT_TRUE(p.ok());
  auto* data = static_cast<volatile float*>((*p)->tensor("embed")->data);
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(*data = 1.0f, "");
}

TEST(PackageFile, ProgressCountsUpAndCancels) {
  const Bytes file = target_bytes(DType::bf16, true);
  uint64_t last = 0, total = 0;
  OpenOptions o;
  o.progress = [&](uint64_t done, uint64_t all) {
    EXPECT_GT(done, last);
    last = done;
    total = all;
    return true;
  };
  ASSERT_TRUE(open_status(file, o).ok());
  EXPECT_EQ(last, total);
  int calls = 0;
  o.progress = [&](uint64_t, uint64_t) { return ++calls < 3; };
  EXPECT_EQ(open_status(file, o).code(), Code::cancelled);
  EXPECT_EQ(calls, 3);
}

TEST(PackageFile, AnUnfinishedWriterLeavesNothing) {
  const Folder folder;
  {
    auto w = PackageWriter::create(folder / "t.aerie");
    ASSERT_TRUE(w.ok());
    ASSERT_TRUE((*w)->add_blob("tokenizer", Bytes(100000, 'x')).ok());
    EXPECT_EQ(folder.names().size(), 1u);  // the temporary
    EXPECT_NE(folder.names()[0], "t.aerie");
  }
  EXPECT_TRUE(folder.names().empty());
}

TEST(PackageFile, AFailedFinishLeavesTheOldFile) {
  const Folder folder;
  spit(folder / "t.aerie", std::string("precious"));
  const Status s = write_target(folder / "t.aerie", small_config(), DType::f32, {}, "norm");
  EXPECT_EQ(s.code(), Code::bad_format);
  EXPECT_NE(s.message().find("t.aerie: norm: the tensor is missing"), std::string::npos) << s.message();
  EXPECT_EQ(folder.names(), std::vector<std::string>{"t.aerie"});
  EXPECT_EQ(slurp(folder / "t.aerie").size(), 8u);
}

TEST(PackageFile, AFailureSticks) {
  const Folder folder;
  auto w = PackageWriter::create(folder / "t.aerie");
  ASSERT_TRUE(w.ok());
  kernels::Tensor absent = kernels::matrix(nullptr, 2, 2);
  EXPECT_FALSE((*w)->add_tensor("x", absent).ok());
  EXPECT_FALSE((*w)->add_blob("tokenizer", Bytes(3)).ok());
  EXPECT_FALSE((*w)->finish().ok());
  EXPECT_TRUE(folder.names().empty());
}

#ifndef _WIN32  // there is no limit of a file's size
TEST(PackageFile, AFullDiskLeavesNothing) {
  // A file-size limit stands for the full disk; the child keeps it to itself.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto child = [] {
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit limit;
    limit.rlim_cur = limit.rlim_max = 8192;
    setrlimit(RLIMIT_FSIZE, &limit);
    const Folder folder;
    auto w = PackageWriter::create(folder / "t.aerie");
    const Status s = (*w)->add_blob("tokenizer", Bytes(100000));
    const bool right = s.code() == Code::io && !(*w)->finish().ok();
    w->reset();
    return right && folder.names().empty();
  };
  EXPECT_EXIT(std::_Exit(child() ? 0 : 1), testing::ExitedWithCode(0), "");
}
#endif

TEST(PackageFile, OutputsThatCannotBe) {
  const Folder folder;
  fs::create_directory(folder / "dir.aerie");
  EXPECT_EQ(PackageWriter::create(folder / "dir.aerie").status().code(), Code::invalid_argument);
  EXPECT_EQ(PackageWriter::create(folder / "absent/t.aerie").status().code(), Code::not_found);
#ifndef _WIN32
  EXPECT_EQ(PackageWriter::create("/dev/null").status().code(), Code::invalid_argument);
#endif
  EXPECT_EQ(PackageWriter::create("").status().code(), Code::invalid_argument);
}

TEST(PackageFile, InputsThatCannotBe) {
  const Folder folder;
  EXPECT_EQ(Package::open(folder / "absent").status().code(), Code::not_found);
  EXPECT_EQ(Package::open(folder / ".").status().code(), Code::invalid_argument);
#ifndef _WIN32
  mkfifo((folder / "pipe").c_str(), 0600);
  EXPECT_EQ(Package::open(folder / "pipe").status().code(), Code::invalid_argument);
#endif
  spit(folder / "empty", std::string());
  EXPECT_EQ(Package::open(folder / "empty").status().code(), Code::bad_format);
  EXPECT_EQ(platform::read_file(folder / "empty", 0)->size(), 0u);
  spit(folder / "five", std::string("12345"));
  EXPECT_EQ(platform::read_file(folder / "five", 4).status().code(), Code::limit);
}

TEST(PackageFile, NamesAreUtf8) {
  const Folder folder;
  const std::string path = folder /
                           "m\xC3\xB6"
                           "del \xE9\xB7\xB2.aerie";
  ASSERT_TRUE(write_target(path, small_config(), DType::f32).ok());
  EXPECT_TRUE(Package::open(path).ok());
}

TEST(PackageFile, ZerosAreStoredRawRatherThanBeyondTheExpansionLimit) {
  const Folder folder;
  WriterOptions o;
  o.compress = true;
  auto w = PackageWriter::create(folder / "d.aerie", o);
  DrafterConfig d;
  d.plugin_id = "x";
  d.target_fingerprint = kFingerprint;
  (*w)->set_drafter(d);
  (*w)->set_fingerprint(kFingerprint);
  std::vector<float> zeros(1 << 20);
  ASSERT_TRUE((*w)->add_tensor("zeros", kernels::matrix(zeros.data(), 1024, 1024)).ok());
  ASSERT_TRUE((*w)->finish().ok());
  const auto p = Package::open(folder / "d.aerie");
  ASSERT_TRUE(p.ok()) << p.status().message();
}

TEST(PlatformPaths, Parts) {
  EXPECT_EQ(platform::file_name("/a/b/"), "b");
  EXPECT_EQ(platform::file_name("b"), "b");
  EXPECT_EQ(platform::file_name("/"), "");
  EXPECT_EQ(platform::parent_directory("b"), ".");
  EXPECT_EQ(platform::parent_directory("/b"), "/");
  EXPECT_EQ(platform::join_path("a/", "b"), "a/b");
}

}  // namespace
}  // namespace aerie::test

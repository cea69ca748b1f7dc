// The backend as a shared object: how it is found, and what is said when it is not.
#include <filesystem>
#include <fstream>

#include "core/device/device.h"
#include "unit/cuda/cuda_support.h"

namespace aerie::kernels::cuda_test {
namespace {

const std::string kLib = std::string(AERIE_BINARY_DIR) + "/lib";

TEST(CudaBackend, ALibraryGivesADevice) {
  const std::string path = kLib + "/test-backend/libemulated_backend.so";
  auto device = make_device_from(path, 0);
  ASSERT_TRUE(device.ok()) << device.status().message();
  EXPECT_STREQ((*device)->name(), "cuda");
  auto again = make_device_from(path, 0);
  ASSERT_TRUE(again.ok());
  float in = 3, out = 0;
  void* memory = (*device)->allocate(4);
  const Op plan[] = {Upload{memory, &in, 4}, Download{&out, memory, 4}};
  run_plan(**device, plan);
  EXPECT_EQ(out, 3.0f);
  (*device)->release(memory);
  EXPECT_EQ(make_device_from(path, 7).status().code(), Code::not_found);
}

TEST(CudaBackend, WhatIsAskedForWronglySaysSo) {
  const auto message = [](const std::string& name) { return make_device(name, {}).status().message(); };
  EXPECT_NE(message("gpu").find("cpu, cpu:ISA, cuda and cuda:N, not gpu"), std::string::npos);
  EXPECT_NE(message("cpu:").find("an instruction set"), std::string::npos);
  EXPECT_NE(message("cuda:x").find("a number"), std::string::npos);
  EXPECT_NE(message("cuda:").find("a number"), std::string::npos);
  EXPECT_NE(message("cuda:-1").find("a number"), std::string::npos);
  EXPECT_TRUE(make_device("cpu", {}).ok());
  CpuOptions own;
  own.alloc = [](void*, size_t n, size_t) { return malloc(n); };
  own.free = [](void*, void* p) { free(p); };
  EXPECT_NE(make_device("cuda", own).status().message().find("allocator"), std::string::npos);
  // This program is not beside a libaerie-cuda.
  EXPECT_EQ(make_device("cuda", {}).status().code(), Code::unsupported);
  EXPECT_NE(message("cuda").find("libaerie-cuda.so is not installed"), std::string::npos);
}

TEST(CudaBackend, OtherLibrariesAreRefused) {
  EXPECT_NE(make_device_from(kLib + "/aerie/drafters/ngram.so", 0).status().message().find("aerie_backend_entry"), std::string::npos);
  const std::string path = testing::TempDir() + "aerie-no-backend.so";
  std::ofstream(path) << "no library";
  EXPECT_FALSE(make_device_from(path, 0).ok());
  std::filesystem::remove(path);
}

// The real one, on this machine.
TEST(CudaBackend, WithoutAGpuTheErrorIsClear) {
  const std::string path = kLib + "/aerie/libaerie-cuda.so";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "libaerie-cuda is not built: no nvcc was found, or a sanitizer is on";
  const auto device = make_device_from(path, 0);
  if (device.ok()) GTEST_SKIP() << "there is a device: tests/gpu/run.sh tests it";
  EXPECT_EQ(device.status().code(), Code::device);
  EXPECT_EQ(device.status().message().rfind("cuda: no ", 0), 0u) << device.status().message();
}

}  // namespace
}  // namespace aerie::kernels::cuda_test

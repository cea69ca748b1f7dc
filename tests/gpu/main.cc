// gpu_tests: where there is no device, all of them are skipped, and that is said.
#include <gtest/gtest.h>

#include <cstdio>

#include "kernels/cuda/cuda_device.h"
#include "tests/gpu/managed_new.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (GTEST_FLAG_GET(list_tests)) return RUN_ALL_TESTS();
  if (const auto device = aerie::kernels::make_cuda_device({}); !device.ok()) {
    std::printf("%d tests skipped: %s\n", testing::UnitTest::GetInstance()->total_test_count(), device.status().message().c_str());
    return 77;
  }
  if (!aerie::gpu_tests::use_managed_memory()) {
    std::printf("no managed memory on this device\n");
    return 1;
  }
  return RUN_ALL_TESTS();
}

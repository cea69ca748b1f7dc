// The tree ops on the emulated device, in three orders of threads, against the policies on the host.
#include "unit/cuda/cuda_support.h"
#include "unit/tree/device_drive.h"

namespace aerie::kernels::cuda_test {
namespace {

TEST(CudaTree, IsThePolicys) {
  each_order([] { tree_test::expect_policies_trees(*cuda_device(false), 40); });
}
TEST(CudaTree, IsAutos) {
  each_order([] { tree_test::expect_autos_trees(*cuda_device(false), 150); });
}
TEST(CudaTree, NonsenseIsRefused) {
  each_order([] { tree_test::expect_nonsense_is_refused(*cuda_device(false)); });
}
TEST(CudaTree, WalkedRowsHaveSlots) {
  each_order([] { tree_test::expect_path_slots(*cuda_device(false)); });
}

}  // namespace
}  // namespace aerie::kernels::cuda_test

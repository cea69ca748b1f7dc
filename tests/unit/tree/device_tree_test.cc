// Trees that a device draws by itself are those of the policies, node for node.
#include "kernels/cpu/cpu_device.h"
#include "unit/tree/device_drive.h"

namespace aerie::tree_test {
namespace {

TEST(DeviceTree, IsThePolicysOnTheReference) { expect_policies_trees(*kernels::make_reference_device(), 400); }
TEST(DeviceTree, IsThePolicysOnTheCpu) { expect_policies_trees(*kernels::make_cpu_device({.threads = 1}).value(), 50); }
TEST(DeviceTree, IsAutosOnTheReference) { expect_autos_trees(*kernels::make_reference_device(), 1200); }
TEST(DeviceTree, IsAutosOnTheCpu) { expect_autos_trees(*kernels::make_cpu_device({.threads = 1}).value(), 250); }
TEST(DeviceTree, NonsenseIsRefused) { expect_nonsense_is_refused(*kernels::make_reference_device()); }
TEST(DeviceTree, WalkedRowsHaveSlots) { expect_path_slots(*kernels::make_reference_device()); }

TEST(DeviceTree, WhatTheHostsTreeCannotHoldIsTheHosts) {
  TreeLayout layout;
  EXPECT_TRUE(layout.lay({20, 20, 11, 71}, false));   // 4020 candidates
  EXPECT_LT(layout.places, DraftTree().capacity());
  EXPECT_FALSE(layout.lay({20, 20, 12, 71}, false));  // 4420
}

// Those that weigh costs have no shape before they are told any.
TEST(DeviceTree, OnlyTreesOfTheCandidatesAndKnownCosts) {
  TreeShape shape;
  for (const char* name : {"cast", "auto"}) {
    PolicySpec spec;
    spec.name = name;
    auto policy = std::move(make_policy(spec)).value();
    policy->begin({});
    EXPECT_FALSE(policy->shape(&shape)) << name;
  }
}

}  // namespace
}  // namespace aerie::tree_test

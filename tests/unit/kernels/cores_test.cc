// The default number of threads, on machines that are only files.
#include "kernels/cpu/cores.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <thread>

#include "tests/support/temporary_folder.h"

namespace aerie::kernels::cores_test {
namespace fs = std::filesystem;
using cpu::usable_cores;

class Cores : public testing::Test {
 protected:
  void file(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text << "\n";
  }
  static void add(std::string& list, int cpu) {
    if (!list.empty()) list += ',';
    list += std::to_string(cpu);
  }
  // CPU c's core is c % cores, as Linux numbers hyper-threads; nodes share the cores equally.
  void machine(int cpus, int cores, int nodes) {
    std::vector<std::string> of_node(static_cast<size_t>(nodes));
    for (int c = 0; c < cpus; ++c) {
      std::string siblings;
      for (int s = c % cores; s < cpus; s += cores) add(siblings, s);
      file("/sys/devices/system/cpu/cpu" + std::to_string(c) + "/topology/thread_siblings_list", siblings);
      add(of_node[static_cast<size_t>(c % cores * nodes / cores)], c);
    }
    std::string online;
    for (int n = 0; n < nodes; ++n) {
      add(online, n);
      file("/sys/devices/system/node/node" + std::to_string(n) + "/cpulist", of_node[static_cast<size_t>(n)]);
    }
    file("/sys/devices/system/node/online", online);
  }
  static std::vector<int> first(int n) {
    std::vector<int> cpus(static_cast<size_t>(n));
    std::iota(cpus.begin(), cpus.end(), 0);
    return cpus;
  }
  const aerie::test::TemporaryFolder folder_;
  const std::string root_ = folder_.path();
};

TEST_F(Cores, OnePhysicalCoreEach) {
  machine(8, 8, 1);
  EXPECT_EQ(usable_cores(first(8), root_), 8);
  EXPECT_EQ(usable_cores(first(3), root_), 3);  // the affinity mask
}

TEST_F(Cores, HyperThreadsOfACoreAreOne) {
  machine(16, 8, 1);
  EXPECT_EQ(usable_cores(first(16), root_), 8);
  EXPECT_EQ(usable_cores({3, 11}, root_), 1);
  EXPECT_EQ(usable_cores({3, 11, 4}, root_), 2);
}

TEST_F(Cores, OneNodeIsNotLeft) {
  machine(64, 32, 2);
  EXPECT_EQ(usable_cores(first(64), root_), 16);
  std::vector<int> mostly_second = {0, 1, 32, 16, 17, 18, 48};
  EXPECT_EQ(usable_cores(mostly_second, root_), 3);
}

TEST_F(Cores, RangesOfCpus) {
  machine(8, 4, 1);
  file("/sys/devices/system/node/online", "0-1");
  file("/sys/devices/system/node/node0/cpulist", "0-2,4-6");
  file("/sys/devices/system/node/node1/cpulist", "3,7");
  EXPECT_EQ(usable_cores(first(8), root_), 3);
}

TEST_F(Cores, AQuotaIsNotExceeded) {
  machine(16, 16, 1);
  file("/proc/self/cgroup", "0::/game/worker");
  file("/sys/fs/cgroup/game/worker/cpu.max", "max 100000");
  EXPECT_EQ(usable_cores(first(16), root_), 16);
  file("/sys/fs/cgroup/game/cpu.max", "350000 100000");  // a group further up counts
  EXPECT_EQ(usable_cores(first(16), root_), 3);
  file("/sys/fs/cgroup/game/worker/cpu.max", "50000 100000");
  EXPECT_EQ(usable_cores(first(16), root_), 1);
}

TEST_F(Cores, AQuotaOfTheFirstVersion) {
  machine(16, 16, 1);
  file("/proc/self/cgroup", "4:cpu,cpuacct:/box");
  file("/sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "200000");
  file("/sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000");
  EXPECT_EQ(usable_cores(first(16), root_), 2);
}

// A container may hide /sys: every CPU counts then.
TEST_F(Cores, WithoutFiles) {
  EXPECT_EQ(usable_cores(first(5), root_), 5);
  EXPECT_EQ(usable_cores({}, root_), 1);
}

TEST_F(Cores, OfThisMachine) {
  EXPECT_GE(usable_cores(), 1);
  EXPECT_LE(usable_cores(), static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
}

}  // namespace aerie::kernels::cores_test

// How many threads a pool has when nobody says.
#pragma once

#include <string>
#include <vector>

namespace aerie::kernels::cpu {

// Physical cores that this process may use: of its affinity mask, on one NUMA node (the one with most of them), no more
// than its cgroup's quota.
int usable_cores();

// Of these CPUs, by the kernel's files under `root` ("": the system's own; tests have a tree of theirs).
int usable_cores(const std::vector<int>& cpus, const std::string& root);

}  // namespace aerie::kernels::cpu

#include "kernels/cpu/cores.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#elif defined(_WIN32)
#include "kernels/win32.h"
#endif

namespace aerie::kernels::cpu {

namespace {

// Whole cores of one limit; 0: none set.
int whole_cores(double quota, double period) {
  return quota > 0 && period > 0 ? std::max(1, static_cast<int>(quota / period)) : 0;
}

double number_in(const std::string& path) {
  double v = 0;
  return std::ifstream(path) >> v ? v : 0;
}

// The tightest CPU quota of this process's control groups, v2 or v1; 0: none. A container sees its
// own group as the root, so the root counts too.
int cgroup_cores(const std::string& root) {
  int least = 0;
  const auto limit = [&](int cores) {
    if (cores > 0) least = least > 0 ? std::min(least, cores) : cores;
  };
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "0::/a/b" or "4:cpu,cpuacct:/a/b"
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const bool v2 = second == first + 1;
    std::istringstream kinds(line.substr(first + 1, second - first - 1));
    bool cpu = v2;
    for (std::string kind; std::getline(kinds, kind, ',');) cpu = cpu || kind == "cpu";
    if (!cpu) continue;
    for (std::string path = line.substr(second + 1);; path.resize(path.rfind('/'))) {
      if (path == "/") path.clear();
      if (v2) {
        double quota = 0, period = 0;  // "max 100000" leaves the quota at 0
        std::ifstream(root + "/sys/fs/cgroup" + path + "/cpu.max") >> quota >> period;
        limit(whole_cores(quota, period));
      } else {
        const std::string at = root + "/sys/fs/cgroup/cpu" + path + "/cpu.cfs_";
        limit(whole_cores(number_in(at + "quota_us"), number_in(at + "period_us")));
      }
      if (path.find('/') == std::string::npos) break;
    }
  }
  return least;
}

std::string line_of(const std::string& path) {
  std::string line;
  std::getline(std::ifstream(path) >> std::ws, line);
  return line;
}

// "0-3,8-11"
std::set<int> cpu_list(const std::string& text) {
  std::set<int> cpus;
  std::istringstream ranges(text);
  for (std::string range; std::getline(ranges, range, ',');) {
    int first = 0, last = 0;
    char dash = 0;
    std::istringstream in(range);
    if (!(in >> first)) continue;
    if (!(in >> dash >> last)) last = first;
    for (int c = first; c <= last && c - first < 65536; ++c) cpus.insert(c);
  }
  return cpus;
}

// Hyper-threads of one core share its arithmetic: they are one.
int physical_cores(const std::vector<int>& cpus, const std::string& root) {
  std::set<std::string> seen;
  for (const int c : cpus) {
    const std::string siblings =
        line_of(root + "/sys/devices/system/cpu/cpu" + std::to_string(c) + "/topology/thread_siblings_list");
    seen.insert(siblings.empty() ? std::to_string(c) : siblings);
  }
  return static_cast<int>(seen.size());
}

}  // namespace

int usable_cores(const std::vector<int>& cpus, const std::string& root) {
  // Weights are pages of a file, which lie with whoever read it first: threads of another NUMA node would fetch them
  // through the link between the nodes, and wait for each other across it.
  int cores = 0;
  for (const int node : cpu_list(line_of(root + "/sys/devices/system/node/online"))) {
    const std::set<int> of_node = cpu_list(line_of(root + "/sys/devices/system/node/node" + std::to_string(node) + "/cpulist"));
    std::vector<int> here;
    std::copy_if(cpus.begin(), cpus.end(), std::back_inserter(here), [&](int c) { return of_node.count(c) > 0; });
    cores = std::max(cores, physical_cores(here, root));
  }
  if (cores == 0) cores = std::max(1, physical_cores(cpus, root));
  const int quota = cgroup_cores(root);
  return quota > 0 ? std::min(cores, quota) : cores;
}

#if defined(_WIN32)
// Physical cores that the calling thread may use, which are of one group of at most 64 processors; 0: unknown.
static int cores_of_affinity() {
  GROUP_AFFINITY mine;
  DWORD bytes = 0;
  GetLogicalProcessorInformationEx(RelationProcessorCore, nullptr, &bytes);
  std::vector<char> found(bytes);
  const auto entry = [&](size_t at) { return reinterpret_cast<SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX*>(found.data() + at); };
  if (!GetThreadGroupAffinity(GetCurrentThread(), &mine) || bytes == 0 || !GetLogicalProcessorInformationEx(RelationProcessorCore, entry(0), &bytes))
    return 0;
  int cores = 0;
  for (size_t at = 0; at < bytes; at += entry(at)->Size) {
    const GROUP_AFFINITY& core = entry(at)->Processor.GroupMask[0];
    cores += core.Group == mine.Group && (core.Mask & mine.Mask) != 0;
  }
  return cores;
}
#endif

int usable_cores() {
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    std::vector<int> cpus;
    for (int c = 0; c < CPU_SETSIZE; ++c)
      if (CPU_ISSET(c, &set)) cpus.push_back(c);
    return usable_cores(cpus, "");
  }
#elif defined(_WIN32)
  if (const int cores = cores_of_affinity(); cores > 0) return cores;
#endif
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

}  // namespace aerie::kernels::cpu

#include <sys/utsname.h>

#include <fstream>

#include "core/platform/machine.h"

namespace aerie::platform {

std::string processor_name() {
  // x86 names the processor; ARM gives numbers of maker and part.
  std::ifstream in("/proc/cpuinfo");
  in.exceptions(std::ios::badbit);  // a heap that runs out while it is read makes no other machine of this one
  std::string maker, part;
  for (std::string line; std::getline(in, line);) {
    const size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    const std::string value = line.substr(colon + 2);
    if (line.starts_with("model name") && !value.empty()) return value;
    if (line.starts_with("CPU implementer")) maker = value;
    if (line.starts_with("CPU part")) part = value;
    if (!maker.empty() && !part.empty()) break;
  }
  struct utsname names;
  const std::string machine = uname(&names) == 0 ? names.machine : "unknown";
  return part.empty() ? machine : machine + " " + maker + " " + part;
}

}  // namespace aerie::platform

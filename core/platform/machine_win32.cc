#include "core/platform/win32.h"

#include "core/platform/machine.h"

namespace aerie::platform {

std::string processor_name() {
  wchar_t name[256];
  DWORD bytes = sizeof name;
  if (RegGetValueW(HKEY_LOCAL_MACHINE, L"HARDWARE\\DESCRIPTION\\System\\CentralProcessor\\0", L"ProcessorNameString",
                   RRF_RT_REG_SZ, nullptr, name, &bytes) == ERROR_SUCCESS) {
    const std::string text = win32::utf8(name);
    if (!text.empty()) return text;
  }
  SYSTEM_INFO info;
  GetNativeSystemInfo(&info);
  switch (info.wProcessorArchitecture) {
    case PROCESSOR_ARCHITECTURE_AMD64: return "x86_64";
    case 12 /* PROCESSOR_ARCHITECTURE_ARM64 */: return "aarch64";
    default: return "architecture " + std::to_string(info.wProcessorArchitecture);
  }
}

}  // namespace aerie::platform

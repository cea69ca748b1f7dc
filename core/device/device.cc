#include "core/device/device.h"

#include <charconv>
#include <map>
#include <mutex>

#include "core/platform/dynamic_library.h"
#include "core/platform/file.h"
#include "kernels/backend.h"

namespace aerie {

namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 30;

// Loaded once: a second copy would be a second CUDA runtime.
Result<const kernels::BackendTable*> backend(const std::string& path) {
  static std::mutex mutex;
  static auto* loaded = new std::map<std::string, const kernels::BackendTable*>;
  const std::lock_guard<std::mutex> lock(mutex);
  if (const auto it = loaded->find(path); it != loaded->end()) return it->second;
  const Result<std::vector<uint8_t>> bytes = platform::read_file(path, kMostBytes);
  if (!bytes.ok() && bytes.status().code() == Code::not_found)
    return error(Code::unsupported, "device cuda: " + path + " is not installed");
  if (!bytes.ok()) return bytes.status();
  AERIE_ASSIGN(void* symbol, platform::load_library_symbol(*bytes, path, kernels::kBackendSymbol));
  const kernels::BackendTable* table = reinterpret_cast<kernels::BackendEntry>(symbol)();
  if (table->struct_size != sizeof(kernels::BackendTable) || table->op_bytes != sizeof(kernels::Op) ||
      table->version != std::string(AERIE_VERSION_TEXT))
    return error(Code::mismatch, path + " comes from another build of Aerie (this is " AERIE_VERSION_TEXT ")");
  (*loaded)[path] = table;
  return table;
}

}  // namespace

Result<std::unique_ptr<kernels::Device>> make_device_from(const std::string& library, int index) {
  AERIE_ASSIGN(const kernels::BackendTable* table, backend(library));
  return table->make(index);
}

Result<std::unique_ptr<kernels::Device>> make_device(const std::string& name, const kernels::CpuOptions& cpu) {
  if (name == "cpu") return kernels::make_cpu_device(cpu);
  if (name.rfind("cpu:", 0) == 0) {
    kernels::CpuOptions with_isa = cpu;
    with_isa.isa = name.substr(4);
    if (with_isa.isa.empty()) return error(Code::invalid_argument, "device: cpu: needs an instruction set behind the colon");
    return kernels::make_cpu_device(with_isa);
  }
  int index = 0;
  if (name.rfind("cuda:", 0) == 0) {
    const char* const end = name.data() + name.size();
    const auto [at, failure] = std::from_chars(name.data() + 5, end, index);
    if (failure != std::errc() || at != end || index < 0)
      return error(Code::invalid_argument, "device: " + name + ": a number is expected behind the colon");
  } else if (name != "cuda") {
    return error(Code::unsupported, "device: there are cpu, cpu:ISA, cuda and cuda:N, not " + name);
  }
  if (cpu.alloc) return error(Code::unsupported, "device " + name + ": the host's allocator is for the CPU's memory");
  const std::string home = platform::directory_of_code(reinterpret_cast<const void*>(&make_device_from));
  if (home.empty()) return error(Code::not_found, "device " + name + ": cannot tell where this library lies");
  return make_device_from(home + "/aerie/libaerie-cuda" + platform::library_suffix(), index);
}

}  // namespace aerie

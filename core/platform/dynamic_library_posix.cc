#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "core/platform/dynamic_library.h"

namespace aerie::platform {

namespace {
// A sealed anonymous file: what is loaded is what was checked, whatever happens on disk meanwhile.
int sealed_copy(std::span<const uint8_t> bytes) {
  const int fd = memfd_create("aerie-plugin", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return -1;
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = write(fd, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      close(fd);
      return -1;
    }
    done += static_cast<size_t>(n);
  }
  if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    close(fd);
    return -1;
  }
  return fd;
}

// Why the loader should not be shown these bytes; null: nothing known against them. It maps what the headers say, and where
// the file is shorter, touching that would kill the process; of a library for another machine it says that there is no file.
const char* unfit(std::span<const uint8_t> file) {
  constexpr const char* kShort = "the file is cut short";
  ElfW(Ehdr) head;
  if (file.size() < sizeof head) return kShort;
  std::memcpy(&head, file.data(), sizeof head);
  if (std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) return nullptr;  // the loader says what it is not
  Dl_info own;
  if (dladdr(reinterpret_cast<const void*>(&unfit), &own) && own.dli_fbase) {
    const auto* here = static_cast<const ElfW(Ehdr)*>(own.dli_fbase);
    if (head.e_ident[EI_CLASS] != here->e_ident[EI_CLASS] || head.e_machine != here->e_machine) return "it is for another machine";
  }
  const auto outside = [&](uint64_t offset, uint64_t size) { return offset > file.size() || size > file.size() - offset; };
  if (head.e_phentsize != sizeof(ElfW(Phdr)) || outside(head.e_phoff, uint64_t{head.e_phnum} * sizeof(ElfW(Phdr)))) return kShort;
  for (size_t i = 0; i < head.e_phnum; ++i) {
    ElfW(Phdr) part;
    std::memcpy(&part, file.data() + head.e_phoff + i * sizeof part, sizeof part);
    if (outside(part.p_offset, part.p_filesz)) return kShort;
  }
  return nullptr;
}
}  // namespace

Result<void*> load_library_symbol(std::span<const uint8_t> bytes, const std::string& name, const char* symbol) {
  if (const char* why = unfit(bytes)) return error(Code::plugin, name + ": cannot be loaded: " + why);
  const int fd = sealed_copy(bytes);
  if (fd < 0) return error(Code::io, name + ": cannot copy the plugin to memory: " + std::strerror(errno));
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  const char* said = library ? nullptr : dlerror();
  std::string why = said ? said : "unknown reason";
  if (why.starts_with(path + ": ")) why.erase(0, path.size() + 2);  // a name that nobody gave
  Result<void*> result = error(Code::plugin, name + ": cannot be loaded: " + why);
  if (library) {
    void* address = dlsym(library, symbol);
    if (address) result = address;
    else result = error(Code::plugin, name + ": symbol " + symbol + " is missing");
  }
  // The loader knows libraries by name: were the descriptor closed, the next plugin would get the same
  // number, the same name, and this library's code. So a loaded library keeps its descriptor.
  if (!library) close(fd);
  return result;
}

std::string directory_of_code(const void* address) {
  Dl_info info;
  if (!dladdr(address, &info) || !info.dli_fname) return {};
  char resolved[4096];
  if (!realpath(info.dli_fname, resolved)) return {};
  const std::string path(resolved);
  return path.substr(0, path.rfind('/'));
}

Result<std::vector<std::string>> list_files(const std::string& directory, const std::string& suffix) {
  struct Close {
    void operator()(DIR* d) const { closedir(d); }
  };
  const std::unique_ptr<DIR, Close> dir(opendir(directory.c_str()));
  if (!dir) return error(errno == ENOENT ? Code::not_found : Code::io, directory + ": " + std::strerror(errno));
  std::vector<std::string> files;
  while (const dirent* entry = readdir(dir.get())) {
    const std::string name = entry->d_name;
    if (name.size() <= suffix.size() || name.compare(name.size() - suffix.size(), suffix.size(), suffix) != 0) continue;
    const std::string path = directory + "/" + name;
    struct stat st;
    if (stat(path.c_str(), &st) == 0 && S_ISREG(st.st_mode)) files.push_back(path);
  }
  std::sort(files.begin(), files.end());
  return files;
}

bool is_absolute_path(const std::string& path) { return !path.empty() && path[0] == '/'; }

const char* library_suffix() { return ".so"; }

}  // namespace aerie::platform

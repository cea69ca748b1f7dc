#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "process.h"

namespace cli {

void begin_process() {
  // A descriptor that the caller has closed would be the next file's that is opened, and what is printed would go there.
  // Reading is all that these allow, so that printing fails as it should.
  for (int fd; (fd = open("/dev/null", O_RDONLY)) >= 0;)
    if (fd > 2) {
      close(fd);
      break;
    }
  std::signal(SIGXFSZ, SIG_IGN);
}

std::filesystem::path cache_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  if (cache && *cache == '/') return cache;
  return home && *home ? std::filesystem::path(home) / ".cache" : std::filesystem::path();
}

}  // namespace cli

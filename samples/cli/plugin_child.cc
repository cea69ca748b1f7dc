// One check in a process of its own.
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>

#include "common.h"
#include "plugin.h"

namespace cli::plugin {

namespace {

void write_all(int fd, const std::string& s) {
  for (size_t at = 0; at < s.size();) {
    const ssize_t n = write(fd, s.data() + at, s.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    at += static_cast<size_t>(n);
  }
}

[[noreturn]] void child(const std::function<Finding()>& body, int report, FILE* output) {
  dup2(fileno(output), 1);
  dup2(fileno(output), 2);
  Finding f;
  try {
    f = body();
  } catch (const std::exception& e) {
    f = fail(e.what());
  } catch (...) {
    f = fail("an exception came out of the plugin");
  }
  std::fflush(nullptr);
  write_all(report, std::string(1, static_cast<char>(f.kind)) + f.words + '\0' + f.handed);
  _exit(0);
}

// Everything until the other side closes; false: the time is over.
bool read_all(int fd, int seconds, std::string* out) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  for (char buffer[4096];;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
    if (left <= 0) return false;
    pollfd p{fd, POLLIN, 0};
    const int ready = poll(&p, 1, static_cast<int>(left));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const ssize_t n = read(fd, buffer, sizeof buffer);
    if (n <= 0) return true;
    out->append(buffer, static_cast<size_t>(n));
  }
}

}  // namespace

Finding in_child(const std::function<Finding()>& body, int seconds) {
  int ends[2];
  FILE* output = std::tmpfile();
  if (!output || pipe(ends) != 0) throw Failure("no pipe or temporary file");
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid < 0) throw Failure("no child process");
  if (pid == 0) {
    close(ends[0]);
    child(body, ends[1], output);
  }
  close(ends[1]);
  std::string told;
  const bool in_time = read_all(ends[0], seconds, &told);
  close(ends[0]);
  if (!in_time) kill(pid, SIGKILL);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  char said[200] = "";
  std::rewind(output);
  const size_t n = std::fread(said, 1, sizeof said - 1, output);
  std::fclose(output);
  if (!in_time) return fail("no answer within " + std::to_string(seconds) + " s");
  if (WIFSIGNALED(status)) return fail(std::string("the process died: ") + strsignal(WTERMSIG(status)));
  if (told.empty()) return fail("the plugin ended the process");
  if (n > 0) return fail("it wrote to the terminal: " + std::string(said, strcspn(said, "\n")));
  const size_t end = std::min(told.find('\0'), told.size());
  return {static_cast<Finding::Kind>(told[0]), told.substr(1, end - 1), told.substr(std::min(end + 1, told.size()))};
}

}  // namespace cli::plugin

// The line protocol both drivers speak, so that one script can interleave the two engines. Commands on stdin:
//   time N             one pass of N rows behind the context, logits of every row: {"ms": ...}
//   prefill N          N tokens from nothing, logits of the last: {"ms": ...}
//   logits FILE ID...  f32 logits (rows, vocab) of that text into FILE: {"rows": ...}
//   memory             {"rss_mib": ..., "anon_mib": ...}
//   quit
// A driver answers with one line of JSON, after its threads have gone to sleep: a worker that still spins would
// disturb the other engine.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace bench {

using Clock = std::chrono::steady_clock;

inline double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

[[noreturn]] inline void fail(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::exit(1);
}

// Any text will do; both engines read the same.
inline int32_t token(int64_t position, int32_t vocab) { return static_cast<int32_t>((position * 7919 + 13) % vocab); }

#ifdef __clang__
constexpr const char* kCompiler = __VERSION__;
#else
constexpr const char* kCompiler = "GCC " __VERSION__;
#endif

inline double cpu_ms() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

inline void wait_until_idle() {
  for (int i = 0; i < 200; ++i) {
    const double before = cpu_ms();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (cpu_ms() - before < 0.25) return;
  }
  fail("the engine's threads do not go to sleep");
}

// MiB of a line of /proc/self/status, such as "VmRSS:".
inline double status_mib(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(key)) return std::strtod(line.c_str() + key.size(), nullptr) / 1024;
  return 0;
}

inline std::string memory_json() {
  std::ostringstream out;
  out << "\"rss_mib\": " << status_mib("VmRSS:") << ", \"anon_mib\": " << status_mib("RssAnon:");
  return out.str();
}

inline void answer(const std::string& fields) {
  wait_until_idle();
  std::cout << "{" << fields << "}" << std::endl;
}

// Engine: double time_pass(int n), double time_prefill(int n), std::vector<float> logits(std::vector<int32_t> ids);
// time_prefill leaves the context filled. The first line says how long opening took, and the very first pass after it,
// which brings in what was only mapped. `about`: JSON fields of the engine's own.
template <class Engine>
void serve(Engine& engine, const std::string& about, double open_ms) {
  const double opened_mib = status_mib("VmRSS:"), first_ms = engine.time_prefill(1);
  std::ostringstream first;
  first << about << ", \"compiler\": \"" << kCompiler << "\", \"open_ms\": " << open_ms
        << ", \"opened_mib\": " << opened_mib << ", \"first_pass_ms\": " << first_ms << ", " << memory_json();
  answer(first.str());
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string command, file;
    int n = 0;
    words >> command;
    if (command == "quit") break;
    if (command == "time" && words >> n && n > 0) {
      answer("\"ms\": " + std::to_string(engine.time_pass(n)));
    } else if (command == "prefill" && words >> n && n > 0) {
      answer("\"ms\": " + std::to_string(engine.time_prefill(n)));
    } else if (command == "logits" && words >> file) {
      std::vector<int32_t> ids;
      for (int32_t id; words >> id;) ids.push_back(id);
      const std::vector<float> logits = engine.logits(ids);
      std::ofstream out(file, std::ios::binary);
      const auto bytes = static_cast<std::streamsize>(logits.size() * sizeof(float));
      out.write(reinterpret_cast<const char*>(logits.data()), bytes);
      if (!out.flush()) fail(file + ": cannot be written");
      answer("\"rows\": " + std::to_string(ids.size()));
    } else if (command == "memory") {
      answer(memory_json());
    } else {
      fail("what is \"" + line + "\"?");
    }
  }
}

}  // namespace bench

// Models for tests: tiny ones made here from a seed, the demo ones of the repository, and where the
// outside data lies if it is there.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/import/convert.h"
#include "core/model/model.h"
#include "core/package/writer.h"
#include "core/session/session.h"
#include "kernels/cpu/cpu_device.h"
#include "tests/support/libraries.h"
#include "tests/support/temporary_folder.h"

namespace aerie::test {

// Where the sources and the build lie; a program that was carried to another machine is told.
inline std::string told(const char* variable, const char* otherwise) {
  const char* where = std::getenv(variable);
  return where ? where : otherwise;
}
inline std::string source_dir() { return told("AERIE_TEST_SOURCE_DIR", AERIE_SOURCE_DIR); }
inline std::string golden(const std::string& name) { return source_dir() + "/tests/golden/logits/" + name; }
// Data that users do not have: tests that need it skip.
inline std::string shared(const std::string& name) { return source_dir() + "/../shared/" + name; }
inline bool exists(const std::string& path) { return std::filesystem::exists(path); }

// A directory that goes with the test program.
inline const std::string& scratch_dir() {
  static const TemporaryFolder folder;
  static const std::string path = folder.path();
  return path;
}

template <class T>
T must(Result<T> r) {
  if (!r.ok()) {
    ADD_FAILURE() << r.status().message();
    throw std::runtime_error(r.status().message());
  }
  return std::move(r).value();
}
inline void must(const Status& s) {
  if (!s.ok()) {
    ADD_FAILURE() << s.message();
    throw std::runtime_error(s.message());
  }
}

inline std::string converted(const std::string& source, const std::string& name, kernels::DType dtype,
                             const std::string& drafter_for = {}, const std::string& tokenizer = {}) {
  ConvertOptions o;
  o.source = source;
  static std::atomic<int> made{0};  // a name of its own: Windows replaces no file that is mapped
  o.output = scratch_dir() + "/" + name + "-" + std::to_string(made++) + ".aerie";
  o.dtype = dtype;
  o.drafter_for = drafter_for;
  o.tokenizer = tokenizer;
  must(convert(o));
  return o.output;
}

// The source of a tiny checkpoint that takes 4096 positions.
inline std::string with_long_context(const std::string& name, int context = 4096) {
  const std::string source = scratch_dir() + "/long-" + std::to_string(context) + "-" + name;
  if (exists(source)) return source;
  std::filesystem::copy(golden(name), source);
  std::ifstream in(golden(name) + "/config.json");
  nlohmann::json config = nlohmann::json::parse(in);
  config["max_position_embeddings"] = context;
  std::ofstream(source + "/config.json") << config;
  return source;
}

inline std::shared_ptr<kernels::Device> cpu(int threads = 1) {
  kernels::CpuOptions o;
  o.threads = threads;
  return must(kernels::make_cpu_device(o));
}

inline std::shared_ptr<Model> open_model(const std::string& path, std::shared_ptr<kernels::Device> device,
                                         ModelOptions options = {}) {
  return must(Model::open(std::move(device), must(Package::open(path)), options));
}

inline std::shared_ptr<Drafter> open_drafter(const std::shared_ptr<Model>& model, const std::string& plugin,
                                             const std::string& package, LogSink log = {}) {
  auto kinds = must(load_plugin(std::filesystem::path(plugin).is_absolute() ? plugin : drafter_library(plugin)));
  DrafterOptions o;
  o.log = std::move(log);
  auto opened = package.empty() ? nullptr : must(Package::open(package));
  size_t k = 0;  // a library may hold several: the package says which
  while (opened && opened->drafter() && k + 1 < kinds.size() && opened->drafter()->plugin_id != kinds[k].desc.id) ++k;
  return must(Drafter::open(model, kinds[k], opened, o));
}

// The drafter of a head of tests/golden/heads or of samples/models, and the library that it is in.
inline std::string drafter_of(const std::string& head) { return head.substr(0, head.find('_')); }
inline std::string library_of(const std::string& head) { return head.starts_with("eagle") ? "eagle" : drafter_of(head); }

// A session under a tree policy, whose text does not end.
inline SessionOptions options_for(std::shared_ptr<Drafter> drafter, const std::string& tree, float temperature, uint64_t seed = 11) {
  SessionOptions o;
  o.drafter = std::move(drafter);
  o.tree.name = tree;
  o.sampling.temperature = temperature;
  o.sampling.seed = seed;
  o.ignore_eos = true;
  return o;
}

// Costs for policies that ask: the same trees on every machine, and no time spent on measuring. A drafter's pass takes half
// of a target's.
inline double steady_ms(const Drafter* drafter, int32_t rows) { return (drafter ? 0.5 : 1) + 0.05 * rows; }

// `n` tokens, or fewer at the end of the text.
inline std::vector<int32_t> generate(Session& s, size_t n, int32_t max_tokens = 0) {
  std::vector<int32_t> out;
  while (out.size() < n) {
    StepResult r;
    const auto left = static_cast<int32_t>(n - out.size());
    must(s.step(max_tokens > 0 ? std::min(max_tokens, left) : left, std::chrono::microseconds(0), &r));
    for (const EmittedToken& t : r.tokens) out.push_back(t.id);
    if (r.state == StepState::done) break;
  }
  return out;
}

}  // namespace aerie::test

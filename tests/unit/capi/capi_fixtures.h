// What a host program does, through aerie.h alone: open, prompt, step, compare.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <new>
#include <string>
#include <vector>

#include "aerie/aerie.h"
#include "tests/support/libraries.h"
#include "tests/support/temporary_folder.h"

namespace aerie_capi_test {

using aerie::test::drafter_library, aerie::test::bad_plugin, aerie::test::TemporaryFolder;

inline const char* demo_model() { return AERIE_SOURCE_DIR "/samples/models/demo.aerie"; }
inline const char* demo_head() { return AERIE_SOURCE_DIR "/samples/models/demo-eagle.aerie"; }
inline const char* plugin_directory() { return AERIE_LIBRARY_DIR "/aerie/drafters"; }

// What a host's allocator is made of; 64 bytes is all that is asked of it.
inline void* allocate(size_t bytes, size_t alignment) { return ::operator new(bytes, std::align_val_t(alignment), std::nothrow); }
inline void deallocate(void* memory) { ::operator delete(memory, std::align_val_t(64)); }

inline const std::vector<int32_t> kPrompt = {260, 513, 1021, 88, 300, 47, 911, 1500, 12, 345};

// What most tests' sessions are made with, and what its pointers point at.
struct Settings {
  aerie_sampling sampling;
  aerie_tree_options tree;
  aerie_session_options options;

  explicit Settings(aerie_drafter_handle* drafter = nullptr, int32_t policy = AERIE_TREE_DEFAULT, uint64_t seed = 5) {
    AERIE_INIT(sampling);
    sampling.temperature = 0.8f;
    sampling.seed = seed;
    AERIE_INIT(tree);
    tree.policy = policy;
    AERIE_INIT(options);
    options.drafter = drafter;
    options.sampling = &sampling;
    options.tree = &tree;
    options.ignore_eos = 1;
  }
  Settings(const Settings&) = delete;
  Settings& operator=(const Settings&) = delete;
  int32_t create(aerie_model* model, aerie_session** out, aerie_error* err) const {
    return aerie_session_create(model, &options, out, err);
  }
};

// Every token is its number and a comma.
struct Numbers {
  int held = 0, released = 0;
  std::vector<std::string> words;
  Numbers() {
    for (int i = 0; i < 8192; ++i) words.push_back(std::to_string(i) + ",");
  }
  aerie_token_source source() {
    aerie_token_source s;
    AERIE_INIT(s);
    s.user = this;
    s.bytes = [](void* user, int32_t token, int32_t, const char** bytes) -> int32_t {
      const std::string& word = static_cast<Numbers*>(user)->words[static_cast<size_t>(token)];
      *bytes = word.data();
      return static_cast<int32_t>(word.size());
    };
    s.hold = [](void* user) { ++static_cast<Numbers*>(user)->held; };
    s.release = [](void* user) { ++static_cast<Numbers*>(user)->released; };
    return s;
  }
};

// Everything of one text. Members are released in any order the test likes; here: session last opened first.
struct Host {
  aerie_runtime* runtime = nullptr;
  aerie_model* model = nullptr;
  aerie_drafter_handle* drafter = nullptr;
  aerie_session* session = nullptr;
  aerie_error err;

  Host() { AERIE_INIT(err); }
  ~Host() { close(); }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  void close() {
    aerie_session_release(session);
    aerie_drafter_release(drafter);
    aerie_model_release(model);
    aerie_runtime_release(runtime);
    session = nullptr;
    drafter = nullptr;
    model = nullptr;
    runtime = nullptr;
  }

  // The first code that is not AERIE_OK. No assertion inside: memory may be short.
  int32_t open(const aerie_runtime_options* options, bool with_drafter) {
    if (const int32_t c = aerie_runtime_create(options, &runtime, &err)) return c;
    if (with_drafter)
      if (const int32_t c = aerie_runtime_load_plugin_directory(runtime, plugin_directory(), &err)) return c;
    aerie_model_options m;
    AERIE_INIT(m);
    m.kv_positions = 2048;
    if (const int32_t c = aerie_model_open(runtime, demo_model(), &m, &model, &err)) return c;
    if (with_drafter) {
      aerie_drafter_options d;
      AERIE_INIT(d);
      d.package = demo_head();
      d.max_sessions = 1;
      if (const int32_t c = aerie_drafter_open(model, &d, &drafter, &err)) return c;
    }
    return Settings(drafter, AERIE_TREE_EAGLE2).create(model, &session, &err);  // many passes a cycle: more to interrupt
  }

  // `n` tokens after kPrompt.
  int32_t text(int32_t n, std::vector<int32_t>* out) {
    if (const int32_t c = aerie_session_append(session, kPrompt.data(), kPrompt.size(), &err)) return c;
    return more(n, out);
  }
  int32_t more(int32_t n, std::vector<int32_t>* out) {
    while (static_cast<int32_t>(out->size()) < n) {
      aerie_step_options o;
      AERIE_INIT(o);
      o.max_tokens = n - static_cast<int32_t>(out->size());
      aerie_step_result r;
      AERIE_INIT(r);
      if (const int32_t c = aerie_session_step(session, &o, &r, &err)) return c;
      for (int32_t i = 0; i < r.n_tokens; ++i) out->push_back(r.tokens[i].id);
      if (r.state == AERIE_STEP_DONE) break;
    }
    return AERIE_OK;
  }
};

inline aerie_runtime_options with_threads(int32_t threads) {
  aerie_runtime_options o;
  AERIE_INIT(o);
  o.threads = threads;
  return o;
}

// Plain decode: what every other way must give.
inline const std::vector<int32_t>& plain_text() {
  static const std::vector<int32_t> text = [] {
    Host host;
    std::vector<int32_t> out;
    const aerie_runtime_options o = with_threads(1);
    EXPECT_EQ(host.open(&o, false), AERIE_OK) << host.err.message;
    EXPECT_EQ(host.text(24, &out), AERIE_OK) << host.err.message;
    return out;
  }();
  return text;
}

}  // namespace aerie_capi_test

// Drafters that read tokens, when the heap runs out in them: they say so, and afterwards they propose what one does that has
// had memory all along.
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <tuple>

#include "aerie/drafter.h"
#include "tests/unit/capi/capi_fixtures.h"
#include "tests/unit/capi/shortage.h"

namespace aerie_capi_test {
namespace {

struct HostDrafter {
  const char* library;
  const char* id;
};

constexpr int32_t kCapacity = 96;

// The plugin itself, with a host as small as can be.
struct Asked {
  aerie_drafter d{};
  aerie_drafter_needs needs{};
  int32_t token[kCapacity], parent[kCapacity];
  float confidence[kCapacity];
  int32_t count = 0;

  explicit Asked(const HostDrafter& which) {
    static const aerie_drafter_host host = {sizeof host, AERIE_DRAFTER_ABI_MAJOR, AERIE_DRAFTER_ABI_MINOR, 0, nullptr,
                                            [](const aerie_drafter_host*, const char*) -> const void* { return nullptr; }};
    void* const library = dlopen(drafter_library(which.library).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) throw std::runtime_error(dlerror());
    const auto entry = reinterpret_cast<aerie_drafter_plugin_entry_fn>(dlsym(library, "aerie_drafter_plugin_entry"));
    aerie_drafter_error err{};
    err.struct_size = sizeof err;
    d.struct_size = sizeof d;
    needs.struct_size = sizeof needs;
    aerie_drafter_open_info info{};
    info.struct_size = sizeof info;
    info.max_seqs = 1;
    info.max_nodes = info.max_rows = 128;
    info.hidden = 64;
    info.vocab = 1000;
    info.target_fingerprint = "00";
    if (entry()->create(&host, which.id, &d, &err) != AERIE_D_OK || d.open(d.self, &info, &needs, &err) != AERIE_D_OK ||
        d.begin(d.self, 0) != AERIE_D_OK)
      throw std::runtime_error(err.message);
  }
  ~Asked() {
    d.end(d.self, 0);
    d.destroy(d.self);
  }
  int32_t ask(const std::vector<int32_t>& text, int32_t n) {
    aerie_host_context c{sizeof c, 0, text.data(), n, 4, 8, 0};
    aerie_host_candidates out{sizeof out, kCapacity, 0, 0, token, parent, confidence};
    const int32_t code = d.propose_host(d.self, &c, &out);
    count = code == AERIE_D_OK ? out.count : 0;
    return code;
  }
  std::vector<std::tuple<int32_t, int32_t, float>> proposed() const {
    std::vector<std::tuple<int32_t, int32_t, float>> all;
    for (int32_t i = 0; i < count; ++i) all.emplace_back(token[i], parent[i], confidence[i]);
    return all;
  }
};

class OutOfMemoryDrafter : public testing::TestWithParam<HostDrafter> {};

TEST_P(OutOfMemoryDrafter, ProposesAfterwardsWhatItWouldHave) {
  std::vector<int32_t> text;  // one half at random from few tokens, then its middle once more
  uint32_t state = 7;
  for (int i = 0; i < 300; ++i) text.push_back(static_cast<int32_t>((state = state * 1664525u + 1013904223u) >> 24) % 9);
  for (int i = 0; i < 60; ++i) text.push_back(text[static_cast<size_t>(100 + i)]);
  const auto size = static_cast<int32_t>(text.size());
  Asked whole(GetParam());
  ASSERT_EQ(whole.ask(text, size), AERIE_D_OK);
  ASSERT_GT(whole.count, 0);
  int32_t failures = 0;
  for (const int64_t length : {int64_t{1}, int64_t{2}, int64_t{3}, Shortage::kForEver}) {
    bool failed = true;
    for (int64_t at = 0; failed && !HasFailure(); at += 1 + at / 24) {
      SCOPED_TRACE("allocation " + std::to_string(at) + " and " + std::to_string(length - 1) + " more");
      Asked asked(GetParam());
      int32_t code = AERIE_D_OK;
      Shortage::begin(at, length);
      for (int32_t n = 1; n < size && code == AERIE_D_OK; n += 3) code = asked.ask(text, n);
      failed = Shortage::end();
      failures += code != AERIE_D_OK;
      EXPECT_TRUE(code == AERIE_D_OK || code == AERIE_D_NO_MEMORY) << code;
      for (int32_t n = size - 40; n <= size; n += 4) ASSERT_EQ(asked.ask(text, n), AERIE_D_OK);
      EXPECT_EQ(asked.proposed(), whole.proposed());
    }
  }
  EXPECT_GT(failures, 10);
}
INSTANTIATE_TEST_SUITE_P(Drafters, OutOfMemoryDrafter,
                         testing::Values(HostDrafter{"ngram", "ngram-suffix"}, HostDrafter{"lookahead", "lookahead"}),
                         [](const auto& p) { return std::string(p.param.id == std::string("lookahead") ? "Lookahead" : "Suffix"); });

}  // namespace
}  // namespace aerie_capi_test

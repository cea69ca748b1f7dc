// Sessions of every other kind when the heap runs out in them, from their creation to their last token: the sampled rule,
// int8 keys and values, several drafters. One error, and then the session goes on.
#include "aerie/profile.h"
#include "tests/unit/capi/capi_fixtures.h"
#include "tests/unit/capi/shortage.h"

namespace aerie_capi_test {
namespace {

constexpr size_t kSaid = 12;

struct SessionKind {
  const char* name;
  int32_t kv_dtype = 0, verify = AERIE_VERIFY_EXACT, tree = AERIE_TREE_CHAIN;
  const char* second = nullptr;  // plugin id of another drafter
};

// A model with room for few sessions: pages that are not given back are soon missed.
struct OpenedKind {
  const SessionKind kind;
  aerie_runtime* runtime = nullptr;
  aerie_model* model = nullptr;
  aerie_profile* costs = nullptr;
  std::vector<aerie_drafter_handle*> drafters;
  bool reached = false;  // the last shortage
  aerie_error err;

  explicit OpenedKind(const SessionKind& k) : kind(k) {
    AERIE_INIT(err);
    const aerie_runtime_options o = with_threads(1);
    EXPECT_EQ(aerie_runtime_create(&o, &runtime, &err), AERIE_OK);
    EXPECT_EQ(aerie_runtime_load_plugin_directory(runtime, plugin_directory(), &err), AERIE_OK);
    aerie_model_options m;
    AERIE_INIT(m);
    m.kv_positions = 1024;
    m.kv_dtype = kind.kv_dtype;
    EXPECT_EQ(aerie_model_open(runtime, demo_model(), &m, &model, &err), AERIE_OK) << err.message;
    open_drafters();
    if (kind.tree != AERIE_TREE_AUTO) return;
    aerie_profile_options p;
    AERIE_INIT(p);
    p.quick = 1;
    p.n_drafters = 1;
    p.drafters = drafters.data();
    EXPECT_EQ(aerie_profile_create(&costs, &err), AERIE_OK);
    EXPECT_EQ(aerie_profile_measure(costs, model, &p, &err), AERIE_OK) << err.message;
    EXPECT_EQ(aerie_profile_attach(costs, model, &err), AERIE_OK) << err.message;
  }
  ~OpenedKind() {
    close_drafters();
    aerie_profile_release(costs);
    aerie_model_release(model);
    aerie_runtime_release(runtime);
  }
  // Three failures are a drafter's end, whoever's they were.
  void open_drafters() {
    close_drafters();
    for (const char* plugin : {"", kind.second}) {
      if (!plugin) continue;
      aerie_drafter_options d;
      AERIE_INIT(d);
      if (*plugin) d.plugin = plugin;
      else d.package = demo_head();
      d.max_sessions = 1;
      ASSERT_EQ(aerie_drafter_open(model, &d, &drafters.emplace_back(), &err), AERIE_OK) << err.message;
    }
    if (costs) {
      ASSERT_EQ(aerie_profile_attach_drafter(costs, drafters[0], &err), AERIE_OK) << err.message;
    }
  }
  void close_drafters() {
    for (aerie_drafter_handle* d : drafters) aerie_drafter_release(d);
    drafters.clear();
  }
  // What a session says. Whatever fails is tried once more when there is memory again.
  std::vector<int32_t> text(int32_t* failures, int64_t at = 0, int64_t length = 0) {
    Settings settings(drafters[0], kind.tree);
    settings.options.verify = kind.verify;
    settings.options.more_drafters = drafters.data() + 1;
    settings.options.n_more_drafters = static_cast<int32_t>(drafters.size()) - 1;
    aerie_session* session = nullptr;
    std::vector<int32_t> said;
    said.reserve(1024);
    const auto insist = [&](const auto& call) { Shortage::insist(call, err, failures); };
    Shortage::begin(at, length);
    insist([&] { return settings.create(model, &session, &err); });
    insist([&] { return aerie_session_append(session, kPrompt.data(), kPrompt.size(), &err); });
    while (said.size() < kSaid && !testing::Test::HasFailure()) {
      aerie_step_result r;
      AERIE_INIT(r);
      insist([&] { return aerie_session_step(session, nullptr, &r, &err); });
      for (int32_t i = 0; i < r.n_tokens; ++i) said.push_back(r.tokens[i].id);
    }
    reached = Shortage::end() && length > 0;
    const int32_t* all = nullptr;
    size_t n = 0;
    EXPECT_EQ(aerie_session_tokens(session, &all, &n, nullptr), AERIE_OK);
    EXPECT_EQ(std::vector<int32_t>(all + kPrompt.size(), all + n), said) << "a step's tokens are its result";
    aerie_session_release(session);
    said.resize(std::min(said.size(), kSaid));
    return said;
  }
};

class OutOfMemoryWith : public testing::TestWithParam<SessionKind> {};

TEST_P(OutOfMemoryWith, OneErrorAndTheSessionGoesOn) {
  OpenedKind o(GetParam());
  int32_t failures = 0;
  const std::vector<int32_t> whole = o.text(&failures);
  ASSERT_EQ(failures, 0);
  for (const int64_t length : {int64_t{1}, int64_t{7}, Shortage::kForEver}) {
    bool failed = true;
    for (int64_t at = 0; failed && !HasFailure(); at += 1 + at / 6) {
      SCOPED_TRACE("allocation " + std::to_string(at) + " and " + std::to_string(length - 1) + " more");
      o.open_drafters();
      const int32_t before = failures;
      const std::vector<int32_t> text = o.text(&failures, at, length);
      failed = o.reached || failures > before;
      // The sampled rule draws again what a failure has lost, from other drafts perhaps: another text of the same law.
      if (GetParam().verify == AERIE_VERIFY_EXACT) {
        EXPECT_EQ(text, whole);
      }
    }
  }
  EXPECT_GT(failures, 20);
}

const SessionKind kSessionKinds[] = {{"TheSampledRule", 0, AERIE_VERIFY_SAMPLED, AERIE_TREE_STATIC},
                                     {"Int8Kv", 2, AERIE_VERIFY_EXACT, AERIE_TREE_EAGLE2},
                                     {"SeveralDrafters", 0, AERIE_VERIFY_EXACT, AERIE_TREE_AUTO, "ngram-suffix"}};
INSTANTIATE_TEST_SUITE_P(Kinds, OutOfMemoryWith, testing::ValuesIn(kSessionKinds),
                         [](const auto& k) { return std::string(k.param.name); });

}  // namespace
}  // namespace aerie_capi_test

// Every call that works on models, sessions, batches and profiles, when the heap runs out in it: at any allocation, for one
// of them or for all that follow. It says so, it goes through once there is memory again, and texts are what they would have
// been. Nothing is kept: at the end there is room for as many sessions as before.

#include <algorithm>
#include <filesystem>

#include "aerie/profile.h"
#include "tests/unit/capi/capi_fixtures.h"
#include "tests/unit/capi/shortage.h"

namespace aerie_capi_test {
namespace {

constexpr int32_t kBefore = 3, kAfter = 9;  // tokens in a session when the call comes, and when its text is looked at
constexpr int32_t kSessions = 3;            // of the drafter

// A session and what has come out of its steps.
struct Text {
  aerie_session* session = nullptr;
  std::vector<int32_t> said;

  void release() {
    aerie_session_release(session);
    session = nullptr;
    said.clear();
  }
  int32_t take(aerie_error* err) {
    aerie_step_result r;
    AERIE_INIT(r);
    if (const int32_t c = aerie_session_result(session, &r, err)) return c;
    for (int32_t i = 0; i < r.n_tokens; ++i) said.push_back(r.tokens[i].id);
    return AERIE_OK;
  }
  int32_t step(int32_t most, aerie_error* err) {
    aerie_step_options o;
    AERIE_INIT(o);
    o.max_tokens = most;
    aerie_step_result r;
    AERIE_INIT(r);
    if (const int32_t c = aerie_session_step(session, &o, &r, err)) return c;
    for (int32_t i = 0; i < r.n_tokens; ++i) said.push_back(r.tokens[i].id);
    return AERIE_OK;
  }
  // Behind the prompt; what they have to be in number.
  std::vector<int32_t> tokens() const {
    const int32_t* all = nullptr;
    size_t n = 0;
    EXPECT_EQ(aerie_session_tokens(session, &all, &n, nullptr), AERIE_OK);
    if (n <= kPrompt.size()) return {};
    return {all + kPrompt.size(), all + std::min(n, kPrompt.size() + kAfter)};
  }
  void expect_plain(bool ended) const {
    const std::vector<int32_t> expected(plain_text().begin(), plain_text().begin() + kAfter);
    aerie_step_result r;
    AERIE_INIT(r);
    EXPECT_EQ(aerie_session_result(session, &r, nullptr), AERIE_OK);
    if (ended) {
      EXPECT_EQ(r.finish, AERIE_FINISH_STOP_STRING);
    }
    EXPECT_EQ(tokens(), expected);
    EXPECT_EQ(std::vector<int32_t>(said.begin(), said.begin() + kAfter), expected) << "a step's tokens are its result";
    aerie_statistics s;
    AERIE_INIT(s);
    EXPECT_EQ(aerie_session_statistics(session, &s, nullptr), AERIE_OK);
    EXPECT_GE(s.emitted, said.size());
  }
};

struct World {
  Host host;  // without its session
  Numbers numbers;
  std::string stop;
  aerie_profile* profile = nullptr;
  Text text, other, made;  // `other` has no drafter; `made` is the call's
  aerie_batch* batch = nullptr;
  aerie_model* model = nullptr;
  aerie_drafter_handle* drafter = nullptr;
  std::vector<uint8_t> saved;
  const TemporaryFolder folder;
  const std::string file = folder / "file";
  aerie_error err;

  World() {
    AERIE_INIT(err);
    for (int32_t i = kBefore; i < kAfter; ++i) stop += numbers.words[static_cast<size_t>(plain_text()[static_cast<size_t>(i)])];
    const aerie_runtime_options o = with_threads(1);
    EXPECT_EQ(aerie_runtime_create(&o, &host.runtime, &err), AERIE_OK);
    EXPECT_EQ(aerie_runtime_load_plugin_directory(host.runtime, plugin_directory(), &err), AERIE_OK);
    EXPECT_EQ(open_model(&host.model), AERIE_OK) << err.message;
  }
  ~World() {
    clear();
    aerie_profile_release(profile);
  }
  int32_t open_model(aerie_model** out) {
    aerie_model_options m;
    AERIE_INIT(m);
    m.kv_positions = 1280;
    return aerie_model_open(host.runtime, demo_model(), &m, out, &err);
  }
  int32_t open_drafter(aerie_drafter_handle** out) {
    aerie_drafter_options d;
    AERIE_INIT(d);
    d.package = demo_head();
    d.max_sessions = kSessions;
    return aerie_drafter_open(host.model, &d, out, &err);
  }
  int32_t create(aerie_drafter_handle* with, Text* out) {
    return Settings(with, AERIE_TREE_CHAIN).create(host.model, &out->session, &err);
  }
  // What the next tokens begin and the last one ends, whatever happens in between.
  int32_t set_stop(Text& t) {
    const char* const list[] = {stop.c_str()};
    const aerie_token_source source = numbers.source();
    return aerie_session_set_stop_strings(t.session, list, 1, &source, &err);
  }
  int32_t append(Text& t) { return aerie_session_append(t.session, kPrompt.data(), kPrompt.size(), &err); }
  void clear() {
    made.release();
    aerie_batch_release(batch);
    batch = nullptr;
    text.release();
    other.release();
    aerie_drafter_release(drafter);
    drafter = nullptr;
    aerie_model_release(model);
    model = nullptr;
  }
  // A session with a few tokens, in a batch with another one if that is wanted.
  void begin(bool in_batch) {
    clear();
    // Three failures are its end, whoever's they were.
    aerie_drafter_release(host.drafter);
    ASSERT_EQ(open_drafter(&host.drafter), AERIE_OK) << err.message;
    ASSERT_EQ(create(host.drafter, &text), AERIE_OK) << err.message;
    ASSERT_EQ(set_stop(text), AERIE_OK);
    ASSERT_EQ(append(text), AERIE_OK);
    while (text.said.size() < kBefore) {
      ASSERT_EQ(text.step(kBefore - static_cast<int32_t>(text.said.size()), &err), AERIE_OK) << err.message;
    }
    if (!in_batch) return;
    ASSERT_EQ(create(nullptr, &other), AERIE_OK);
    ASSERT_EQ(append(other), AERIE_OK);
    ASSERT_EQ(aerie_batch_create(host.model, nullptr, &batch, &err), AERIE_OK);
    for (Text* t : {&text, &other}) ASSERT_EQ(aerie_batch_add(batch, t->session, &err), AERIE_OK);
  }
  int32_t batch_step() {
    aerie_step_options o;
    AERIE_INIT(o);
    o.max_tokens = 2;
    if (const int32_t c = aerie_batch_step(batch, &o, nullptr, &err)) return c;
    const int32_t one = text.take(&err), two = other.take(&err);
    return one ? one : two;
  }
  void go_on() {
    if (made.session && (made.said = made.tokens()).empty()) {
      ASSERT_EQ(append(made), AERIE_OK);
    }
    for (Text* t : {&text, &other})
      if (batch) (void)aerie_batch_add(batch, t->session, &err);  // unless it is in
    while (batch && (text.said.size() < kAfter || other.said.size() < kAfter)) {
      ASSERT_EQ(batch_step(), AERIE_OK) << err.message;
    }
    for (Text* t : {&text, &made})
      while (t->session && t->said.size() < kAfter) {
        ASSERT_EQ(t->step(0, &err), AERIE_OK) << err.message;
      }
  }
  // Sessions that find room, each with a prompt of its own.
  int32_t room() {
    text.release();
    std::vector<Text> all(16);
    aerie_drafter_handle* const with = host.drafter;
    int32_t n = 0;
    for (; n < 16; ++n) {
      Text& t = all[static_cast<size_t>(n)];
      if (create(n < kSessions ? with : nullptr, &t)) break;
      const std::vector<int32_t> prompt(100, 200 + n);
      EXPECT_EQ(aerie_session_append(t.session, prompt.data(), prompt.size(), &err), AERIE_OK);
      if (t.step(1, &err)) break;
    }
    EXPECT_EQ(err.code, AERIE_E_LIMIT) << err.message;
    for (Text& t : all) t.release();
    return n;
  }
};

struct Call {
  const char* name;
  int32_t (*call)(World&);
  void (*prepare)(World&) = nullptr;
  bool in_batch = false;
  int64_t stride = 3;  // less: fewer places are tried
};

int32_t set_tree(World& w, int32_t policy) {
  aerie_tree_options o;
  AERIE_INIT(o);
  o.policy = policy;
  return aerie_session_set_tree(w.text.session, &o, &w.err);
}

const Settings& without_drafter() {
  static const Settings s(nullptr, AERIE_TREE_CHAIN);
  return s;
}

// Changes nothing.
int32_t set_biases(World& w) {
  const aerie_logit_bias none[] = {{7, 0}, {8, 0}};
  Settings s;
  s.sampling.logit_bias = none;
  s.sampling.n_logit_bias = 2;
  return aerie_session_set_sampling(w.text.session, &s.sampling, &w.err);
}

int32_t new_state(void** state) {
  *state = ::operator new(1, std::nothrow);
  return *state ? AERIE_OK : AERIE_E_OUT_OF_MEMORY;
}

// Allows everything, by states that take memory.
int32_t set_constraint(World& w) {
  aerie_constraint c;
  AERIE_INIT(c);
  c.begin = [](void*, void** state) { return new_state(state); };
  c.copy = [](void*, const void*, void** copy) { return new_state(copy); };
  c.allowed = [](void*, void*, uint32_t* mask, size_t n_words) -> int32_t {
    std::fill(mask, mask + n_words, ~0u);
    return AERIE_OK;
  };
  c.accept = [](void*, void*, int32_t) -> int32_t { return AERIE_OK; };
  c.destroy = [](void*, void* state) { ::operator delete(state); };
  return aerie_session_set_constraint(w.text.session, &c, &w.err);
}

void save(World& w) {
  size_t n = 0;
  ASSERT_EQ(aerie_session_save(w.text.session, nullptr, 0, &n, &w.err), AERIE_OK);
  w.saved.resize(n);
  ASSERT_EQ(aerie_session_save(w.text.session, w.saved.data(), n, &n, &w.err), AERIE_OK);
  ASSERT_EQ(aerie_session_save_file(w.text.session, w.file.c_str(), &w.err), AERIE_OK);
}

// A step that has no time leaves a pass in flight.
void begin_pass(World& w) {
  aerie_step_options o;
  AERIE_INIT(o);
  o.budget_us = 1;
  aerie_step_result r;
  AERIE_INIT(r);
  const int32_t code = w.batch ? aerie_batch_step(w.batch, &o, nullptr, &w.err)
                               : aerie_session_step(w.text.session, &o, &r, &w.err);
  ASSERT_EQ(code, AERIE_OK) << w.err.message;
}

aerie_profile_options quick() {
  aerie_profile_options o;
  AERIE_INIT(o);
  o.quick = 1;
  return o;
}

// A file with the costs of the demo model and its head.
struct Measured {
  const TemporaryFolder folder;
  const std::string path = folder / "costs";
  Measured() {
    World w;
    w.begin(false);
    aerie_profile_options o = quick();
    o.n_drafters = 1;
    o.drafters = &w.host.drafter;
    EXPECT_EQ(aerie_profile_create(&w.profile, &w.err), AERIE_OK);
    EXPECT_EQ(aerie_profile_measure(w.profile, w.host.model, &o, &w.err), AERIE_OK) << w.err.message;
    EXPECT_EQ(aerie_profile_save(w.profile, path.c_str(), &w.err), AERIE_OK);
  }
};
const char* measured() {
  static const Measured costs;
  return costs.path.c_str();
}
void no_profile(World& w) {
  aerie_profile_release(w.profile);
  w.profile = nullptr;
}
void load(World& w) {
  no_profile(w);
  ASSERT_EQ(aerie_profile_load(measured(), &w.profile, &w.err), AERIE_OK) << w.err.message;
}
void attach(World& w) {
  load(w);
  ASSERT_EQ(aerie_profile_attach(w.profile, w.host.model, &w.err), AERIE_OK) << w.err.message;
  ASSERT_EQ(aerie_profile_attach_drafter(w.profile, w.host.drafter, &w.err), AERIE_OK) << w.err.message;
}

// Stopped after the first point, which is as good as done.
int32_t measure(World& w) {
  static const int32_t context = 1;
  aerie_profile_options o = quick();
  o.contexts = &context;
  o.n_contexts = 1;
  int32_t points = 0;
  o.progress_user = &points;
  o.progress = [](void* user, uint64_t, uint64_t) { return int32_t{++*static_cast<int32_t*>(user) < 1}; };
  const int32_t code = aerie_profile_measure(w.profile, w.host.model, &o, &w.err);
  return code == AERIE_E_CANCELLED ? AERIE_OK : code;
}

const Call kCalls[] = {
    {"RuntimeCreate", [](World& w) {
       aerie_runtime* r = nullptr;
       const int32_t c = aerie_runtime_create(nullptr, &r, &w.err);
       aerie_runtime_release(r);
       return c;
     }},
    {"LoadPluginDirectory",
     [](World& w) { return aerie_runtime_load_plugin_directory(w.host.runtime, plugin_directory(), &w.err); }},
    {"ModelOpen", [](World& w) { return w.open_model(&w.model); }},
    {"ModelEvaluate", [](World& w) {
       static std::vector<float> logits(4 * 4096);
       aerie_evaluate_options o;
       AERIE_INIT(o);
       o.logits = logits.data();
       return aerie_model_evaluate(w.host.model, kPrompt.data(), 4, &o, &w.err);
     }},
    {"DrafterOpen", [](World& w) { return w.open_drafter(&w.drafter); }},
    {"SessionCreate", [](World& w) { return w.create(w.host.drafter, &w.made); },
     [](World& w) { w.made.release(); }},
    {"Append", [](World& w) { return aerie_session_append(w.text.session, w.text.said.data(), w.text.said.size(), &w.err); },
     [](World& w) { ASSERT_EQ(aerie_session_rewind(w.text.session, kPrompt.size(), &w.err), AERIE_OK); }},
    {"Rewind", [](World& w) {
       const int32_t c = aerie_session_rewind(w.text.session, kPrompt.size() + 1, &w.err);
       if (c == AERIE_OK) w.text.said.resize(1);
       return c;
     }},
    {"SetSampling",
     [](World& w) { return aerie_session_set_sampling(w.text.session, &without_drafter().sampling, &w.err); }},
    {"SetBiases", set_biases},
    {"SetConstraint", set_constraint},
    {"SetStopStrings", [](World& w) { return w.set_stop(w.text); }},
    {"SetTreeEagle2", [](World& w) { return set_tree(w, AERIE_TREE_EAGLE2); }},
    {"SetTreeStatic", [](World& w) { return set_tree(w, AERIE_TREE_STATIC); }},
    {"SetTreeCast", [](World& w) { return set_tree(w, AERIE_TREE_CAST); }},
    {"Fork", [](World& w) { return aerie_session_fork(w.text.session, nullptr, &w.made.session, &w.err); }},
    {"Save", [](World& w) {
       size_t n = 0;
       return aerie_session_save(w.text.session, w.saved.data(), w.saved.size(), &n, &w.err);
     }, save},
    {"SaveFile", [](World& w) { return aerie_session_save_file(w.text.session, w.file.c_str(), &w.err); }},
    {"Restore", [](World& w) {
       const Settings s(w.host.drafter, AERIE_TREE_CHAIN);
       return aerie_session_restore(w.host.model, &s.options, w.saved.data(), w.saved.size(), &w.made.session, &w.err);
     }, save},
    {"RestoreFile", [](World& w) {
       return aerie_session_restore_file(w.host.model, &without_drafter().options, w.file.c_str(), &w.made.session, &w.err);
     }, save},
    {"Step", [](World& w) { return w.text.step(2, &w.err); }},
    {"StepAfterAFork", [](World& w) { return w.text.step(2, &w.err); },  // which writes pages of its own
     [](World& w) { ASSERT_EQ(aerie_session_fork(w.text.session, nullptr, &w.made.session, &w.err), AERIE_OK); }},
    {"StepEagle2", [](World& w) { return w.text.step(0, &w.err); },
     [](World& w) { ASSERT_EQ(set_tree(w, AERIE_TREE_EAGLE2), AERIE_OK); }},
    {"StepUnderRules", [](World& w) { return w.text.step(2, &w.err); },
     [](World& w) {
       ASSERT_EQ(set_biases(w), AERIE_OK) << w.err.message;
       ASSERT_EQ(set_constraint(w), AERIE_OK) << w.err.message;
     }},
    {"ForkUnderRules", [](World& w) { return aerie_session_fork(w.text.session, nullptr, &w.made.session, &w.err); },
     [](World& w) {
       ASSERT_EQ(set_constraint(w), AERIE_OK) << w.err.message;
     }},
    {"CancelledStep", [](World& w) {
       aerie_session_cancel(w.text.session);
       const int32_t c = w.text.step(2, &w.err);
       aerie_session_clear_cancel(w.text.session);
       return c == AERIE_E_CANCELLED ? AERIE_OK : c;
     }},
    {"BatchCreate", [](World& w) { return aerie_batch_create(w.host.model, nullptr, &w.batch, &w.err); },
     [](World& w) { aerie_batch_release(w.batch); w.batch = nullptr; }, true},
    {"BatchAdd", [](World& w) { return aerie_batch_add(w.batch, w.other.session, &w.err); },
     [](World& w) { ASSERT_EQ(aerie_batch_remove(w.batch, w.other.session, &w.err), AERIE_OK); }, true},
    {"BatchRemoveAndBatchAdd", [](World& w) {
       const int32_t c = aerie_batch_remove(w.batch, w.text.session, &w.err);
       const int32_t back = aerie_batch_add(w.batch, w.text.session, &w.err);
       return c && c != AERIE_E_NOT_FOUND ? c : back;
     }, nullptr, true},
    {"BatchStep", [](World& w) { return w.batch_step(); }, nullptr, true},
    {"CancelledBatchStep", [](World& w) {
       aerie_batch_cancel(w.batch);
       const int32_t c = w.batch_step();
       aerie_batch_clear_cancel(w.batch);
       return c == AERIE_E_CANCELLED ? AERIE_OK : c;
     }, nullptr, true},
    {"BatchStepSharedRows", [](World& w) { return w.batch_step(); },
     [](World& w) {
       for (Text* t : {&w.text, &w.other}) ASSERT_EQ(aerie_batch_remove(w.batch, t->session, &w.err), AERIE_OK);
       aerie_batch_release(w.batch);
       aerie_batch_options o;
       AERIE_INIT(o);
       o.max_rows = 4;
       ASSERT_EQ(aerie_batch_create(w.host.model, &o, &w.batch, &w.err), AERIE_OK);
       for (Text* t : {&w.text, &w.other}) ASSERT_EQ(aerie_batch_add(w.batch, t->session, &w.err), AERIE_OK);
     }, true},
    {"RewindInAPass", [](World& w) {
       const int32_t c = aerie_session_rewind(w.text.session, kPrompt.size() + 1, &w.err);
       if (c == AERIE_OK) w.text.said.resize(1);
       return c;
     }, begin_pass},
    {"ForkInAPass", [](World& w) { return aerie_session_fork(w.text.session, nullptr, &w.made.session, &w.err); },
     begin_pass},
    {"BatchRemoveInAPass", [](World& w) {
       const int32_t c = aerie_batch_remove(w.batch, w.text.session, &w.err);
       return c ? c : aerie_batch_add(w.batch, w.text.session, &w.err);
     }, begin_pass, true},
    {"ReleasesInAPass", [](World& w) {
       w.clear();
       return int32_t{AERIE_OK};
     }, begin_pass, true},
    {"ProfileCreate", [](World& w) {
       aerie_profile* p = nullptr;
       const int32_t c = aerie_profile_create(&p, &w.err);
       aerie_profile_release(p);
       return c;
     }},
    {"ProfileMeasure", measure,
     [](World& w) {
       no_profile(w);
       ASSERT_EQ(aerie_profile_create(&w.profile, &w.err), AERIE_OK);
     }, false, 1},
    {"ProfileLoad", [](World& w) { return aerie_profile_load(measured(), &w.profile, &w.err); }, no_profile},
    {"ProfileJson", [](World& w) {
       const char* text = nullptr;
       return aerie_profile_json(w.profile, &text, nullptr, &w.err);
     }, load},
    {"ProfileSave", [](World& w) { return aerie_profile_save(w.profile, w.file.c_str(), &w.err); }, load},
    {"ProfileAttach", [](World& w) { return aerie_profile_attach(w.profile, w.host.model, &w.err); }, load},
    {"ProfileAttachDrafter", [](World& w) { return aerie_profile_attach_drafter(w.profile, w.host.drafter, &w.err); }, load},
    {"SetTreeAuto", [](World& w) { return set_tree(w, AERIE_TREE_AUTO); }, attach},
    {"StepAuto", [](World& w) { return w.text.step(0, &w.err); },
     [](World& w) {
       attach(w);
       ASSERT_EQ(set_tree(w, AERIE_TREE_AUTO), AERIE_OK) << w.err.message;
     }},
};

class OutOfMemoryIn : public testing::TestWithParam<Call> {};

// Every length of the shortage at every allocation, or nearly.
TEST_P(OutOfMemoryIn, SaysSoAndNothingIsLost) {
  const Call& c = GetParam();
  World w;
  std::vector<int32_t> made;  // what the call's own session says where nothing has failed
  w.begin(false);
  const int32_t room = w.room();
  EXPECT_GT(room, kSessions);
  int32_t failures = 0, rounds = 0;
  const auto round = [&](int64_t at, int64_t length) {  // true: an allocation has failed
    SCOPED_TRACE("allocation " + std::to_string(at) + " and " + std::to_string(length - 1) + " more");
    ++rounds;
    w.begin(c.in_batch);
    if (c.prepare) c.prepare(w);
    Shortage::begin(at, length);
    const int32_t code = c.call(w);
    const bool failed = Shortage::end();
    if (code != AERIE_OK) {
      ++failures;
      EXPECT_EQ(code, AERIE_E_OUT_OF_MEMORY) << w.err.message;
      EXPECT_EQ(w.err.code, code);
      EXPECT_EQ(c.call(w), AERIE_OK) << w.err.message;
    }
    w.go_on();
    if (w.text.session) w.text.expect_plain(true);
    if (w.batch) w.other.expect_plain(false);
    const std::vector<int32_t> says = w.made.session ? w.made.tokens() : std::vector<int32_t>();
    if (made.empty()) made = says;
    EXPECT_EQ(says, made);
    return failed && !HasFailure();
  };
  round(Shortage::kForEver, 1);
  for (const int64_t length : {int64_t{1}, int64_t{2}, int64_t{7}, Shortage::kForEver})
    for (int64_t at = Shortage::first(length); round(at, length); at = Shortage::next(at, c.stride)) {
    }
  w.begin(false);
  EXPECT_EQ(w.room(), room);
  EXPECT_EQ(w.numbers.held, w.numbers.released);
  EXPECT_TRUE(failures > 0 || rounds == 5) << "what takes memory can fail";
}
INSTANTIATE_TEST_SUITE_P(Calls, OutOfMemoryIn, testing::ValuesIn(kCalls),
                         [](const auto& c) { return std::string(c.param.name); });

// One that has no prompt yet has something to say, for which there is no memory: the others' last tokens are not handed
// out a second time.
TEST(OutOfMemory, ABatchThatCannotBeginHandsNothingOut) {
  Host host;
  ASSERT_EQ(aerie_runtime_create(nullptr, &host.runtime, &host.err), AERIE_OK) << host.err.message;
  ASSERT_EQ(aerie_model_open(host.runtime, demo_model(), nullptr, &host.model, &host.err), AERIE_OK) << host.err.message;
  const Settings settings;
  aerie_session* empty = nullptr;
  aerie_batch* batch = nullptr;
  ASSERT_EQ(settings.create(host.model, &empty, &host.err), AERIE_OK) << host.err.message;
  ASSERT_EQ(settings.create(host.model, &host.session, &host.err), AERIE_OK) << host.err.message;
  ASSERT_EQ(aerie_session_append(host.session, kPrompt.data(), kPrompt.size(), &host.err), AERIE_OK);
  ASSERT_EQ(aerie_batch_create(host.model, nullptr, &batch, &host.err), AERIE_OK);
  for (aerie_session* s : {empty, host.session}) ASSERT_EQ(aerie_batch_add(batch, s, &host.err), AERIE_OK);
  ASSERT_EQ(aerie_batch_step(batch, nullptr, nullptr, &host.err), AERIE_OK) << host.err.message;
  aerie_step_result r;
  AERIE_INIT(r);
  ASSERT_EQ(aerie_session_result(host.session, &r, &host.err), AERIE_OK);
  ASSERT_GT(r.n_tokens, 0);
  Shortage::begin(0, 1);
  (void)aerie_batch_step(batch, nullptr, nullptr, nullptr);
  EXPECT_TRUE(Shortage::end());
  EXPECT_EQ(aerie_session_result(host.session, &r, nullptr), AERIE_E_OUT_OF_MEMORY);
  aerie_session_release(empty);
  aerie_batch_release(batch);
}

}  // namespace
}  // namespace aerie_capi_test

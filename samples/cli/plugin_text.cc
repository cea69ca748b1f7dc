// A plugin in the runtime: whatever it proposes, the text must be plain decode's, and it must not fail.
#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>

#include "common.h"
#include "plugin.h"

namespace cli::plugin {

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kTokens = 96, kLeastTokens = 12;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Model and drafter, and what the runtime had to say about the plugin. Closed in order: the log hook is the last to go.
struct Stage {
  mutable std::mutex mutex;  // its sessions may step on two threads
  std::string complaint;
  Runtime runtime;
  Model model;
  Drafter drafter;
  std::vector<int32_t> prompt;
  const int seconds;

  Stage(const Setting& s, const std::string& id) : seconds(s.seconds) {
    aerie_runtime_options r;
    AERIE_INIT(r);
    r.threads = 2;
    r.log_user = this;
    r.log = [](void* user, int32_t level, const char* message) {
      auto& stage = *static_cast<Stage*>(user);
      const std::lock_guard lock(stage.mutex);
      if (level <= 1 && stage.complaint.empty()) stage.complaint = message;
    };
    aerie_runtime* raw = nullptr;
    check([&](aerie_error* e) { return aerie_runtime_create(&r, &raw, e); });
    runtime.reset(raw);
    check([&](aerie_error* e) { return aerie_runtime_load_plugin(raw, s.plugin.c_str(), e); });
    ModelOptions m;
    m.model = s.model;
    model = open_model(raw, m, false);
    aerie_drafter_options d;
    AERIE_INIT(d);
    d.plugin = id.c_str();
    d.package = s.package.empty() ? nullptr : s.package.c_str();
    aerie_drafter_handle* handle = nullptr;
    check([&](aerie_error* e) { return aerie_drafter_open(model.get(), &d, &handle, e); });
    drafter.reset(handle);
    aerie_model_info info;
    AERIE_INIT(info);
    check([&](aerie_error* e) { return aerie_model_info_get(model.get(), &info, e); });
    for (int32_t i = 0; i < 48; ++i) prompt.push_back((i * i % 13 * 61 + 260) % info.vocab_size);
  }

  Session session(int32_t policy, float temperature, bool drafting) const {
    SamplingOptions sampling;
    sampling.temperature = temperature;
    sampling.seed = 11;
    SessionSettings s({}, sampling, {});
    s.options.drafter = drafting ? drafter.get() : nullptr;
    s.tree.policy = policy;
    s.options.ignore_eos = 1;
    return create_session(model.get(), s.options);
  }

  std::vector<int32_t> plain(float temperature, int tokens) const {
    return generate(session(AERIE_TREE_CHAIN, temperature, false).get(), prompt, tokens).tokens;
  }

  // How long each of so many texts may be, by what the first cycles take: kTokens, or less. 0: too slow to be checked.
  int length(double texts) const {
    constexpr int kCycles = 3;
    const Session s = session(AERIE_TREE_STATIC, 0, true);
    check([&](aerie_error* e) { return aerie_session_append(s.get(), prompt.data(), prompt.size(), e); });
    Clock::time_point start;
    for (int i = 0; i <= kCycles; ++i) {
      aerie_step_result r;
      AERIE_INIT(r);
      check([&](aerie_error* e) { return aerie_session_step(s.get(), nullptr, &r, e); });
      if (i == 0) start = Clock::now();  // this one has read the prompt
    }
    const double most = seconds / (texts * seconds_since(start) / kCycles);
    return most < kLeastTokens ? 0 : static_cast<int>(std::min<double>(most, kTokens));
  }

  // What must hold after every use; throws.
  aerie_statistics expect_well(aerie_session* session) const {
    aerie_statistics st;
    AERIE_INIT(st);
    check([&](aerie_error* e) { return aerie_session_statistics(session, &st, e); });
    if (!complaint.empty()) throw Failure(complaint);
    if (st.drafter_failures > 0) throw Failure("it failed " + std::to_string(st.drafter_failures) + " times");
    return st;
  }
};

const Finding kTooSlow = {Finding::note, "too slow to be checked: the model, or the drafter"};
std::string shortened(int tokens) { return tokens < kTokens ? ", in texts of " + std::to_string(tokens) + " tokens: it is slow" : ""; }

void expect_equal(const std::vector<int32_t>& got, const std::vector<int32_t>& want, const std::string& where) {
  if (got != want) throw Failure(where + ": the text is not plain decode's");
}

}  // namespace

Finding check_open(const Setting& s, const std::string& id) {
  const Stage stage(s, id);
  if (!stage.complaint.empty()) return fail(stage.complaint);
  return {Finding::ok, "bound to " + s.model};
}

Finding check_text(const Setting& s, const std::string& id) {
  const Stage stage(s, id);
  const int n = stage.length(22);
  if (n == 0) return kTooSlow;
  uint64_t proposed = 0, accepted = 0;
  const std::pair<const char*, int32_t> trees[] = {{"chain", AERIE_TREE_CHAIN}, {"static", AERIE_TREE_STATIC}, {"eagle2", AERIE_TREE_EAGLE2},
                                                   {"backbone", AERIE_TREE_BACKBONE}, {"cast", AERIE_TREE_CAST}, {"auto", AERIE_TREE_AUTO}};
  for (const float temperature : {0.0f, 0.8f}) {
    const std::vector<int32_t> want = stage.plain(temperature, n);
    for (const auto& [tree, policy] : trees) {
      const Session session = stage.session(policy, temperature, true);
      expect_equal(generate(session.get(), stage.prompt, n).tokens, want, tree);
      // Back into the text, then on in small slices of time.
      const size_t kept = want.size() / 3;
      check([&](aerie_error* e) { return aerie_session_rewind(session.get(), stage.prompt.size() + kept, e); });
      std::vector<int32_t> again(want.begin(), want.begin() + static_cast<std::ptrdiff_t>(kept));
      for (bool ended = false; again.size() < want.size() && !ended;) {
        aerie_step_options o;
        AERIE_INIT(o);
        o.max_tokens = static_cast<int32_t>(want.size() - again.size());
        o.budget_us = 20;
        aerie_step_result r;
        AERIE_INIT(r);
        check([&](aerie_error* e) { return aerie_session_step(session.get(), &o, &r, e); });
        for (int32_t i = 0; i < r.n_tokens; ++i) again.push_back(r.tokens[i].id);
        ended = r.state == AERIE_STEP_DONE;
      }
      expect_equal(again, want, std::string(tree) + " after a rewind");
      const aerie_statistics st = stage.expect_well(session.get());
      proposed += st.proposed;
      accepted += st.accepted;
    }
  }
  if (proposed == 0) return {Finding::note, "plain decode's text, but nothing was proposed"};
  return {Finding::ok, "plain decode's text under 6 trees at 2 temperatures; " + std::to_string(accepted) + " of " + std::to_string(proposed) +
                           " proposed nodes accepted" + shortened(n)};
}

Finding check_batch(const Setting& s, const std::string& id) {
  const Stage stage(s, id);
  const int n = stage.length(4);
  if (n == 0) return kTooSlow;
  const std::vector<int32_t> want = stage.plain(0.8f, n);
  aerie_batch* handle = nullptr;
  check([&](aerie_error* e) { return aerie_batch_create(stage.model.get(), nullptr, &handle, e); });
  const Batch batch(handle);
  std::vector<Session> sessions;
  std::vector<std::vector<int32_t>> got(3);
  for (size_t i = 0; i < got.size(); ++i) {
    sessions.push_back(stage.session(AERIE_TREE_STATIC, 0.8f, true));
    check([&](aerie_error* e) { return aerie_session_append(sessions[i].get(), stage.prompt.data(), stage.prompt.size(), e); });
    check([&](aerie_error* e) { return aerie_batch_add(handle, sessions[i].get(), e); });
  }
  for (bool more = true; more;) {
    check([&](aerie_error* e) { return aerie_batch_step(handle, nullptr, nullptr, e); });
    more = false;
    for (size_t i = 0; i < got.size(); ++i) {
      aerie_step_result r;
      AERIE_INIT(r);
      check([&](aerie_error* e) { return aerie_session_result(sessions[i].get(), &r, e); });
      for (int32_t k = 0; k < r.n_tokens && got[i].size() < want.size(); ++k) got[i].push_back(r.tokens[k].id);
      more = more || (got[i].size() < want.size() && r.state != AERIE_STEP_DONE);
    }
  }
  for (size_t i = 0; i < got.size(); ++i) {
    expect_equal(got[i], want, "session " + std::to_string(i) + " of a batch");
    stage.expect_well(sessions[i].get());
  }
  return {Finding::ok, "3 sessions in a batch" + shortened(n)};
}

Finding check_threads(const Setting& s, const std::string& id) {
  const Stage stage(s, id);
  const int n = stage.length(3);
  if (n == 0) return kTooSlow;
  const std::vector<int32_t> want = stage.plain(0.8f, n);
  const Session a = stage.session(AERIE_TREE_CHAIN, 0.8f, true), b = stage.session(AERIE_TREE_STATIC, 0.8f, true);
  std::vector<int32_t> other;
  std::string failure, others;
  std::thread thread([&] {
    try {
      other = generate(b.get(), stage.prompt, n).tokens;
    } catch (const std::exception& e) {
      others = e.what();
    }
  });
  std::vector<int32_t> mine;
  try {
    mine = generate(a.get(), stage.prompt, n).tokens;
  } catch (const std::exception& e) {
    failure = e.what();
  }
  thread.join();
  if (failure.empty()) failure = others;
  if (!failure.empty()) return fail(failure);
  expect_equal(mine, want, "one of two threads");
  expect_equal(other, want, "the other of two threads");
  stage.expect_well(a.get());
  stage.expect_well(b.get());
  return {Finding::ok, "2 sessions on 2 threads" + shortened(n)};
}

Finding check_sequences(const Setting& s, const std::string& id) {
  const Stage stage(s, id);
  constexpr int kRounds = 100, kLeastRounds = 10, kShort = 8;
  const std::vector<int32_t> want = stage.plain(0.0f, kShort);
  const Clock::time_point start = Clock::now();
  int i = 0;
  for (; i < kRounds && seconds_since(start) < s.seconds; ++i) {
    const Session session = stage.session(AERIE_TREE_CHAIN, 0.0f, true);
    expect_equal(generate(session.get(), stage.prompt, kShort).tokens, want, "session " + std::to_string(i));
    stage.expect_well(session.get());
  }
  const std::string words = std::to_string(i) + " sessions one after another";
  return i < kLeastRounds ? Finding{Finding::note, "too slow for more than " + words} : Finding{Finding::ok, words};
}

}  // namespace cli::plugin

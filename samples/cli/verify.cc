// Proves "same seed, same text" on this machine: every combination must give plain decode's tokens.
#include <algorithm>
#include <climits>
#include <cstdio>
#include <iterator>
#include <random>

#include "common.h"
#include "verify_save.h"

namespace cli {

namespace {

using Handles = std::vector<aerie_drafter_handle*>;

struct VerifyOptions {
  ModelOptions model;
  std::vector<std::string> drafters;
  int64_t tokens = 5000;
  int length = 0;  // 0: as many as let every drafter meet every sampler
  uint64_t seed = 1;
};

struct Case {
  SamplingOptions sampling;
  std::string drafter, tree, noise;
  std::vector<std::string> more;  // further drafters of the session
  int nodes = 0, threads = 1;
  std::string recipe() const {
    char text[1024];
    std::string names = drafter;
    for (const std::string& m : more) names += " --drafter " + m;
    std::snprintf(text, sizeof text, "--drafter %s --tree %s --tree-nodes %d --draft-noise %s --temperature %g --top-p %g --top-k %d --min-p %g --repetition-penalty %g --penalty-window %d --seed %llu --threads %d",
                  names.c_str(), tree.c_str(), nodes, noise.c_str(), sampling.temperature, sampling.top_p, sampling.top_k, sampling.min_p,
                  sampling.repetition_penalty, sampling.penalty_window,
                  static_cast<unsigned long long>(sampling.seed), threads);
    return text;
  }
};

// One open model and its drafters for each thread count.
struct Bench {
  Runtime runtime;
  Model model;
  std::vector<Drafter> drafters;
  // One of them, or it and all the others.
  Handles with(size_t d, bool others) const {
    Handles h{drafters[d].get()};
    for (size_t i = 0; others && i < drafters.size(); ++i)
      if (i != d) h.push_back(drafters[i].get());
    return h;
  }
};

SessionSettings settings(const Handles& drafters, const Case& c) {
  TreeOptions tree;
  if (!drafters.empty()) tree.tree = c.tree;
  tree.nodes = c.nodes;
  SessionSettings s(drafters, c.sampling, tree);
  s.options.draft_noise = c.noise == "none" ? AERIE_NOISE_NONE : AERIE_NOISE_SHARED;
  s.options.ignore_eos = 1;
  return s;
}

Session open_session(aerie_model* model, const Handles& drafters, const Case& c) {
  return create_session(model, settings(drafters, c).options);
}

struct VerifiedTree {
  const char* name;
  int nodes;
  bool all;  // it chooses between all drafters
};
constexpr VerifiedTree kVerified[] = {{"chain", 4, false}, {"static", 0, false}, {"eagle2", 0, false}, {"eagle2", 5, false},
                           {"backbone", 0, false}, {"cast", 0, false}, {"auto", 0, false}, {"auto", 0, true}};

// What was compared beside whole texts.
struct Twists {
  uint64_t forked = 0, reused = 0, switched = 0;  // tokens of forks, tokens of prompts, trees
  uint64_t failures = 0;                          // of drafters
};

void switch_tree(aerie_session* session, const VerifiedTree& tree) {
  aerie_tree_options t;
  AERIE_INIT(t);
  t.policy = tree_policy(tree.name);
  t.nodes = tree.nodes;
  check([&](aerie_error* e) { return aerie_session_set_tree(session, &t, e); });
}

// `random` cuts the prompt and the steps anywhere, rewinds and switches trees; null: straight on.
std::vector<int32_t> continued(aerie_session* session, int length, std::mt19937_64* random, Twists* twists) {
  size_t before = 0;
  const int32_t* text = nullptr;
  check([&](aerie_error* e) { return aerie_session_tokens(session, &text, &before, e); });
  std::vector<int32_t> out;
  while (static_cast<int>(out.size()) < length) {
    aerie_step_options o;
    AERIE_INIT(o);
    o.max_tokens = length - static_cast<int>(out.size());
    if (random && (*random)() % 4 == 0) o.budget_us = 1 + static_cast<int64_t>((*random)() % 200);
    aerie_step_result r;
    AERIE_INIT(r);
    check([&](aerie_error* e) { return aerie_session_step(session, &o, &r, e); });
    for (int32_t i = 0; i < r.n_tokens; ++i) out.push_back(r.tokens[i].id);
    if (r.state == AERIE_STEP_DONE) break;
    if (random && (*random)() % 16 == 0 && out.size() > 2) {  // rewind, also in mid-cycle
      out.resize(out.size() - 1 - (*random)() % 2);
      check([&](aerie_error* e) { return aerie_session_rewind(session, before + out.size(), e); });
    }
    if (random && (*random)() % 16 == 0) {
      switch_tree(session, kVerified[(*random)() % std::size(kVerified)]);
      ++twists->switched;
    }
  }
  return out;
}

std::vector<int32_t> tokens_of(aerie_model* model, const Handles& drafters, const Case& c,
                               const std::vector<int32_t>& prompt, int length, std::mt19937_64* random = nullptr,
                               Twists* twists = nullptr) {
  const Session owner = open_session(model, drafters, c);
  aerie_session* const session = owner.get();
  for (size_t at = 0; at < prompt.size();) {  // any cutting of the prompt
    const size_t n = random ? std::min<size_t>(1 + (*random)() % 16, prompt.size() - at) : prompt.size() - at;
    check([&](aerie_error* e) { return aerie_session_append(session, prompt.data() + at, n, e); });
    at += n;
  }
  const auto out = continued(session, length, random, twists);
  if (twists) {
    aerie_statistics statistics;
    AERIE_INIT(statistics);
    check([&](aerie_error* e) { return aerie_session_statistics(session, &statistics, e); });
    twists->reused += statistics.reused_tokens;
    twists->failures += statistics.drafter_failures;
  }
  return out;
}

// A text forked somewhere, each side stepped in turn: the parent's text is the old one, a fork's is that of a session of its
// stream that was given the text so far.
void check_fork(aerie_model* model, const Handles& drafters, const Case& c, const std::vector<int32_t>& prompt,
                const std::vector<int32_t>& want, aerie_model* plain, const std::string& path, std::mt19937_64& random,
                Twists* twists) {
  const Session parent = open_session(model, drafters, c);
  check([&](aerie_error* e) { return aerie_session_append(parent.get(), prompt.data(), prompt.size(), e); });
  auto got = continued(parent.get(), static_cast<int>(random() % want.size()), &random, twists);
  aerie_fork_options options;
  AERIE_INIT(options);
  Case other = c;
  other.sampling.stream = options.stream = 1 + static_cast<uint32_t>(random() % 1000);
  aerie_session* handle = nullptr;
  check([&](aerie_error* e) { return aerie_session_fork(parent.get(), &options, &handle, e); });
  const Session fork(handle);
  auto text = prompt;
  text.insert(text.end(), got.begin(), got.end());
  std::vector<int32_t> forked;
  const size_t rest = want.size() - got.size();
  while (forked.size() < rest || got.size() < want.size()) {
    const bool theirs = forked.size() < rest && (got.size() == want.size() || random() % 2 == 0);
    auto& side = theirs ? forked : got;
    const size_t left = theirs ? rest - forked.size() : want.size() - got.size();
    const auto more = continued(theirs ? fork.get() : parent.get(), static_cast<int>(1 + random() % left), &random, twists);
    side.insert(side.end(), more.begin(), more.end());
    if (more.empty()) break;
  }
  if (got != want) throw Failure("difference after a fork: aerie run --model " + path + " " + c.recipe());
  if (forked != tokens_of(plain, {}, other, text, static_cast<int>(rest)))
    throw Failure("difference in a fork of stream " + std::to_string(options.stream) + " after " + std::to_string(text.size()) +
                  " tokens: aerie run --model " + path + " " + c.recipe());
  twists->forked += forked.size();
}

// Each case once more, all of them in one batch: they join at random times and leave when they have their tokens.
struct Batched {
  Case c;
  Handles drafters;
  Session session;
  std::vector<int32_t> got;
};

void check_batch(aerie_model* model, std::vector<Batched>& waiting, const std::vector<int32_t>& prompt,
                 const std::vector<int32_t>& want, const std::string& path, std::mt19937_64& random) {
  constexpr size_t kTogether = 4;
  aerie_batch* handle = nullptr;
  check([&](aerie_error* e) { return aerie_batch_create(model, nullptr, &handle, e); });
  const Batch batch(handle);
  std::vector<Batched> running;
  while (!waiting.empty() || !running.empty()) {
    while (!waiting.empty() && (running.empty() || (running.size() < kTogether && random() % 2 == 0))) {
      Batched b = std::move(waiting.back());
      waiting.pop_back();
      b.session = open_session(model, b.drafters, b.c);
      check([&](aerie_error* e) { return aerie_session_append(b.session.get(), prompt.data(), prompt.size(), e); });
      check([&](aerie_error* e) { return aerie_batch_add(handle, b.session.get(), e); });
      running.push_back(std::move(b));
    }
    aerie_step_options o;
    AERIE_INIT(o);
    if (random() % 4 == 0) o.budget_us = 1 + static_cast<int64_t>(random() % 200);
    check([&](aerie_error* e) { return aerie_batch_step(handle, &o, nullptr, e); });
    for (size_t i = running.size(); i-- > 0;) {
      Batched& b = running[i];
      aerie_step_result r;
      AERIE_INIT(r);
      check([&](aerie_error* e) { return aerie_session_result(b.session.get(), &r, e); });
      for (int32_t k = 0; k < r.n_tokens && b.got.size() < want.size(); ++k) b.got.push_back(r.tokens[k].id);
      if (b.got.size() < want.size() && r.state != AERIE_STEP_DONE) continue;
      if (b.got != want) throw Failure("difference in a batch: aerie run --model " + path + " " + b.c.recipe());
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
}

// What was compared in other ways, and how often it was saved or stepped there.
struct Compared {
  uint64_t tokens = 0, times = 0;
};

void check_saved(const Bench& b, size_t d, bool all, const Case& c, const std::vector<int32_t>& prompt, const std::vector<int32_t>& want,
                 const std::string& path, std::mt19937_64& random, Compared* done) {
  const Handles drafters = b.with(d, all);
  const SessionSettings s = settings(drafters, c);
  if (saved_tokens(b.model.get(), s.options, prompt, static_cast<int>(want.size()), random, &done->times) != want)
    throw Failure("difference after a restore: aerie run --model " + path + " " + c.recipe());
  done->tokens += want.size();
}

void check_sliced(const Bench& b, size_t d, bool all, const Case& c, const std::vector<int32_t>& prompt, const std::vector<int32_t>& want,
                  const std::string& path, Compared* done) {
  const Handles drafters = b.with(d, all);
  const SessionSettings s = settings(drafters, c);
  if (sliced_tokens(b.model.get(), s.options, prompt, static_cast<int>(want.size()), &done->times) != want)
    throw Failure("difference in slices of 1 us: aerie run --model " + path + " " + c.recipe());
  done->tokens += want.size();
}

// For 1 to 4 threads; every second one keeps prefixes.
std::vector<Bench> open_benches(const VerifyOptions& o) {
  std::vector<Bench> benches;
  for (int threads = 1; threads <= 4; ++threads) {
    Bench b;
    ModelOptions m = o.model;
    m.threads = threads;
    m.keep_prefixes = threads % 2 == 0;
    b.runtime = open_runtime(m);
    b.model = open_model(b.runtime.get(), m, threads == 1);
    for (const std::string& d : o.drafters) b.drafters.push_back(open_drafter(b.model.get(), d));
    benches.push_back(std::move(b));
  }
  return benches;
}

struct Sampler {
  const char* name;
  double temperature, top_p, min_p;
  int top_k;
  double repetition_penalty = 1;
  int penalty_window = 0;
};
constexpr Sampler kSamplers[] = {{"temperature 0", 0, 1, 0, 0}, {"0.7", 0.7, 1, 0, 0}, {"1", 1, 1, 0, 0}, {"top-p", 1, 0.9, 0, 0},
                                 {"top-k + min-p", 0.8, 1, 0.05, 40}, {"0.7 + repetition penalty", 0.7, 1, 0, 0, 1.2, 64}};
constexpr const char* kNoises[] = {"shared", "none"};
constexpr int kLeastLength = 8, kMostLength = 64;  // of a text, if none is asked for

// Everything that is compared, counted.
class Verification {
 public:
  explicit Verification(const VerifyOptions& o)
      : o_(o), random_(o.seed), benches_(open_benches(o)), tokenizer_(open_tokenizer(benches_[0].model.get(), o.model.model)), checked_(o.drafters.size(), 0),
        failures_(o.drafters.size(), 0) {
    AERIE_INIT(info_);
    check([&](aerie_error* e) { return aerie_model_info_get(benches_[0].model.get(), &info_, e); });
    const auto texts = static_cast<int64_t>(std::size(kSamplers) * o.drafters.size() * std::size(kVerified) * std::size(kNoises));
    const int wanted = o.length > 0 ? o.length : static_cast<int>(std::clamp<int64_t>(o.tokens / texts, kLeastLength, kMostLength));
    length_ = std::min(wanted, info_.max_context / 2);
  }
  void run() {
    while (total_ < o_.tokens || (o_.length == 0 && runs_ < std::size(kSamplers))) text();
  }
  void report() const;

 private:
  std::vector<int32_t> prompt();
  void text();
  void compare(Case& c, size_t d, const VerifiedTree& tree, const char* noise);

  const VerifyOptions& o_;
  std::mt19937_64 random_;
  std::vector<Bench> benches_;
  Tokenizer tokenizer_;
  std::vector<uint64_t> checked_, failures_;  // tokens, and steps that had no drafts, by drafter
  aerie_model_info info_;
  int length_;
  int64_t total_ = 0;
  uint64_t runs_ = 0, in_batches_ = 0;
  Twists twists_;
  Compared saved_, sliced_;
  std::vector<int32_t> prompt_, want_;  // of the running text
};

std::vector<int32_t> Verification::prompt() {
  const char* const texts[] = {"The old house stood at the end of the", "def main():\n    ", "\"Well,\" said he, \"and what"};
  if (tokenizer_ && runs_ % 2 == 0) return encode(tokenizer_.get(), texts[random_() % 3]);
  std::vector<int32_t> tokens;
  for (size_t n = 1 + random_() % static_cast<size_t>(std::max(2, info_.max_context / 2)); n > 0; --n)
    tokens.push_back(static_cast<int32_t>(random_() % static_cast<uint64_t>(info_.vocab_size)));
  return tokens;
}

// One prompt and sampler, with every drafter, tree and noise.
void Verification::text() {
  Case c;
  const Sampler& s = kSamplers[runs_ % std::size(kSamplers)];
  c.sampling.temperature = s.temperature;
  c.sampling.top_p = s.top_p;
  c.sampling.min_p = s.min_p;
  c.sampling.top_k = s.top_k;
  c.sampling.repetition_penalty = s.repetition_penalty;
  c.sampling.penalty_window = s.penalty_window;
  c.sampling.seed = random_();
  prompt_ = prompt();
  ++runs_;
  want_ = tokens_of(benches_[0].model.get(), {}, c, prompt_, length_);
  std::vector<Batched> together;
  const Bench& batched = benches_[static_cast<size_t>(random_() % 4)];
  for (size_t d = 0; d < o_.drafters.size(); ++d)
    for (const VerifiedTree& tree : kVerified)
      for (const char* noise : kNoises) {
        if (tree.all && o_.drafters.size() < 2) continue;
        compare(c, d, tree, noise);
        together.push_back({c, batched.with(d, tree.all), nullptr, {}});
      }
  c.drafter = "none";
  c.more.clear();
  together.push_back({c, {}, nullptr, {}});
  std::shuffle(together.begin(), together.end(), random_);
  in_batches_ += together.size() * want_.size();
  check_batch(batched.model.get(), together, prompt_, want_, o_.model.model, random_);
}

void Verification::compare(Case& c, size_t d, const VerifiedTree& tree, const char* noise) {
  c.drafter = o_.drafters[d];
  c.more.clear();
  for (size_t i = 0; tree.all && i < o_.drafters.size(); ++i)
    if (i != d) c.more.push_back(o_.drafters[i]);
  c.tree = tree.name;
  c.nodes = tree.nodes;
  c.noise = noise;
  c.threads = 1 + static_cast<int>(random_() % 4);
  const Bench& b = benches_[static_cast<size_t>(c.threads) - 1];
  const uint64_t failed = twists_.failures;
  const auto got = tokens_of(b.model.get(), b.with(d, tree.all), c, prompt_, length_, &random_, &twists_);
  if (got != want_) {
    const auto at = std::mismatch(got.begin(), got.end(), want_.begin(), want_.end()).first - got.begin();
    throw Failure("difference at token " + std::to_string(at) + ": aerie run --model " + o_.model.model + " " + c.recipe());
  }
  if (random_() % 4 == 0) check_saved(b, d, tree.all, c, prompt_, want_, o_.model.model, random_, &saved_);
  if (random_() % 4 == 0) check_sliced(b, d, tree.all, c, prompt_, want_, o_.model.model, &sliced_);
  checked_[d] += got.size();
  failures_[d] += twists_.failures - failed;
  total_ += static_cast<int64_t>(got.size());
  if (random_() % 4 == 0)
    check_fork(b.model.get(), b.with(d, tree.all), c, prompt_, want_, benches_[0].model.get(), o_.model.model, random_, &twists_);
}

void Verification::report() const {
  const auto n = [](uint64_t v) { return static_cast<unsigned long long>(v); };
  for (size_t d = 0; d < o_.drafters.size(); ++d) {
    std::printf("%-40s %12llu tokens, 0 differences", o_.drafters[d].c_str(), n(checked_[d]));
    if (failures_[d] > 0) std::printf("; it failed in %llu steps, which were plain decode", n(failures_[d]));
    std::printf("\n");
  }
  std::string samplers = kSamplers[0].name;
  for (size_t i = 1; i < std::min<size_t>(runs_, std::size(kSamplers)); ++i) samplers += std::string(", ") + kSamplers[i].name;
  std::printf("%lld tokens equal plain decode (chain, static, eagle2 60 and 5, backbone, cast, auto%s; draft noise shared and none; %s; "
              "1 to 4 threads; random prompt chunks, budgets, rewinds, %llu switches of the tree)\n",
              static_cast<long long>(total_), o_.drafters.size() > 1 ? ", auto between all drafters" : "", samplers.c_str(), n(twists_.switched));
  std::printf("%llu tokens of forks equal plain decode with their stream; keys and values of %llu prompt tokens were an earlier text's\n",
              n(twists_.forked), n(twists_.reused));
  std::printf("%llu tokens equal plain decode in texts saved and restored %llu times, in mid-cycle too, now and then without their drafter\n",
              n(saved_.tokens), n(saved_.times));
  std::printf("%llu tokens equal plain decode in %llu steps of 1 us\n", n(sliced_.tokens), n(sliced_.times));
  std::printf("%llu tokens equal plain decode in batches of up to 4 sessions with different drafters and trees\n", n(in_batches_));
}

int verify(const VerifyOptions& o) {
  if (o.model.prefill != "exact") throw Failure("verify: --prefill fast is not bit-exact, so there is nothing to prove");
  Verification all(o);
  all.run();
  all.report();
  return 0;
}

}  // namespace

void add_verify(CLI::App& app, std::function<int()>* run) {
  auto o = std::make_shared<VerifyOptions>();
  CLI::App* c = app.add_subcommand("verify", "prove that drafters change no token on this machine");
  o->model.add_to(*c);
  c->add_option("--drafter", o->drafters, "package or plugin id; may be repeated")->required();
  c->add_option("--tokens", o->tokens, "tokens to compare, or a few more: every drafter is tried with every text")->capture_default_str()->check(CLI::Range(int64_t{1}, INT64_MAX));
  c->add_option("--length", o->length, "tokens a text (up to 64, as many as let every drafter meet every sampler)")->check(CLI::Range(1, INT_MAX));
  c->add_option("--seed", o->seed, "of the prompts, settings and twists that are tried")->capture_default_str();
  c->callback([o, run] { *run = [o] { return verify(*o); }; });
}

}  // namespace cli

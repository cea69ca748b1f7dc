// How much longer a step takes than its budget, through the C ABI: reading a prompt and decoding, for budgets of
// 0.1 to 4 ms, plain and with drafters.
//   overrun TARGET.aerie [--threads N] [--prompt TOKENS] [--tokens N] [--drafter PACKAGE|ngram|...]... [--tree auto|chain|static|eagle2]
// Token ids are random. On a busy machine look at the smaller figures of several runs: a step that the system has
// interrupted is not the library's; `preempted` counts the steps during which one of its threads was.
#include <aerie/aerie.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

struct Arguments {
  const char* target = nullptr;
  int threads = 1;
  int prompt = 1024;
  int tokens = 32;
  int32_t tree = AERIE_TREE_AUTO;
  std::vector<std::string> drafters;
};

aerie_error err{};

void check(int32_t code, const char* what) {
  if (code == AERIE_OK) return;
  std::fprintf(stderr, "%s: %s\n", what, err.message);
  std::exit(1);
}

// How often other work took a core of this process.
long preemptions() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nivcsw;
}

struct Overruns {
  std::vector<double> quiet, all;  // ms, of steps that spent their budget; quiet: not preempted
  size_t steps = 0;

  void print(const std::string& drafter, const char* what, int64_t budget_us) {
    const auto at = [](std::vector<double>& v, double p) {
      std::sort(v.begin(), v.end());
      return v.empty() ? 0.0 : v[static_cast<size_t>(p * static_cast<double>(v.size() - 1) + 0.5)];
    };
    std::printf("%s,%s,%lld,%zu,%zu,%zu,%.3f,%.3f,%.3f,%.3f,%.3f,%.3f\n", drafter.c_str(), what,
                static_cast<long long>(budget_us), steps, all.size(), all.size() - quiet.size(), at(all, 0.5),
                at(all, 0.99), at(all, 1), at(quiet, 0.5), at(quiet, 0.99), at(quiet, 1));
    std::fflush(stdout);
  }
};

// Steps until `wanted` tokens are out; 0: until the first ones are, when the prompt has been read.
void drive(aerie_session* session, int64_t budget_us, int wanted, Overruns* out) {
  aerie_step_options step{};
  AERIE_INIT(step);
  step.budget_us = budget_us;
  const auto budget = std::chrono::microseconds(budget_us);
  for (int got = 0;;) {
    aerie_step_result result{};
    AERIE_INIT(result);
    const long before = preemptions();
    const auto start = Clock::now();
    check(aerie_session_step(session, &step, &result, &err), "step");
    const auto took = Clock::now() - start;
    ++out->steps;
    if (took >= budget) {
      const double over = std::chrono::duration<double, std::milli>(took - budget).count();
      out->all.push_back(over);
      if (preemptions() == before) out->quiet.push_back(over);
    }
    got += result.n_tokens;
    if (got > 0 && got >= wanted) return;
    if (result.state == AERIE_STEP_DONE) {
      std::fprintf(stderr, "the text ended after %d tokens\n", got);
      std::exit(1);
    }
  }
}

bool parse(int argc, char** argv, Arguments* a) {
  for (int i = 1; i < argc; ++i) {
    const std::string key = argv[i];
    if (key.rfind("--", 0) != 0) {
      if (a->target) return false;
      a->target = argv[i];
      continue;
    }
    if (++i == argc) return false;
    const std::string value = argv[i];
    if (key == "--threads") a->threads = std::atoi(argv[i]);
    else if (key == "--prompt") a->prompt = std::atoi(argv[i]);
    else if (key == "--tokens") a->tokens = std::atoi(argv[i]);
    else if (key == "--drafter") a->drafters.push_back(value);
    else if (key == "--tree") {
      const char* const names[] = {"default", "chain", "static", "eagle2", "backbone", "cast", "auto"};
      const auto* at = std::find(std::begin(names), std::end(names), value);
      if (at == std::end(names)) return false;
      a->tree = static_cast<int32_t>(at - std::begin(names));
    } else return false;
  }
  return a->target && a->prompt > 1 && a->tokens > 0;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments a;
  if (!parse(argc, argv, &a)) {
    std::fprintf(stderr, "usage: overrun TARGET.aerie [--threads N] [--prompt TOKENS] [--tokens N] [--drafter D]... [--tree P]\n");
    return 2;
  }
  AERIE_INIT(err);
  aerie_runtime_options options{};
  AERIE_INIT(options);
  options.threads = a.threads;
  aerie_runtime* runtime = nullptr;
  aerie_model* model = nullptr;
  check(aerie_runtime_create(&options, &runtime, &err), "runtime");
  if (!a.drafters.empty()) check(aerie_runtime_load_plugin_directory(runtime, nullptr, &err), "plugins");
  aerie_model_options open_model;
  AERIE_INIT(open_model);
  open_model.keep_prefixes = -1;  // every prompt is read
  check(aerie_model_open(runtime, a.target, &open_model, &model, &err), "model");
  aerie_model_info info{};
  AERIE_INIT(info);
  check(aerie_model_info_get(model, &info, &err), "model");

  std::mt19937 random(1);
  std::vector<int32_t> prompt(static_cast<size_t>(a.prompt));
  for (int32_t& id : prompt) id = static_cast<int32_t>(random() % static_cast<uint32_t>(info.vocab_size));

  std::printf("# %s; prompt of %d, then %d tokens; overruns in ms; quiet: steps without preemption\n"
              "drafter,what,budget us,steps,over,preempted,p50,p99,max,quiet p50,quiet p99,quiet max\n",
              aerie_runtime_description(runtime), a.prompt, a.tokens);
  a.drafters.insert(a.drafters.begin(), "");
  for (const std::string& name : a.drafters) {
    aerie_drafter_handle* drafter = nullptr;
    if (!name.empty()) {
      aerie_drafter_options drafting{};
      AERIE_INIT(drafting);
      const bool package = name.find(".aerie") != std::string::npos;
      (package ? drafting.package : drafting.plugin) = name.c_str();
      check(aerie_drafter_open(model, &drafting, &drafter, &err), "drafter");
    }
    const std::string shown = name.empty() ? "none" : name.substr(name.rfind('/') + 1);
    for (const int64_t budget_us : {100, 500, 1000, 2000, 4000}) {
      aerie_session* session = nullptr;
      aerie_session_options open;
      aerie_sampling sampling;
      aerie_tree_options tree;
      AERIE_INIT(open);
      AERIE_INIT(sampling);
      AERIE_INIT(tree);
      tree.policy = a.tree;
      sampling.temperature = 0.7f;
      open.drafter = drafter;
      open.tree = &tree;
      open.sampling = &sampling;
      open.ignore_eos = 1;
      check(aerie_session_create(model, &open, &session, &err), "session");
      check(aerie_session_append(session, prompt.data(), prompt.size(), &err), "prompt");
      Overruns prefill, decode;
      drive(session, budget_us, 0, &prefill);  // with the first cycle
      drive(session, budget_us, a.tokens, &decode);
      prefill.print(shown, "prefill", budget_us);
      decode.print(shown, "decode", budget_us);
      aerie_session_release(session);
    }
    aerie_drafter_release(drafter);
  }
  aerie_model_release(model);
  aerie_runtime_release(runtime);
  return 0;
}

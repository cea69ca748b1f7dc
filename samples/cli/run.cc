#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "common.h"
#include "printer.h"

namespace cli {

namespace {

struct RunOptions {
  ModelOptions model;
  TreeOptions tree;
  SamplingOptions sampling;
  std::vector<std::string> drafters, stops;
  std::string verify = "exact", noise = "shared", prompt, prompt_file, tokens, trace, profile;
  int max_tokens = 128;
  bool json = false, compare = false, ignore_eos = false;
};

std::vector<int32_t> parse_tokens(const std::string& list) {
  std::vector<int32_t> ids;
  std::istringstream in(list);
  for (std::string item; std::getline(in, item, ',');) {
    try {
      size_t used = 0;
      ids.push_back(std::stoi(item, &used));
      if (used != item.size()) throw std::invalid_argument(item);
    } catch (const std::exception&) {
      throw Failure("--tokens: '" + item + "' is not a token id");
    }
  }
  return ids;
}

Session make_session(const RunOptions& o, aerie_model* model, const std::vector<aerie_drafter_handle*>& drafters, aerie_tokenizer* tokenizer) {
  SessionSettings settings(drafters, o.sampling, o.tree);
  aerie_session_options& s = settings.options;
  s.draft_noise = o.noise == "none" ? AERIE_NOISE_NONE : AERIE_NOISE_SHARED;
  s.verify = !drafters.empty() && o.verify == "sampled" ? AERIE_VERIFY_SAMPLED : AERIE_VERIFY_EXACT;
  s.ignore_eos = o.ignore_eos;
  Session out = create_session(model, s);
  if (!o.stops.empty()) {
    if (!tokenizer) throw Failure("--stop needs a model with a tokenizer");
    std::vector<const char*> list;
    for (const std::string& t : o.stops) list.push_back(t.c_str());
    aerie_token_source source;
    AERIE_INIT(source);
    check([&](aerie_error* e) { return aerie_tokenizer_source(tokenizer, &source, e); });
    check([&](aerie_error* e) {
      return aerie_session_set_stop_strings(out.get(), list.data(), static_cast<int32_t>(list.size()), &source, e);
    });
  }
  return out;
}

std::vector<int32_t> read_prompt(const RunOptions& o, aerie_model* model, aerie_tokenizer* tokenizer) {
  std::vector<int32_t> prompt;
  if (!o.tokens.empty()) prompt = parse_tokens(o.tokens);
  else {
    if (!tokenizer) throw Failure("the model has no tokenizer; give --tokens");
    prompt = encode(tokenizer, o.prompt_file.empty() ? o.prompt : read_text(o.prompt_file));
  }
  if (prompt.empty()) throw Failure("the prompt is empty, and the model has no begin-of-text token: give --prompt, --prompt-file or --tokens");
  aerie_model_info info;
  AERIE_INIT(info);
  check([&](aerie_error* e) { return aerie_model_info_get(model, &info, e); });
  if (prompt.size() > static_cast<size_t>(info.max_context))
    throw Failure("the prompt has " + std::to_string(prompt.size()) + " tokens, the model's context is " + std::to_string(info.max_context));
  return prompt;
}

// `plain`: the same text without a drafter; empty where none was asked for.
void print_json(const RunOptions& o, const Generated& g, const Generated& plain, const std::string& text) {
  const auto ms = [](uint64_t ns) { return static_cast<double>(ns) * 1e-6; };
  const aerie_statistics& s = g.statistics;
  nlohmann::ordered_json j;
  j["text"] = text;
  j["tokens"] = g.tokens;
  j["tau"] = g.tau();
  j["cycles"] = s.cycles;
  j["proposed"] = s.proposed;
  j["accepted"] = s.accepted;
  j["tokens_per_second"] = g.tokens_per_second();
  j["prefill_ms"] = ms(s.prefill_ns);
  j["draft_ms"] = ms(s.draft_ns);
  j["verify_ms"] = ms(s.verify_ns);
  j["other_ms"] = ms(s.other_ns);
  j["verified"] = s.verified;
  j["prefill"] = o.model.prefill;
  j["repeated_4grams"] = repeated_4grams(g.tokens);
  j["choice"] = choice_json(s, o.drafters);
  if (!plain.tokens.empty()) j["plain_tokens_per_second"] = plain.tokens_per_second();
  std::printf("%s\n", j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

void print_summary(const RunOptions& o, const Generated& g, const Generated& plain, const char* runtime) {
  const aerie_statistics& s = g.statistics;
  std::fprintf(stderr, "\n%zu token%s, %.0f tokens/s", g.tokens.size(), g.tokens.size() == 1 ? "" : "s", g.tokens_per_second());
  if (!o.drafters.empty())
    std::fprintf(stderr, " with drafter, tau %.2f (%llu cycles, %llu of %llu verified drafts accepted)", g.tau(),
                 static_cast<unsigned long long>(s.cycles), static_cast<unsigned long long>(s.accepted),
                 static_cast<unsigned long long>(s.verified));
  std::fprintf(stderr, "  [%s]\n", runtime);
  if (!o.drafters.empty()) std::fprintf(stderr, "%s\n", cycles_text(s, o.drafters).c_str());
  if (!plain.tokens.empty())
    std::fprintf(stderr, "%zu tokens, %.0f tokens/s without: drafting gives %.2f x the speed, %s\n", plain.tokens.size(),
                 plain.tokens_per_second(), g.tokens_per_second() / plain.tokens_per_second(),
                 plain.tokens == g.tokens ? "the same text token for token" : "sampled rule: another draw of the same law");
}

int run_command(const RunOptions& o) {
  const Runtime runtime = open_runtime(o.model);
  const Model model = open_model(runtime.get(), o.model);
  const Tokenizer tokenizer = open_tokenizer(model.get());
  std::vector<Drafter> owners;
  std::vector<aerie_drafter_handle*> drafters;
  for (const std::string& d : o.drafters) drafters.push_back(owners.emplace_back(open_drafter(model.get(), d)).get());
  attach_profile(o.profile, runtime.get(), model.get(), o.model, drafters);
  const std::vector<int32_t> prompt = read_prompt(o, model.get(), tokenizer.get());
  std::ofstream trace;
  if (!o.trace.empty()) {
    trace.open(o.trace);
    if (!trace) throw Failure(o.trace + ": cannot be written: " + std::strerror(errno));
  }
  if (o.compare && !drafters.empty()) {  // neither side pays for what happens once: memory touched for the first time
    const Session warm = make_session(o, model.get(), drafters, tokenizer.get());
    generate(warm.get(), prompt, std::min(o.max_tokens, 64));
  }
  const Session session = make_session(o, model.get(), drafters, tokenizer.get());
  const StopOnInterrupt interruptible(session.get());
  Printer printer(tokenizer.get(), o.json, o.stops);
  if (!o.json && o.tokens.empty()) printer.prompt(prompt);
  int32_t stop_bytes = 0;
  const Generated g = generate(session.get(), prompt, o.max_tokens, [&](const aerie_step_result& r, double seconds) {
    stop_bytes = r.stop_bytes;
    nlohmann::json line{{"seconds", seconds}, {"tokens", nlohmann::json::array()}, {"drafted", nlohmann::json::array()}};
    for (int32_t i = 0; i < r.n_tokens; ++i) {
      printer.put(r.tokens[i].id, r.tokens[i].drafted != 0);
      line["tokens"].push_back(r.tokens[i].id);
      line["drafted"].push_back(r.tokens[i].drafted != 0);
    }
    if (trace.is_open()) trace << line.dump() << "\n";
  });
  printer.finish(g.finish, stop_bytes);
  if (trace.is_open() && !trace.flush()) throw Failure(o.trace + ": cannot be written: " + std::strerror(errno));
  Generated plain;
  if (o.compare && !drafters.empty() && !g.cancelled) {
    const Session again = make_session(o, model.get(), {}, tokenizer.get());
    plain = generate(again.get(), prompt, o.max_tokens);
    if (o.verify == "exact" && plain.tokens != g.tokens)
      throw Failure("the text with and without the drafter differs: please report this");
  }
  if (o.json) print_json(o, g, plain, printer.text());
  else print_summary(o, g, plain, aerie_runtime_description(runtime.get()));
  return g.cancelled ? kInterrupted : 0;
}

}  // namespace

void add_run(CLI::App& app, std::function<int()>* run) {
  auto o = std::make_shared<RunOptions>();
  CLI::App* c = app.add_subcommand("run", "generate text");
  o->model.add_to(*c);
  o->tree.add_to(*c);
  o->sampling.add_to(*c);
  c->add_option("--drafter", o->drafters, "drafter package, target package as draft model, or plugin id; of several, --tree auto chooses for every cycle");
  c->add_option("--verify-policy", o->verify, "exact: same seed, same text; sampled: the papers' rule, chain and static only")->capture_default_str()->check(CLI::IsMember({"exact", "sampled"}));
  c->add_option("--draft-noise", o->noise, "shared: drafts are ranked with the target's own dice; none: as published")->capture_default_str()->check(CLI::IsMember({"shared", "none"}));
  auto* text = c->add_option("--prompt", o->prompt, "UTF-8 text");
  auto* file = c->add_option("--prompt-file", o->prompt_file, "file with UTF-8 text; -: standard input")->excludes(text);
  c->add_option("--tokens", o->tokens, "token ids, comma separated")->excludes(text)->excludes(file);
  c->add_option("--max-tokens", o->max_tokens, "most tokens to generate")->capture_default_str()->check(CLI::Range(1, INT_MAX));
  c->add_option("--stop", o->stops, "text that ends the generation, and is not printed; may be repeated");
  c->add_flag("--ignore-eos", o->ignore_eos, "go on after the model's end of text");
  c->add_flag("--json", o->json, "one JSON object");
  c->add_option("--profile", o->profile, "costs of passes, by aerie profile (cast, auto); default: those in the cache folder, if there are any; none: measure");
  c->add_option("--trace", o->trace, "JSON lines, one a step");
  c->add_flag("--compare", o->compare, "run without the drafter too and check that the tokens are equal");
  c->callback([o, run] {
    o->tree.check({o->tree.tree});
    if (o->compare && o->drafters.empty()) throw CLI::ValidationError("--compare", "is with and without a drafter: give --drafter");
    if (o->drafters.size() > 1 && o->tree.tree != "default" && o->tree.tree != "auto")
      throw CLI::ValidationError("--drafter", "only --tree auto uses more than one");
    *run = [o] { return run_command(*o); };
  });
}

}  // namespace cli

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "common.h"
#include "printer.h"

namespace cli {

namespace {

struct RunOptions {
  ModelOptions model;
  TreeOptions tree;
  SamplingOptions sampling;
  std::vector<std::string> drafters, stops;
  std::string verify = "exact", noise = "shared", prompt, prompt_file, tokens, trace, profile, grammar, schema, layout = "free", system;
  int max_tokens = 128;
  bool json = false, compare = false, ignore_eos = false, special = false, no_foresight = false, chat = false;
};

// Ids, comma separated; false: there is something else.
bool parse_tokens(const std::string& list, std::vector<int32_t>* ids) {
  const char* at = list.data();
  const char* const end = at + list.size();
  for (;; ++at) {
    while (at != end && *at == ' ') ++at;
    int32_t id = 0;
    const auto read = std::from_chars(at, end, id);
    if (read.ec != std::errc()) return false;
    ids->push_back(id);
    at = read.ptr;
    if (at == end) return true;
    if (*at != ',') return false;
  }
}

std::string tokens_error(const std::string& list) {
  std::vector<int32_t> ids;
  return parse_tokens(list, &ids) ? std::string{} : "'" + list + "' is no list of token ids: 1,2,3";
}

constexpr size_t kMostGrammar = size_t{1} << 20;  // the library takes no longer ones

// The grammar or schema that the text is to have the form of; null: none.
Grammar open_grammar(const RunOptions& o, aerie_model* model, aerie_tokenizer* tokenizer) {
  const bool json = !o.schema.empty();
  if (!json && o.grammar.empty()) return nullptr;
  if (!tokenizer) throw Failure("--grammar and --json-schema need a model with a tokenizer");
  aerie_model_info info;
  AERIE_INIT(info);
  check([&](aerie_error* e) { return aerie_model_info_get(model, &info, e); });
  aerie_grammar_options options;
  AERIE_INIT(options);
  options.end_tokens = info.eos_ids;
  options.n_end_tokens = info.n_eos;
  options.json_layout = o.layout == "compact" ? AERIE_JSON_COMPACT : o.layout == "one-line" ? AERIE_JSON_ONE_LINE : AERIE_JSON_FREE;
  const std::string& given = json ? o.schema : o.grammar;
  const size_t first = given.find_first_not_of(" \t\r\n");
  const std::string text = json && first != std::string::npos && given[first] == '{' ? given : read_text(given, kMostGrammar);
  if (text.find('\0') != std::string::npos) throw Failure(given + ": has a zero byte in it, and is no text");
  aerie_grammar* grammar = nullptr;
  check([&](aerie_error* e) {
    return (json ? aerie_grammar_create_json : aerie_grammar_create)(tokenizer, text.c_str(), &options, &grammar, e);
  });
  return Grammar(grammar);
}

Session make_session(const RunOptions& o, aerie_model* model, const std::vector<aerie_drafter_handle*>& drafters, aerie_tokenizer* tokenizer,
                     aerie_grammar* grammar, bool plain = false) {
  SessionSettings settings(drafters, o.sampling, o.tree);
  aerie_session_options& s = settings.options;
  s.draft_noise = o.noise == "none" ? AERIE_NOISE_NONE : AERIE_NOISE_SHARED;
  s.verify = !drafters.empty() && o.verify == "sampled" ? AERIE_VERIFY_SAMPLED : AERIE_VERIFY_EXACT;
  s.ignore_eos = o.ignore_eos;
  s.no_foresight = plain || o.no_foresight;
  Session out = create_session(model, s);
  if (grammar) {
    aerie_constraint constraint;
    AERIE_INIT(constraint);
    check([&](aerie_error* e) { return aerie_grammar_constraint(grammar, &constraint, e); });
    check([&](aerie_error* e) { return aerie_session_set_constraint(out.get(), &constraint, e); });
  }
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

// The prompt as a user's message, and what is in front of the answer to it.
std::vector<int32_t> chat_prompt(const RunOptions& o, const std::string& text, aerie_model* model, const aerie_tokenizer* tokenizer) {
  const void* blob = nullptr;
  size_t size = 0;
  check([&](aerie_error* e) { return aerie_model_blob(model, "chat_template", &blob, &size, e); });
  if (size == 0) throw Failure(o.model.model + ": has no chat template; give a prompt without --chat");
  aerie_model_info info;
  AERIE_INIT(info);
  check([&](aerie_error* e) { return aerie_model_info_get(model, &info, e); });
  aerie_chat_template* made = nullptr;
  check([&](aerie_error* e) { return aerie_chat_template_create(static_cast<const char*>(blob), size, tokenizer, &info, &made, e); });
  const ChatTemplate chat_template(made);
  for (const std::string* t : {&text, &o.system})
    if (t->find('\0') != std::string::npos) throw Failure("a message with a zero byte in it is no text");
  std::vector<aerie_chat_message> messages;
  if (!o.system.empty()) messages.push_back({"system", o.system.c_str()});
  messages.push_back({"user", text.c_str()});
  aerie_chat_options options;
  AERIE_INIT(options);
  options.add_generation_prompt = 1;
  options.messages = messages.data();
  options.n_messages = static_cast<int32_t>(messages.size());
  std::string filled(4 * text.size() + 4096, '\0');
  const auto render = [&](aerie_error* e) {
    return aerie_chat_template_render(chat_template.get(), &options, filled.data(), filled.size(), &size, e);
  };
  check([&](aerie_error* e) {
    size = 0;
    const int32_t code = render(e);
    if (code != AERIE_E_LIMIT || size <= filled.size()) return code;
    filled.resize(size);
    return render(e);
  });
  filled.resize(size);
  return encode_template(tokenizer, filled);
}

std::vector<int32_t> read_prompt(const RunOptions& o, aerie_model* model, aerie_tokenizer* tokenizer) {
  std::vector<int32_t> prompt;
  if (!o.tokens.empty()) parse_tokens(o.tokens, &prompt);  // checked
  else {
    if (!tokenizer) throw Failure("the model has no tokenizer; give --tokens");
    const std::string text = o.prompt_file.empty() ? o.prompt : read_text(o.prompt_file);
    prompt = o.chat ? chat_prompt(o, text, model, tokenizer) : encode(tokenizer, text, o.special);
  }
  if (prompt.empty()) throw Failure("the prompt is empty, and the tokenizer puts no token of its own in front: give --prompt, --prompt-file or --tokens");
  aerie_model_info info;
  AERIE_INIT(info);
  check([&](aerie_error* e) { return aerie_model_info_get(model, &info, e); });
  if (prompt.size() > static_cast<size_t>(info.max_context))
    throw Failure("the prompt has " + std::to_string(prompt.size()) + " tokens, the model's context is " + std::to_string(info.max_context));
  return prompt;
}

// The text in turn with and without its drafters, and how fast.
struct Comparison {
  std::vector<double> with, without, ratios;  // tokens per second; a value each time
  bool same = true, cancelled = false;
  static double median(std::vector<double> v) {
    std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
    return v[v.size() / 2];
  }
};

// `first` was written with drafters. A short text ends before a clock has said much, and is repeated.
template <class Again>  // Again(with drafters?): Generated
Comparison compare(const Generated& first, bool must_be_same, Again&& again) {
  constexpr double kSeconds = 2;
  constexpr size_t kMostTimes = 25;
  Comparison c;
  Generated with = first;
  for (double seconds = 0;;) {
    const Generated without = again(false);
    c.cancelled = with.cancelled || without.cancelled;
    if (c.cancelled) return c;
    c.same = c.same && with.tokens == without.tokens;
    if (!c.same && must_be_same) throw Failure("the text with and without the drafter differs: please report this");
    c.with.push_back(with.tokens_per_second());
    c.without.push_back(without.tokens_per_second());
    c.ratios.push_back(c.with.back() / c.without.back());
    seconds += with.seconds + without.seconds;
    if (seconds >= kSeconds || c.ratios.size() >= kMostTimes) return c;
    with = again(true);
  }
}

const char* finish_text(const Generated& g) {
  switch (g.finish) {
    case AERIE_FINISH_EOS: return "eos";
    case AERIE_FINISH_STOP_TOKEN: return "stop token";
    case AERIE_FINISH_STOP_STRING: return "stop string";
    case AERIE_FINISH_CONTEXT: return "context";
    case AERIE_FINISH_CONSTRAINT: return "constraint";
    default: return g.cancelled ? "cancelled" : "max tokens";
  }
}

void print_json(const RunOptions& o, const Generated& g, const Comparison& c, const std::string& text) {
  const auto ms = [](uint64_t ns) { return static_cast<double>(ns) * 1e-6; };
  const aerie_statistics& s = g.statistics;
  nlohmann::ordered_json j;
  j["text"] = text;
  j["tokens"] = g.tokens;
  j["finish"] = finish_text(g);
  j["tau"] = g.tau();
  j["cycles"] = s.cycles;
  j["proposed"] = s.proposed;
  j["accepted"] = s.accepted;
  j["tokens_per_second"] = c.with.empty() ? g.tokens_per_second() : Comparison::median(c.with);
  j["prefill_ms"] = ms(s.prefill_ns);
  j["draft_ms"] = ms(s.draft_ns);
  j["verify_ms"] = ms(s.verify_ns);
  j["other_ms"] = ms(s.other_ns);
  j["verified"] = s.verified;
  j["foreseen"] = {{"verified", s.foreseen_verified}, {"accepted", s.foreseen_accepted}};
  j["prefill"] = o.model.prefill;
  j["drafter_failures"] = s.drafter_failures;
  j["quarantined"] = s.quarantined != 0;
  j["repeated_4grams"] = repeated_4grams(g.tokens);
  j["choice"] = choice_json(s, o.drafters);
  if (!c.without.empty()) {
    j["plain_tokens_per_second"] = Comparison::median(c.without);
    j["compared"] = c.ratios.size();
  }
  std::printf("%s\n", j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

void print_summary(const RunOptions& o, const Generated& g, const Comparison& c, const char* runtime) {
  const aerie_statistics& s = g.statistics;
  std::fprintf(stderr, "\n%zu token%s, %.0f tokens/s", g.tokens.size(), g.tokens.size() == 1 ? "" : "s",
               c.with.empty() ? g.tokens_per_second() : Comparison::median(c.with));
  const auto count = [](uint64_t n) { return static_cast<unsigned long long>(n); };
  if (!o.drafters.empty() || s.verified > 0)
    std::fprintf(stderr, "%s, tau %s (%llu cycle%s, %llu of %llu verified drafts accepted", o.drafters.empty() ? "" : " with drafter", g.tau_text().c_str(),
                 count(s.cycles), s.cycles == 1 ? "" : "s", count(s.accepted), count(s.verified));
  if (s.foreseen_verified > 0) std::fprintf(stderr, ", %llu of %llu the grammar's", count(s.foreseen_accepted), count(s.foreseen_verified));
  if (!o.drafters.empty() || s.verified > 0) std::fprintf(stderr, ")");
  std::fprintf(stderr, "  [%s]\n", runtime);
  if (!o.drafters.empty()) std::fprintf(stderr, "%s\n", cycles_text(s, o.drafters).c_str());
  if (c.ratios.empty()) return;
  const std::string times = c.ratios.size() > 1 ? " (medians of " + std::to_string(c.ratios.size()) + " times in turn)" : "";
  const char* const what = s.plain_cycles == s.cycles ? "the drafter was not asked (plain decode is as fast here):" : "drafting gives";
  std::fprintf(stderr, "%.0f tokens/s without: %s %.2f x the speed%s, %s\n", Comparison::median(c.without), what,
               Comparison::median(c.ratios), times.c_str(),
               c.same ? "the same text token for token" : "sampled rule: another draw of the same law");
}

int run_command(const RunOptions& o) {
  const Runtime runtime = open_runtime(o.model);
  const Model model = open_model(runtime.get(), o.model);
  const Tokenizer tokenizer = open_tokenizer(model.get(), o.model.model);
  std::vector<Drafter> owners;
  std::vector<aerie_drafter_handle*> drafters;
  for (const std::string& d : o.drafters) drafters.push_back(owners.emplace_back(open_drafter(model.get(), d)).get());
  attach_profile(o.profile, runtime.get(), model.get(), o.model, drafters);
  const Grammar grammar = open_grammar(o, model.get(), tokenizer.get());
  const std::vector<int32_t> prompt = read_prompt(o, model.get(), tokenizer.get());
  std::ofstream trace;
  if (!o.trace.empty()) {
    std::vector<std::string> inputs = o.drafters;
    inputs.insert(inputs.end(), o.model.plugins.begin(), o.model.plugins.end());
    inputs.insert(inputs.end(), {o.model.model, o.prompt_file, o.profile, o.grammar, o.schema});
    check_not_read(o.trace, inputs);
    trace.open(path_of(o.trace));
    if (!trace) throw Failure(o.trace + ": cannot be written: " + std::strerror(errno));
  }
  if (o.compare) {  // neither side pays for what happens once: memory touched for the first time
    const Session warm = make_session(o, model.get(), drafters, tokenizer.get(), grammar.get());
    generate(warm.get(), prompt, std::min(o.max_tokens, 64));
  }
  const Session session = make_session(o, model.get(), drafters, tokenizer.get(), grammar.get());
  std::optional<StopOnInterrupt> interruptible(session.get());  // from the first letter on
  Printer printer(tokenizer.get(), o.json, o.stops);
  if (!o.json && o.tokens.empty()) printer.prompt(prompt);
  int32_t stop_bytes = 0;
  const auto on_tokens = [&](const aerie_step_result& r, double seconds) {
    stop_bytes = r.stop_bytes;
    nlohmann::json line{{"seconds", seconds}, {"tokens", nlohmann::json::array()}, {"drafted", nlohmann::json::array()}};
    for (int32_t i = 0; i < r.n_tokens; ++i) {
      printer.put(r.tokens[i].id, r.tokens[i].drafted != 0);
      line["tokens"].push_back(r.tokens[i].id);
      line["drafted"].push_back(r.tokens[i].drafted != 0);
    }
    if (trace.is_open()) trace << line.dump() << "\n";
  };
  const Generated g = generate(session.get(), prompt, o.max_tokens, on_tokens);
  printer.finish(g.finish, stop_bytes);
  if (trace.is_open() && !trace.flush()) throw Failure(o.trace + ": cannot be written: " + std::strerror(errno));
  interruptible.reset();
  Comparison c;
  if (o.compare && !g.cancelled)
    c = compare(g, o.verify == "exact", [&](bool with) {
      const Session again = make_session(o, model.get(), with ? drafters : std::vector<aerie_drafter_handle*>{}, tokenizer.get(), grammar.get(), !with);
      const StopOnInterrupt stop(again.get());
      return generate(again.get(), prompt, o.max_tokens);
    });
  if (o.json) print_json(o, g, c, printer.text());
  else print_summary(o, g, c, aerie_runtime_description(runtime.get()));
  return g.cancelled || c.cancelled ? kInterrupted : 0;
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
  c->add_flag("--special", o->special, "markers in the prompt, such as <|im_start|>, are those tokens (chat templates)");
  auto* chat = c->add_flag("--chat", o->chat, "the prompt is a user's message, filled into the model's chat template")->excludes("--special");
  c->add_option("--system", o->system, "with --chat: the system message in front of it")->needs(chat);
  auto* file = c->add_option("--prompt-file", o->prompt_file, "file with UTF-8 text; -: standard input")->excludes(text);
  c->add_option("--tokens", o->tokens, "token ids, comma separated")->excludes(text)->excludes(file)->excludes(chat)->check(tokens_error);
  c->add_option("--max-tokens", o->max_tokens, "most tokens to generate")->capture_default_str()->check(CLI::Range(1, INT_MAX));
  c->add_option("--stop", o->stops, "text that ends the generation, and is not printed; may be repeated");
  auto* grammar = c->add_option("--grammar", o->grammar, "file with a grammar (GBNF) that the text is to follow");
  auto* schema = c->add_option("--json-schema", o->schema, "file with a JSON Schema, or itself ('{}': any JSON), that the text is to follow");
  schema->excludes(grammar);
  c->add_option("--json-layout", o->layout, "white space of that JSON: as the model likes, one line, or none; the less choice, the faster")
      ->needs(schema)
      ->capture_default_str()
      ->check(CLI::IsMember({"free", "one-line", "compact"}));
  c->add_flag("--ignore-eos", o->ignore_eos, "go on after the model's end of text");
  c->add_flag("--json", o->json, "one JSON object");
  c->add_option("--profile", o->profile, "costs of passes, by aerie profile (cast, auto); default: those in the cache folder, if there are any; none: measure");
  c->add_option("--trace", o->trace, "JSON lines, one a step");
  c->add_flag("--compare", o->compare, "run plain decode too, without drafter and foresight, a short text several times in turn, and check that the tokens are equal");
  c->add_flag("--no-foresight", o->no_foresight, "leave what a grammar forces to the drafter, to measure what foresight brings");
  c->callback([o, run] {
    o->tree.check({o->tree.tree});
    if (o->compare && o->drafters.empty() && o->grammar.empty() && o->schema.empty())
      throw CLI::ValidationError("--compare", "is with and without a drafter: give --drafter");
    if (o->prompt_file == "-" && (o->grammar == "-" || o->schema == "-"))
      throw CLI::ValidationError(o->grammar == "-" ? "--grammar" : "--json-schema", "and --prompt-file cannot both be standard input");
    if (o->drafters.size() > 1 && o->tree.tree != "default" && o->tree.tree != "auto")
      throw CLI::ValidationError("--drafter", "only --tree auto uses more than one");
    *run = [o] { return run_command(*o); };
  });
}

}  // namespace cli

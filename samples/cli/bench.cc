#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>

#include "common.h"

namespace cli {

namespace {

struct BenchOptions {
  ModelOptions model;
  SamplingOptions sampling;
  TreeOptions tree;
  std::vector<std::string> drafters, trees, noises{"shared"};
  std::vector<int> batches{1};
  std::string prompts, profile;
  int max_tokens = 64, repeats = 3, limit = 8;
  bool json = false, together = false, special = false;
};

const char* const kPrompts[] = {"It was a bright morning, and the old man", "\"I do not believe you,\" said the girl,",
                                "def read_lines(path):\n    ", "class Parser:\n    def __init__(self, text):\n        ",
                                "The ship had been three weeks at sea when", "import os\nimport sys\n\n"};

std::vector<std::string> read_prompts(const std::string& path, int limit) {
  std::vector<std::string> out;
  if (path.empty()) return {std::begin(kPrompts), std::end(kPrompts)};
  std::istringstream in(read_text(path));
  for (std::string line; std::getline(in, line) && static_cast<int>(out.size()) < limit;) {
    const auto j = nlohmann::json::parse(line, nullptr, false);
    if (!j.is_object()) throw Failure(path + ": line " + std::to_string(out.size() + 1) + " is not JSON");
    if (j.contains("prompt") && j["prompt"].is_string()) out.push_back(j["prompt"]);
    else if (j.contains("turns") && j["turns"].is_array() && !j["turns"].empty() && j["turns"][0].is_string()) out.push_back(j["turns"][0]);
    else if (j.contains("text") && j["text"].is_string()) out.push_back(j["text"]);
    else throw Failure(path + ": line " + std::to_string(out.size() + 1) + " has none of prompt, turns, text");
    if (out.back().empty()) throw Failure(path + ": line " + std::to_string(out.size()) + ": the prompt is empty");
  }
  if (out.empty()) throw Failure(path + ": no prompts");
  return out;
}

void add(const aerie_statistics& s, aerie_statistics* sum) {
  sum->cycles += s.cycles;
  sum->full_cycles += s.full_cycles;
  sum->full_emitted += s.full_emitted;
  sum->proposed += s.proposed;
  sum->verified += s.verified;
  sum->accepted += s.accepted;
  sum->draft_passes += s.draft_passes;
  sum->plain_cycles += s.plain_cycles;
  sum->foreseen_verified += s.foreseen_verified;
  sum->foreseen_accepted += s.foreseen_accepted;
  for (int i = 0; i < 8; ++i) sum->chosen_cycles[i] += s.chosen_cycles[i];
  sum->draft_ns += s.draft_ns;
  sum->verify_ns += s.verify_ns;
  sum->other_ns += s.other_ns;
  for (int d = 0; d < 16; ++d) {
    sum->tried[d] += s.tried[d];
    sum->taken[d] += s.taken[d];
  }
}

// All columns of a row, the times as milliseconds a cycle; acceptance[d]: share of walks that went on from depth d.
nlohmann::ordered_json statistics_json(const aerie_statistics& s) {
  const auto a_cycle = [&](uint64_t n) { return s.cycles ? static_cast<double>(n) / static_cast<double>(s.cycles) : 0.0; };
  nlohmann::ordered_json j;
  j["cycles"] = s.cycles;
  j["draft_ms"] = a_cycle(s.draft_ns) * 1e-6;
  j["verify_ms"] = a_cycle(s.verify_ns) * 1e-6;
  j["other_ms"] = a_cycle(s.other_ns) * 1e-6;
  j["draft_passes"] = a_cycle(s.draft_passes);
  j["verified"] = a_cycle(s.verified);
  j["accepted"] = a_cycle(s.accepted);
  j["acceptance"] = nlohmann::json::array();
  j["tried"] = nlohmann::json::array();
  for (int d = 0; d < 16 && s.tried[d] > 0; ++d) {
    j["acceptance"].push_back(static_cast<double>(s.taken[d]) / static_cast<double>(s.tried[d]));
    j["tried"].push_back(s.tried[d]);
  }
  return j;
}

struct Row {
  std::string drafter, tree, noise;
  int batch = 1;
  std::vector<aerie_drafter_handle*> handles;  // several: auto chooses between them
  std::vector<double> speeds;  // one a repeat, over all prompts
  aerie_statistics sum = {};
  double repeats = 0;
  double median() const {
    auto v = speeds;
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
  }
};

std::vector<std::string> trees(const BenchOptions& o) {
  return o.trees.empty() ? std::vector<std::string>{"chain", "static", "eagle2", "backbone", "cast", "auto"} : o.trees;
}

// Each tree takes the sizes that it has.
SessionSettings settings(const BenchOptions& o, const Row& row) {
  TreeOptions t = o.tree;
  t.tree = !row.handles.empty() ? row.tree : "default";
  SessionSettings s(row.handles, o.sampling, t);
  s.options.draft_noise = row.noise == "none" ? AERIE_NOISE_NONE : AERIE_NOISE_SHARED;
  s.options.verify = row.noise == "sampled" ? AERIE_VERIFY_SAMPLED : AERIE_VERIFY_EXACT;
  s.options.ignore_eos = 1;
  return s;
}

struct Sum {
  double seconds = 0, repeated = 0;
  size_t tokens = 0;
};

void count(aerie_session* session, const std::vector<int32_t>& tokens, Row* row, Sum* sum) {
  aerie_statistics s;
  AERIE_INIT(s);
  check([&](aerie_error* e) { return aerie_session_statistics(session, &s, e); });
  add(s, &row->sum);
  sum->repeated += repeated_4grams(tokens);
}

// row->batch texts at once. Timed while all of them are at it: from where the last one has its first token to where the first
// one has `max_tokens`.
void run_batch(aerie_model* model, const BenchOptions& o, const std::vector<const std::vector<int32_t>*>& prompts, Row* row, Sum* sum) {
  using Clock = std::chrono::steady_clock;
  aerie_batch* handle = nullptr;
  check([&](aerie_error* e) { return aerie_batch_create(model, nullptr, &handle, e); });
  const Batch batch(handle);
  std::vector<Session> sessions;
  std::vector<std::vector<int32_t>> texts(prompts.size());
  for (size_t i = 0; i < prompts.size(); ++i) {
    SessionSettings s = settings(o, *row);
    s.sampling.stream = static_cast<uint32_t>(i);
    sessions.push_back(create_session(model, s.options));
    aerie_session* const session = sessions.back().get();
    check([&](aerie_error* e) { return aerie_session_append(session, prompts[i]->data(), prompts[i]->size(), e); });
    check([&](aerie_error* e) { return aerie_batch_add(handle, session, e); });
  }
  const auto limit = static_cast<size_t>(o.max_tokens);
  // One step; false: every text has `enough` tokens or has ended.
  const auto step = [&](size_t enough) {
    bool more = false;
    check([&](aerie_error* e) { return aerie_batch_step(handle, nullptr, nullptr, e); });
    for (size_t i = 0; i < sessions.size(); ++i) {
      aerie_step_result r;
      AERIE_INIT(r);
      check([&](aerie_error* e) { return aerie_session_result(sessions[i].get(), &r, e); });
      for (int32_t k = 0; k < r.n_tokens; ++k) texts[i].push_back(r.tokens[k].id);
      if (texts[i].size() < enough && r.state != AERIE_STEP_DONE) more = true;
    }
    return more;
  };
  const auto ended = [&] { return std::any_of(texts.begin(), texts.end(), [&](const auto& t) { return t.size() >= limit; }); };
  const auto all = [&] {
    size_t n = 0;
    for (const auto& t : texts) n += t.size();
    return n;
  };
  while (step(1)) {
  }
  const size_t before = all();
  const auto start = Clock::now();
  while (step(limit) && !ended()) {
  }
  sum->seconds += std::chrono::duration<double>(Clock::now() - start).count();
  sum->tokens += all() - before;
  for (size_t i = 0; i < sessions.size(); ++i) count(sessions[i].get(), texts[i], row, sum);
}

// The sampled rule needs a tree of fixed shape and a drafter that gives distributions. What was asked for and cannot be is said.
bool possible(aerie_model* model, const BenchOptions& o, const Row& row) {
  if (row.noise != "sampled") return true;
  const SessionSettings s = settings(o, row);
  aerie_session* session = nullptr;
  aerie_error e;
  AERIE_INIT(e);
  const Session owner(aerie_session_create(model, &s.options, &session, &e) == AERIE_OK ? session : nullptr);
  const bool wanted = row.tree == "chain" || !o.trees.empty();  // chain is there for every drafter that could
  if (!owner && wanted && row.batch == o.batches[0])
    std::fprintf(stderr, "aerie: note: no row of %s, tree %s, noise sampled: %s\n", row.drafter.c_str(), row.tree.c_str(), e.message);
  return owner != nullptr;
}

// Of keys and values for `most` sessions: a token is a byte at least; besides, each has 128 positions for its trees.
int batch_positions(const BenchOptions& o, int most, const std::vector<std::string>& texts) {
  size_t longest = 0;
  for (const std::string& t : texts) longest = std::max(longest, t.size());
  const uint64_t positions = static_cast<uint64_t>(most) * (uint64_t{longest} + static_cast<uint64_t>(o.max_tokens) + 384);
  if (positions > INT_MAX)
    throw Failure("--batch " + std::to_string(most) + ": prompts of up to " + std::to_string(longest) + " bytes and --max-tokens " +
                  std::to_string(o.max_tokens) + " take keys and values of " + std::to_string(positions) + " tokens, the most is " +
                  std::to_string(INT_MAX));
  return std::max(4096, static_cast<int>(positions));
}

int bench(const BenchOptions& o) {
  const Runtime runtime = open_runtime(o.model);
  const std::vector<std::string> texts = read_prompts(o.prompts, o.limit);
  const int most = *std::max_element(o.batches.begin(), o.batches.end());
  ModelOptions m = o.model;
  if (most > 1 && m.kv_positions == 0) m.kv_positions = batch_positions(o, most, texts);
  const Model model = open_model(runtime.get(), m);
  const Tokenizer tokenizer = open_tokenizer(model.get(), o.model.model);
  if (!tokenizer) throw Failure("bench needs a model with a tokenizer");
  aerie_model_info info;
  AERIE_INIT(info);
  check([&](aerie_error* e) { return aerie_model_info_get(model.get(), &info, e); });
  std::vector<std::vector<int32_t>> prompts;
  for (const std::string& p : texts) {
    prompts.push_back(encode(tokenizer.get(), p, o.special));
    const auto room = static_cast<size_t>(std::max(1, info.max_context - o.max_tokens));
    if (prompts.back().size() > room) prompts.back().resize(room);
  }
  std::vector<Drafter> handles;
  std::vector<Row> rows;
  for (const int n : o.batches) rows.push_back({"none", "-", "-", n, {}, {}, {}, 0});
  for (const std::string& d : o.drafters) {
    handles.push_back(open_drafter(model.get(), d, std::max(8, most)));
    for (const std::string& t : trees(o))
      for (const std::string& n : o.noises)
        for (const int b : o.batches)
          if (const Row row{d, t, n, b, {handles.back().get()}, {}, {}, 0}; possible(model.get(), o, row)) rows.push_back(row);
  }
  std::vector<aerie_drafter_handle*> opened;
  for (const Drafter& d : handles) opened.push_back(d.get());
  if (o.together && opened.size() > 1)
    for (const std::string& n : o.noises)
      for (const int b : o.batches) rows.push_back({"together", "auto", n, b, opened, {}, {}, 0});
  attach_profile(o.profile, runtime.get(), model.get(), o.model, opened);
  for (int repeat = 0; repeat < o.repeats; ++repeat)
    for (Row& row : rows) {  // interleaved: every row sees the same weather
      Sum sum;
      for (size_t at = 0; at < prompts.size(); at += static_cast<size_t>(row.batch)) {
        if (row.batch > 1) {
          std::vector<const std::vector<int32_t>*> some;
          for (size_t k = 0; k < static_cast<size_t>(row.batch); ++k) some.push_back(&prompts[(at + k) % prompts.size()]);
          run_batch(model.get(), o, some, &row, &sum);
          continue;
        }
        const Session owner = create_session(model.get(), settings(o, row).options);
        aerie_session* const session = owner.get();
        const Generated g = generate(session, prompts[at], o.max_tokens);
        sum.seconds += g.seconds;
        sum.tokens += g.tokens.size();
        count(session, g.tokens, &row, &sum);
      }
      const size_t runs = (prompts.size() + static_cast<size_t>(row.batch) - 1) / static_cast<size_t>(row.batch) * static_cast<size_t>(row.batch);
      row.speeds.push_back(static_cast<double>(sum.tokens) / sum.seconds);
      row.repeats = sum.repeated / static_cast<double>(runs);
    }
  nlohmann::ordered_json out;
  out["device"] = aerie_runtime_description(runtime.get());
  out["temperature"] = o.sampling.temperature;
  if (!o.json) {
    std::printf("%s, temperature %g, %zu prompts x %d tokens, median of %d interleaved\n", aerie_runtime_description(runtime.get()),
                o.sampling.temperature, prompts.size(), o.max_tokens, o.repeats);
    std::printf("%-32s %-7s %-7s %5s %10s %18s %7s %6s %9s\n", "drafter", "tree", "noise", "batch", "tokens/s", "(min..max)", "x plain", "tau", "repeated");
  }
  for (const Row& r : rows) {
    const auto [low, high] = std::minmax_element(r.speeds.begin(), r.speeds.end());
    const double tau = r.sum.full_cycles ? static_cast<double>(r.sum.full_emitted) / static_cast<double>(r.sum.full_cycles) : 0;
    const Row& plain = *std::find_if(rows.begin(), rows.end(), [&](const Row& other) { return other.batch == r.batch; });  // they come first
    const double ratio = r.median() / plain.median();
    if (o.json) {
      nlohmann::ordered_json row({{"drafter", r.drafter}, {"tree", r.tree}, {"draft_noise", r.noise}, {"batch", r.batch}, {"tokens_per_second", r.median()},
                             {"min", *low}, {"max", *high}, {"speeds", r.speeds}, {"speedup", ratio}, {"tau", tau}, {"repeated_4grams", r.repeats}});
      row.update(statistics_json(r.sum));
      if (r.tree == "auto" || r.tree == "default")
        row["choice"] = choice_json(r.sum, r.handles.size() > 1 ? o.drafters : std::vector<std::string>{r.drafter});
      out["rows"].push_back(row);
    } else {
      std::printf("%-32s %-7s %-7s %5d %10.0f %8.0f..%-8.0f %7.2f %6.2f %8.1f%%\n", base_name(r.drafter).c_str(),
                  r.tree.c_str(), r.noise.c_str(), r.batch, r.median(), *low, *high, ratio, tau, 100 * r.repeats);
      if (r.handles.size() > 1) std::printf("  %s\n", cycles_text(r.sum, o.drafters).c_str());
    }
  }
  if (o.json) std::printf("%s\n", out.dump(2).c_str());
  return 0;
}

}  // namespace

void add_bench(CLI::App& app, std::function<int()>* run) {
  auto o = std::make_shared<BenchOptions>();
  CLI::App* c = app.add_subcommand("bench", "measure drafters and trees against plain decode");
  o->model.add_to(*c);
  o->sampling.add_to(*c);
  c->add_option("--drafter", o->drafters, "package or plugin id; may be repeated");
  c->add_option("--tree", o->trees, "chain, static, eagle2, backbone, cast, auto; may be repeated")->check(tree_error);
  o->tree.add_sizes_to(*c);
  c->footer("Each tree takes the sizes (--tree-nodes, --tree-depth, --tree-top-k) that it has; one that no tree has is refused.");
  c->add_option("--draft-noise", o->noises, "shared, none, or sampled: the papers' rule, chain and static only; may be repeated")->check(CLI::IsMember({"shared", "none", "sampled"}));
  c->add_option("--profile", o->profile, "costs of passes, by aerie profile (cast, auto); default: those in the cache folder, if there are any; none: measure");
  c->add_option("--batch", o->batches, "sessions stepped together; tokens/s is that of all of them; may be repeated")->check(CLI::Range(1, 64));
  auto* prompts = c->add_option("--prompts", o->prompts, "JSON lines with prompt, turns or text");
  c->add_flag("--special", o->special, "markers in the prompts, such as <|im_start|>, are those tokens (chat templates)")->needs(prompts);
  c->add_option("--limit", o->limit, "prompts read from the file")->capture_default_str()->check(CLI::Range(1, INT_MAX))->needs(prompts);
  c->add_option("--max-tokens", o->max_tokens, "tokens generated after each prompt")->capture_default_str()->check(CLI::Range(1, 1 << 20));
  c->add_option("--repeats", o->repeats, "rounds over all prompts; their median is printed")->capture_default_str()->check(CLI::Range(1, INT_MAX));
  c->add_flag("--together", o->together, "one more row: auto, which chooses between all drafters for every cycle");
  c->add_flag("--json", o->json, "one JSON object");
  c->callback([o, run] {
    o->tree.check(trees(*o));
    *run = [o] { return bench(*o); };
  });
}

}  // namespace cli

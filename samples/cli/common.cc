#include "common.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <set>

namespace cli {

namespace {
struct NamedTree {
  const char* name;
  int32_t policy;
  bool nodes = false, depth = false, top_k = false;  // sizes that it has
};
constexpr NamedTree kTrees[] = {{"default", AERIE_TREE_DEFAULT},
                           {"chain", AERIE_TREE_CHAIN, true},
                           {"static", AERIE_TREE_STATIC},
                           {"eagle2", AERIE_TREE_EAGLE2, true, true, true},
                           {"backbone", AERIE_TREE_BACKBONE, false, true, true},
                           {"cast", AERIE_TREE_CAST, true, true, true},
                           {"auto", AERIE_TREE_AUTO}};
const NamedTree* find_tree(const std::string& name) {
  const auto found = std::find_if(std::begin(kTrees), std::end(kTrees), [&](const NamedTree& t) { return name == t.name; });
  return found == std::end(kTrees) ? nullptr : found;
}

std::string not_negative(const std::string& value) { return value.starts_with('-') ? value + " is negative" : std::string{}; }

// What CLI11 reads as the nearest number there is, or compares with no limit.
std::string finite(const std::string& value) {
  return std::isfinite(std::strtod(value.c_str(), nullptr)) ? std::string{} : value + " is not finite";
}

std::string of_64_bits(const std::string& value) {
  errno = 0;
  (void)std::strtoull(value.c_str(), nullptr, 0);
  return errno == ERANGE ? value + " is more than 18446744073709551615" : not_negative(value);
}

// Of "ID=BIAS". Throws what std::sto... do.
aerie_logit_bias logit_bias(const std::string& value) {
  const size_t split = value.find('=');
  size_t id_end = 0, bias_end = 0;
  const std::string id = value.substr(0, split), bias = split == std::string::npos ? "" : value.substr(split + 1);
  const aerie_logit_bias b{std::stoi(id, &id_end), std::stof(bias, &bias_end)};
  if (id_end != id.size() || bias_end != bias.size() || std::isnan(b.bias)) throw std::invalid_argument(value);
  return b;
}

std::string bias_error(const std::string& value) {
  try {
    (void)logit_bias(value);
    return {};
  } catch (const std::out_of_range&) {
    return "'" + value + "' has a number that is too large, or too near to 0";
  } catch (const std::logic_error&) {
    return "'" + value + "' is no ID=BIAS: 42=-1.5, 42=-inf";
  }
}

std::string device_error(const std::string& value) {
  const std::string kind = value.substr(0, value.find(':'));
  return kind == "cpu" || kind == "cuda" ? std::string{} : "there are cpu, cpu:LEVEL, cuda and cuda:N, not " + value;
}
}  // namespace

void flush_output() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) throw Failure(std::string("standard output: cannot write: ") + std::strerror(errno));
}

void print_progress(const char* what, uint64_t done, uint64_t total) {
  const int percent = static_cast<int>(total ? done * 100 / total : 100);
  std::fprintf(stderr, "\r%s %3d %%%s", what, percent, done >= total ? "\r\033[K" : "");
}

int32_t tree_policy(const std::string& name) {
  const NamedTree* tree = find_tree(name);
  return tree ? tree->policy : -1;
}

std::string tree_error(const std::string& name) {
  if (find_tree(name)) return {};
  return "there are chain, static, eagle2, backbone, cast and auto, not " + name;
}

std::string ModelOptions::kv() const {
  return !kv_dtype.empty() ? kv_dtype : device.starts_with("cuda") ? "bf16" : "f32";
}

void ModelOptions::add_to(CLI::App& app) {
  app.add_option("--model", model, "target package")->required();
  app.add_option("--plugin", plugins, "file of a further drafter plugin; may be repeated");
  app.add_option("--threads", threads, "0: one for each physical core")->check(CLI::Range(0, 1024));
  app.add_option("--device", device, "cpu, cpu:LEVEL (cpu:AVX2: one text on all machines), cuda or cuda:N")->capture_default_str()->check(device_error);
  app.add_option("--kv-positions", kv_positions, "room for keys and values, in tokens; 0: 4 x the context, from 4096 to 32768")
      ->check(CLI::Range(0, INT_MAX));
  app.add_option("--kv-dtype", kv_dtype, "f32 (the default), bf16 (that of cuda) or int8")->check(CLI::IsMember({"f32", "bf16", "int8"}));
  app.add_option("--prefill", prefill, "exact, or fast: cuda reads long prompts by cuBLASLt, not bit for bit")
      ->capture_default_str()
      ->check(CLI::IsMember({"exact", "fast"}));
}

void TreeOptions::add_to(CLI::App& app) {
  app.add_option("--tree", tree, "chain, static, eagle2, backbone, cast or auto (the default)")->check(tree_error);
  add_sizes_to(app);
}

void TreeOptions::add_sizes_to(CLI::App& app) {
  app.add_option("--tree-nodes", nodes, "chain: length (5); eagle2, cast: nodes with the root (60, 72)")->check(not_negative);
  app.add_option("--tree-depth", depth, "eagle2: levels after the first (5; all of a one-pass drafter), -1 for none; backbone, cast: levels (7, 13)");
  app.add_option("--tree-top-k", top_k, "eagle2, cast: children a node and nodes expanded a level (10, 12); backbone: nodes a level (10)")->check(not_negative);
}

void TreeOptions::check(const std::vector<std::string>& trees) const {
  const auto check = [&](const char* option, int value, bool NamedTree::*has) {
    if (value == 0 || std::any_of(trees.begin(), trees.end(), [&](const std::string& t) { return find_tree(t)->*has; })) return;
    std::string names;
    for (const NamedTree& t : kTrees)
      if (t.*has) names += (names.empty() ? "" : ", ") + std::string(t.name);
    throw CLI::ValidationError(option, "is a size of " + names + ": name one with --tree");
  };
  check("--tree-nodes", nodes, &NamedTree::nodes);
  check("--tree-depth", depth, &NamedTree::depth);
  check("--tree-top-k", top_k, &NamedTree::top_k);
}

aerie_tree_options TreeOptions::get() const {
  const NamedTree& of = *find_tree(tree);
  aerie_tree_options t;
  AERIE_INIT(t);
  t.policy = of.policy;
  if (of.nodes) t.nodes = nodes;
  if (of.depth) t.depth = depth;
  if (of.top_k) t.top_k = top_k;
  return t;
}

void SamplingOptions::add_to(CLI::App& app) {
  app.add_option("--temperature", temperature, "0: greedy")->capture_default_str()->check(not_negative)->check(finite);
  app.add_option("--top-k", top_k, "0: off")->check(not_negative);
  app.add_option("--top-p", top_p, "1: off")->check(finite)->check(CLI::Range(0.0, 1.0));
  app.add_option("--min-p", min_p, "0: off")->check(finite)->check(CLI::Range(0.0, 1.0));
  app.add_option("--seed", seed, "same seed, same text")->capture_default_str()->check(of_64_bits);
  app.add_option("--stream-id", stream, "noise stream");
  app.add_option("--repetition-penalty", repetition_penalty, "of tokens that prompt or text have: logits above 0 are divided by it, others multiplied; 1: off")->check(finite);
  app.add_option("--presence-penalty", presence_penalty, "taken from logits of tokens that were generated; 0: off")->check(finite);
  app.add_option("--frequency-penalty", frequency_penalty, "the same, as often as they were; 0: off")->check(finite);
  app.add_option("--penalty-window", penalty_window, "penalties look at so many tokens, the newest; 0: all")->check(not_negative);
  app.add_option("--logit-bias", biases, "ID=BIAS is added to the logit of token ID; -inf: never; may be repeated")->check(bias_error);
}

aerie_sampling SamplingOptions::get() const {
  aerie_sampling s;
  AERIE_INIT(s);
  s.temperature = static_cast<float>(temperature);
  s.top_p = static_cast<float>(top_p);
  s.min_p = static_cast<float>(min_p);
  s.top_k = top_k;
  s.seed = seed;
  s.stream = stream;
  s.repetition_penalty = static_cast<float>(repetition_penalty);
  s.presence_penalty = static_cast<float>(presence_penalty);
  s.frequency_penalty = static_cast<float>(frequency_penalty);
  s.penalty_window = penalty_window;
  return s;
}

std::vector<aerie_logit_bias> SamplingOptions::logit_biases() const {
  std::vector<aerie_logit_bias> all;
  for (const std::string& b : biases) all.push_back(logit_bias(b));
  return all;
}

SessionSettings::SessionSettings(const std::vector<aerie_drafter_handle*>& drafters, const SamplingOptions& s, const TreeOptions& t)
    : biases(s.logit_biases()), sampling(s.get()), tree(t.get()) {
  AERIE_INIT(options);
  point();
  if (drafters.empty()) return;
  options.drafter = drafters[0];
  options.more_drafters = drafters.data() + 1;
  options.n_more_drafters = static_cast<int32_t>(drafters.size()) - 1;
}

SessionSettings::SessionSettings(const SessionSettings& other)
    : biases(other.biases), sampling(other.sampling), tree(other.tree), options(other.options) {
  point();
}

void SessionSettings::point() {
  sampling.logit_bias = biases.data();
  sampling.n_logit_bias = static_cast<int32_t>(biases.size());
  options.sampling = &sampling;
  options.tree = &tree;
}

Session create_session(aerie_model* model, const aerie_session_options& options) {
  aerie_session* session = nullptr;
  check([&](aerie_error* e) { return aerie_session_create(model, &options, &session, e); });
  return Session(session);
}

Runtime open_runtime(const ModelOptions& o) {
  aerie_runtime_options r;
  AERIE_INIT(r);
  r.threads = o.threads;
  r.device = o.device.c_str();
  r.log = [](void*, int32_t level, const char* message) {
    if (level <= 1) std::fprintf(stderr, "aerie: %s\n", message);
  };
  aerie_runtime* runtime = nullptr;
  check([&](aerie_error* e) { return aerie_runtime_create(&r, &runtime, e); });
  Runtime out(runtime);
  check([&](aerie_error* e) { return aerie_runtime_load_plugin_directory(runtime, nullptr, e); });
  for (const std::string& p : o.plugins) {
    const std::string path = text_of(std::filesystem::absolute(path_of(p)));
    check([&](aerie_error* e) { return aerie_runtime_load_plugin(runtime, path.c_str(), e); });
  }
  return out;
}

Model open_model(aerie_runtime* runtime, const ModelOptions& o, bool progress) {
  aerie_model_options m;
  AERIE_INIT(m);
  m.kv_dtype = o.kv() == "int8" ? 2 : o.kv() == "bf16" ? 1 : 0;
  m.kv_positions = o.kv_positions;
  m.keep_prefixes = o.keep_prefixes ? 0 : -1;
  m.prefill = o.prefill == "fast" ? AERIE_PREFILL_FAST : AERIE_PREFILL_EXACT;
  if (progress) show_progress(&m, "loading");
  std::error_code none;
  if (std::filesystem::is_directory(path_of(o.model), none))
    throw Failure(o.model + ": is a folder, not a package; aerie convert makes one of a Hugging Face folder");
  aerie_model* model = nullptr;
  check([&](aerie_error* e) { return aerie_model_open(runtime, o.model.c_str(), &m, &model, e); });
  if (progress && m.prefill == AERIE_PREFILL_FAST)
    std::fprintf(stderr, "aerie: note: --prefill fast: long prompts are not read bit for bit; what follows them is decoded as ever\n");
  return Model(model);
}

Drafter open_drafter(aerie_model* model, const std::string& name, int max_sessions) {
  aerie_drafter_options d;
  AERIE_INIT(d);
  d.max_sessions = max_sessions;
  const bool path = name.find_first_of(kSeparators) != std::string::npos || name.find(".aerie") != std::string::npos;
  std::error_code none;
  if (path && !std::filesystem::exists(path_of(name), none)) throw Failure(name + ": cannot open: " + std::strerror(ENOENT));
  aerie_drafter_handle* drafter = nullptr;
  const auto open = [&](aerie_error* e) { return aerie_drafter_open(model, &d, &drafter, e); };
  (path ? d.package : d.plugin) = name.c_str();
  // A file or folder that is called like a plugin is not meant.
  const bool file = !path && std::filesystem::is_regular_file(path_of(name), none);
  if (file && open(nullptr) == AERIE_E_NOT_FOUND) {
    d.plugin = nullptr;
    d.package = name.c_str();
  }
  if (!drafter) check(open);
  return Drafter(drafter);
}

Tokenizer open_tokenizer(aerie_model* model, const std::string& path) {
  const void* data = nullptr;
  size_t size = 0;
  check([&](aerie_error* e) { return aerie_model_blob(model, "tokenizer", &data, &size, e); });
  if (size == 0) return nullptr;
  aerie_tokenizer* t = nullptr;
  try {
    check([&](aerie_error* e) { return aerie_tokenizer_create(data, size, &t, e); });
  } catch (const Failure& e) {
    throw Failure(path + ": " + e.what());
  }
  return Tokenizer(t);
}

namespace {

std::vector<int32_t> encode_as(const aerie_tokenizer* tokenizer, const std::string& text, uint32_t flags) {
  std::vector<int32_t> ids(text.size() + 8);  // a token a byte: enough, but for letters that normalising takes apart
  size_t n = 0;
  const auto into_ids = [&](aerie_error* e) {
    return aerie_tokenizer_encode(tokenizer, text.data(), text.size(), flags, ids.data(), ids.size(), &n, e);
  };
  check([&](aerie_error* e) {
    const int32_t code = into_ids(e);
    if (code != AERIE_E_LIMIT || n <= ids.size()) return code;
    ids.resize(n);
    return into_ids(e);
  });
  ids.resize(n);
  return ids;
}

}  // namespace

std::vector<int32_t> encode(const aerie_tokenizer* tokenizer, const std::string& text, bool special) {
  std::vector<int32_t> ids = encode_as(tokenizer, text, special ? AERIE_ENCODE_SPECIAL : 0);
  if (!special) return ids;
  // A chat template's text begins with the BOS that the tokenizer would put there.
  std::vector<int32_t> without = encode_as(tokenizer, text, AERIE_ENCODE_SPECIAL | AERIE_ENCODE_NO_BOS);
  return !without.empty() && ids.size() > without.size() && ids[0] == without[0] ? without : ids;
}

std::vector<int32_t> encode_template(const aerie_tokenizer* tokenizer, const std::string& text) {
  return encode_as(tokenizer, text, AERIE_ENCODE_SPECIAL | AERIE_ENCODE_NO_BOS);
}

std::string read_text(const std::string& path, size_t most) {
  const auto all = [&](std::istream& in) {
    std::string text;
    for (char c; in.get(c); text += c)
      if (text.size() == most) throw Failure(path + ": is longer than " + std::to_string(most) + " bytes");
    return text;
  };
  if (path == "-") return all(std::cin);
  std::error_code none;
  if (std::filesystem::is_directory(path_of(path), none)) throw Failure(path + ": is a folder, not a file");
  std::ifstream in(path_of(path), std::ios::binary);
  if (!in) throw Failure(path + ": cannot be read: " + std::strerror(errno));
  return all(in);
}

void check_not_read(const std::string& path, const std::vector<std::string>& inputs) {
  std::error_code none;
  for (const std::string& input : inputs)
    if (std::filesystem::equivalent(path_of(path), path_of(input), none)) throw Failure(path + ": is read by this command, and would be lost");
}

void check_output(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code none;
  const fs::path wanted = path_of(path);
  if (fs::is_directory(wanted, none)) throw Failure(path + ": is a folder");
  if (fs::exists(wanted, none) && !fs::is_regular_file(wanted, none)) throw Failure(path + ": is not a regular file");
  // The library too writes a neighbour and renames it.
  const std::string template_end(6, 'X');  // which mkstemp fills in
  std::string neighbour = text_of(wanted.parent_path() / path_of("." + text_of(wanted.filename()) + ".writable-" + template_end));
  const int fd = mkstemp(neighbour.data());
  if (fd < 0) throw Failure(path + ": cannot create: " + std::strerror(errno));
  close(fd);
  unlink(neighbour.c_str());
}

std::string Generated::tau_text() const {
  if (statistics.full_cycles == 0) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", tau());
  return text;
}

Generated generate(aerie_session* session, const std::vector<int32_t>& prompt, int max_tokens, const OnTokens& on_tokens) {
  using Clock = std::chrono::steady_clock;
  Generated g;
  check([&](aerie_error* e) { return aerie_session_append(session, prompt.data(), prompt.size(), e); });
  const auto start = Clock::now();
  Clock::duration stepping{};
  for (;;) {
    aerie_step_options o;
    AERIE_INIT(o);
    o.max_tokens = max_tokens - static_cast<int>(g.tokens.size());
    if (o.max_tokens <= 0) break;
    aerie_step_result r;
    AERIE_INIT(r);
    const auto before = Clock::now();
    check([&](aerie_error* e) {
      const int32_t code = aerie_session_step(session, &o, &r, e);
      g.cancelled = code == AERIE_E_CANCELLED;
      return g.cancelled ? AERIE_OK : code;
    });
    stepping += Clock::now() - before;  // what is done with the tokens is not decoding
    if (g.cancelled) break;
    for (int32_t i = 0; i < r.n_tokens; ++i) {
      g.tokens.push_back(r.tokens[i].id);
      g.drafted.push_back(r.tokens[i].drafted);
    }
    if (on_tokens) on_tokens(r, std::chrono::duration<double>(Clock::now() - start).count());
    g.finish = r.finish;
    if (r.state == AERIE_STEP_DONE) break;
  }
  AERIE_INIT(g.statistics);
  check([&](aerie_error* e) { return aerie_session_statistics(session, &g.statistics, e); });
  g.seconds = std::chrono::duration<double>(stepping).count() - static_cast<double>(g.statistics.prefill_ns) * 1e-9;
  return g;
}

nlohmann::ordered_json choice_json(const aerie_statistics& s, const std::vector<std::string>& drafters) {
  nlohmann::ordered_json j;
  j["plain_cycles"] = s.plain_cycles;
  j["drafters"] = nlohmann::json::array();
  for (size_t i = 0; i < std::min<size_t>(drafters.size(), 8); ++i)
    j["drafters"].push_back({{"drafter", drafters[i]}, {"cycles", s.chosen_cycles[i]}});
  j["last"] = {{"drafter", s.chosen_drafter}, {"nodes", s.chosen_nodes}, {"depth", s.chosen_depth}};
  return j;
}

std::string cycles_text(const aerie_statistics& s, const std::vector<std::string>& drafters) {
  std::string text = "cycles: " + std::to_string(s.plain_cycles) + " plain";
  for (size_t i = 0; i < std::min<size_t>(drafters.size(), 8); ++i)
    text += ", " + std::to_string(s.chosen_cycles[i]) + " " + base_name(drafters[i]);
  return text;
}

double repeated_4grams(const std::vector<int32_t>& t) {
  if (t.size() < 4) return 0;
  std::set<std::vector<int32_t>> seen;
  size_t repeats = 0;
  for (size_t i = 0; i + 4 <= t.size(); ++i) repeats += !seen.emplace(t.begin() + static_cast<long>(i), t.begin() + static_cast<long>(i) + 4).second;
  return static_cast<double>(repeats) / static_cast<double>(t.size() - 3);
}

}  // namespace cli

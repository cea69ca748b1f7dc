// What the commands share: handles that release themselves, options, one generation.
#pragma once

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "aerie/aerie.h"
#include "aerie/profile.h"
#include "aerie/text.h"
#include "signals.h"

namespace cli {

// Between the folders of a path.
#ifdef _WIN32
constexpr const char* kSeparators = "/\\";
#else
constexpr const char* kSeparators = "/";
#endif

// A failure of the library or of a file; main prints it as one line and exits with 1.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// check([&](aerie_error* e) { return aerie_...(..., e); })
template <class F>
void check(F&& f) {
  aerie_error e;
  AERIE_INIT(e);
  if (f(&e) != AERIE_OK) throw Failure(e.message[0] ? e.message : aerie_code_name(e.code));
}

// Of a path in UTF-8: the C++ library would take its bytes for characters on Windows.
inline std::filesystem::path path_of(const std::string& utf8) { return std::u8string(utf8.begin(), utf8.end()); }
inline std::string text_of(const std::filesystem::path& path) {
  const std::u8string utf8 = path.u8string();
  return {utf8.begin(), utf8.end()};
}

// The file's own name.
inline std::string base_name(const std::string& path) { return path.substr(path.find_last_of(kSeparators) + 1); }

// What has been printed so far is out; else a Failure: the disk is full, the reader has gone.
void flush_output();

void print_progress(const char* what, uint64_t done, uint64_t total);

// On a terminal, while a call of the library lasts: what it does and how far it is.
template <class LibraryOptions>
void show_progress(LibraryOptions* o, const char* what) {
  if (!isatty(2)) return;
  o->progress = [](void* user, uint64_t done, uint64_t total) -> int32_t {
    print_progress(static_cast<const char*>(user), done, total);
    return 1;
  };
  o->progress_user = const_cast<char*>(what);
}

template <class T, void (*Release)(T*)>
struct Releaser {
  void operator()(T* p) const { Release(p); }
};
using Runtime = std::unique_ptr<aerie_runtime, Releaser<aerie_runtime, aerie_runtime_release>>;
using Model = std::unique_ptr<aerie_model, Releaser<aerie_model, aerie_model_release>>;
using Drafter = std::unique_ptr<aerie_drafter_handle, Releaser<aerie_drafter_handle, aerie_drafter_release>>;
using Session = std::unique_ptr<aerie_session, Releaser<aerie_session, aerie_session_release>>;
using Profile = std::unique_ptr<aerie_profile, Releaser<aerie_profile, aerie_profile_release>>;
using Batch = std::unique_ptr<aerie_batch, Releaser<aerie_batch, aerie_batch_release>>;
using Tokenizer = std::unique_ptr<aerie_tokenizer, Releaser<aerie_tokenizer, aerie_tokenizer_release>>;
using Grammar = std::unique_ptr<aerie_grammar, Releaser<aerie_grammar, aerie_grammar_release>>;
using ChatTemplate = std::unique_ptr<aerie_chat_template, Releaser<aerie_chat_template, aerie_chat_template_release>>;
using Decoder = std::unique_ptr<aerie_decoder, Releaser<aerie_decoder, aerie_decoder_release>>;

struct ModelOptions {
  std::string model, device = "cpu", kv_dtype, prefill = "exact";
  std::string kv() const;  // f32 unless said otherwise, on a GPU bf16
  std::vector<std::string> plugins;
  int threads = 0;
  int kv_positions = 0;  // 0: what the command needs, or the library's default
  bool keep_prefixes = true;  // no option: what the command needs
  void add_to(CLI::App& app);
};

struct TreeOptions {
  std::string tree = "default";
  int nodes = 0, depth = 0, top_k = 0;
  void add_to(CLI::App& app);
  void add_sizes_to(CLI::App& app);  // all but --tree
  // Throws a usage error where a size is given that none of these trees has.
  void check(const std::vector<std::string>& trees) const;
  aerie_tree_options get() const;  // with the sizes that the tree has
};
int32_t tree_policy(const std::string& name);
// Checks a --tree value; the message names what exists.
std::string tree_error(const std::string& name);

struct SamplingOptions {
  double temperature = 0.7, top_p = 1, min_p = 0;
  int top_k = 0;
  uint64_t seed = 1;
  uint32_t stream = 0;
  double repetition_penalty = 1, presence_penalty = 0, frequency_penalty = 0;
  int penalty_window = 0;
  std::vector<std::string> biases;  // ID=BIAS
  void add_to(CLI::App& app);
  aerie_sampling get() const;  // but for the biases
  std::vector<aerie_logit_bias> logit_biases() const;
};

// aerie_session_options, with what they point at.
struct SessionSettings {
  std::vector<aerie_logit_bias> biases;
  aerie_sampling sampling;
  aerie_tree_options tree;
  aerie_session_options options;
  // `drafters`: none, one, or several that auto chooses between; they must outlive this.
  SessionSettings(const std::vector<aerie_drafter_handle*>& drafters, const SamplingOptions& s, const TreeOptions& t);
  SessionSettings(const SessionSettings& other);
  SessionSettings& operator=(const SessionSettings&) = delete;

 private:
  void point();
};
Session create_session(aerie_model* model, const aerie_session_options& options);

Runtime open_runtime(const ModelOptions& o);
Model open_model(aerie_runtime* runtime, const ModelOptions& o, bool progress = true);
// A package path, or a plugin id when there is no such file.
Drafter open_drafter(aerie_model* model, const std::string& name, int max_sessions = 0);
Tokenizer open_tokenizer(aerie_model* model, const std::string& path);  // the package's, at `path`; null: it has none
// special: markers in the text, such as <|im_start|>, are those tokens (chat templates).
std::vector<int32_t> encode(const aerie_tokenizer* tokenizer, const std::string& text, bool special = false);
// What a chat template writes: it has all markers that there shall be, BOS too.
std::vector<int32_t> encode_template(const aerie_tokenizer* tokenizer, const std::string& text);
std::string read_text(const std::string& path, size_t most = SIZE_MAX);  // Failure: it is longer
// Before it is opened for writing: none of the files that are read.
void check_not_read(const std::string& path, const std::vector<std::string>& inputs);
// Before long work: a file can be made there later. What is there stays, and nothing is left behind.
void check_output(const std::string& path);

struct Generated {
  std::vector<int32_t> tokens;
  std::vector<uint8_t> drafted;
  aerie_statistics statistics{};
  double seconds = 0;  // of the steps after the prompt was read
  int32_t finish = 0;
  bool cancelled = false;
  double tau() const {
    return statistics.full_cycles ? static_cast<double>(statistics.full_emitted) / static_cast<double>(statistics.full_cycles) : 0;
  }
  std::string tau_text() const;  // "-" before the first cycle that no limit cut
  double tokens_per_second() const { return seconds > 0 ? static_cast<double>(tokens.size()) / seconds : 0; }
};
using OnTokens = std::function<void(const aerie_step_result&, double seconds)>;
// Appends the prompt and steps until `max_tokens`, the end of the text or a cancel.
Generated generate(aerie_session* session, const std::vector<int32_t>& prompt, int max_tokens, const OnTokens& on_tokens = {});

// Who drafted how many cycles; `drafters` as they were given to the session.
std::string cycles_text(const aerie_statistics& s, const std::vector<std::string>& drafters);
nlohmann::ordered_json choice_json(const aerie_statistics& s, const std::vector<std::string>& drafters);

// Share of 4-grams in `tokens` that occurred before: small models loop, and loops flatter a drafter.
double repeated_4grams(const std::vector<int32_t>& tokens);

void add_convert(CLI::App& app, std::function<int()>* run);
void add_inspect(CLI::App& app, std::function<int()>* run);
void add_run(CLI::App& app, std::function<int()>* run);
void add_bench(CLI::App& app, std::function<int()>* run);
void add_verify(CLI::App& app, std::function<int()>* run);
void add_profile(CLI::App& app, std::function<int()>* run);
void add_plugin(CLI::App& app, std::function<int()>* run);
// Where `aerie profile` keeps the costs of this model on this machine.
std::string default_profile(const aerie_runtime* runtime, const aerie_model* model, const ModelOptions& o);
// Sessions made from now on use the costs in this file; empty: those of default_profile, if they are there; "none".
void attach_profile(const std::string& given, const aerie_runtime* runtime, aerie_model* model, const ModelOptions& o,
                    const std::vector<aerie_drafter_handle*>& drafters);

}  // namespace cli

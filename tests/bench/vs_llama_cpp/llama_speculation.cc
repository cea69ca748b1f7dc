// llama_speculation TARGET.gguf THREADS CONTEXT VOCAB_USED [DRAFT.gguf...]: llama.cpp generating, plainly and with its own
// speculation (common/speculative.h), on command. The loop is that of its examples/speculative-simple; KV cache, flash
// attention, batch sizes and weight repacking are its defaults. Commands on stdin, each answered by a line of JSON:
//   generate METHOD DRAFT N_MAX P_MIN TEMPERATURE SEED MAX_TOKENS ID...
//     METHOD: none, or a name of common_speculative_type; DRAFT: number of the draft model or EAGLE-3 head, or the length of the
//     keys of an n-gram map (0: 3, for its own 12 hardly recurs in short texts); N_MAX: tokens drafted
//     {"tokens", "ms", "timed_tokens", "cycles"}; time and tokens after the first cycle
//   quit
// Tokens are drawn from the first VOCAB_USED ids by its temperature and dist samplers: cheaper than its chain of samplers
// over the whole padded vocabulary.
#include "common.h"
#include "llama.h"
#include "log.h"
#include "protocol.h"
#include "speculative.h"

namespace {

struct Request {
  std::string method;
  size_t draft = 0;
  int n_max = 0;
  float p_min = 0, temperature = 0;
  uint32_t seed = 0;
  size_t max_tokens = 0;
  llama_tokens prompt;
};

struct Loaded {
  llama_model_ptr model;
  llama_context_ptr target;  // an EAGLE-3 head's, which hands out hidden states as well
  llama_context_ptr context;
};

class Engine {
 public:
  Engine(const char* target, int threads, int context, int vocab_used, const std::vector<std::string>& drafts)
      : used_(vocab_used), target_(load(target, threads, context, nullptr)) {
    for (const std::string& path : drafts) drafts_.push_back(load(path.c_str(), threads, context, target_.model.get()));
  }

  std::string generate(const Request& q) {
    llama_context* ctx = target_.context.get();
    llama_context* draft_ctx = nullptr;
    common_params_speculative params;
    params.types = common_speculative_types_from_names({q.method});
    params.draft.n_max = q.n_max;
    params.draft.p_min = q.p_min;
    for (auto* map : {&params.ngram_simple, &params.ngram_map_k, &params.ngram_map_k4v}) {
      map->size_n = static_cast<uint16_t>(q.draft > 0 ? q.draft : 3);
      map->size_m = static_cast<uint16_t>(q.n_max);
    }
    if (q.method.starts_with("draft")) {
      const Loaded& draft = drafts_.at(q.draft);
      if (draft.target) ctx = draft.target.get();
      params.draft.ctx_tgt = ctx;
      params.draft.ctx_dft = draft_ctx = draft.context.get();
    }
    forget(ctx, 0);
    if (draft_ctx) forget(draft_ctx, 0);
    const common_speculative_ptr spec(common_speculative_init(params, 1));
    llama_sampler_ptr sampler(llama_sampler_chain_init(llama_sampler_chain_default_params()));
    if (q.temperature > 0) {
      llama_sampler_chain_add(sampler.get(), llama_sampler_init_temp(q.temperature));
      llama_sampler_chain_add(sampler.get(), llama_sampler_init_dist(q.seed));
    } else {
      llama_sampler_chain_add(sampler.get(), llama_sampler_init_greedy());
    }

    common_batch batch(ctx);
    for (size_t i = 0; i + 1 < q.prompt.size(); ++i) batch.add(q.prompt[i], static_cast<llama_pos>(i), 0, false);
    decode(ctx, batch, spec.get());
    llama_tokens text(q.prompt.begin(), q.prompt.end() - 1), out, draft;
    llama_token last = q.prompt.back();
    common_speculative_begin(spec.get(), 0, text);

    size_t cycles = 0, first = 0;
    auto start = bench::Clock::now();
    while (out.size() < q.max_tokens) {
      const auto past = static_cast<llama_pos>(text.size());
      draft.clear();
      const int room = std::min(q.n_max, static_cast<int>(q.max_tokens - out.size()) - 1);
      if (spec && room > 0) {
        common_speculative_get_draft_params(spec.get(), 0) = {true, room, past, last, &text, &draft};
        common_speculative_draft(spec.get());
        if (draft_ctx) forget(draft_ctx, past);
      }
      batch.clear();
      batch.add(last, past, 0, true);
      for (size_t i = 0; i < draft.size(); ++i) batch.add(draft[i], past + 1 + static_cast<llama_pos>(i), 0, true);
      decode(ctx, batch, spec.get());
      size_t taken = 0;  // of the draft
      for (;;) {
        text.push_back(last);
        last = sample(ctx, sampler.get(), static_cast<int>(taken));
        out.push_back(last);
        if (taken == draft.size() || last != draft[taken]) break;
        ++taken;
      }
      if (spec) common_speculative_accept(spec.get(), 0, static_cast<uint16_t>(taken));
      forget(ctx, static_cast<llama_pos>(text.size()));
      if (draft_ctx) forget(draft_ctx, static_cast<llama_pos>(text.size()));
      if (cycles++ == 0) {
        first = out.size();
        start = bench::Clock::now();
      }
    }
    std::ostringstream json;
    json << "\"ms\": " << bench::ms_since(start) << ", \"timed_tokens\": " << out.size() - first << ", \"cycles\": " << cycles
         << ", \"tokens\": [";
    for (size_t i = 0; i < out.size(); ++i) json << (i ? ", " : "") << out[i];
    return json.str() + "]";
  }

 private:
  static Loaded load(const char* path, int threads, int context, llama_model* target) {
    Loaded l;
    l.model.reset(llama_model_load_from_file(path, llama_model_default_params()));
    if (!l.model) bench::fail(std::string(path) + ": llama.cpp cannot load it");
    llama_context_params p = llama_context_default_params();
    p.n_ctx = static_cast<uint32_t>(context);
    p.n_threads = p.n_threads_batch = threads;
    char architecture[16] = {};
    llama_model_meta_val_str(l.model.get(), "general.architecture", architecture, sizeof architecture);
    if (target && std::string(architecture) == "eagle3") {
      l.target.reset(llama_init_from_model(target, p));
      p.ctx_other = l.target.get();
    }
    l.context.reset(llama_init_from_model(l.model.get(), p));
    if (!l.context) bench::fail("llama.cpp cannot make a context");
    return l;
  }
  static void forget(llama_context* ctx, llama_pos from) { llama_memory_seq_rm(llama_get_memory(ctx), 0, from, -1); }
  static void decode(llama_context* ctx, common_batch& batch, common_speculative* spec) {
    if (batch.size() == 0) return;
    if (llama_process(ctx, LLAMA_PROCESS_TYPE_DECODE, batch.get()) != 0) bench::fail("llama.cpp cannot decode");
    if (!common_speculative_process(spec, batch)) bench::fail("llama.cpp's speculation failed");
  }
  llama_token sample(llama_context* ctx, llama_sampler* sampler, int row) {
    const float* logits = llama_get_logits_ith(ctx, row);
    candidates_.resize(static_cast<size_t>(used_));
    for (llama_token id = 0; id < used_; ++id) candidates_[static_cast<size_t>(id)] = {id, logits[id], 0};
    llama_token_data_array all{candidates_.data(), candidates_.size(), -1, false};
    llama_sampler_apply(sampler, &all);
    return all.data[all.selected].id;
  }

  llama_token used_;
  Loaded target_;
  std::vector<Loaded> drafts_;
  std::vector<llama_token_data> candidates_;
};

void errors_only(ggml_log_level level, const char* text, void*) {
  if (level == GGML_LOG_LEVEL_ERROR) std::fputs(text, stderr);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) bench::fail("usage: llama_speculation TARGET.gguf THREADS CONTEXT VOCAB_USED [DRAFT.gguf...]");
  llama_log_set(errors_only, nullptr);
  common_log_set_verbosity_thold(LOG_LEVEL_ERROR);
  llama_backend_init();
  Engine engine(argv[1], std::atoi(argv[2]), std::atoi(argv[3]), std::atoi(argv[4]), {argv + 5, argv + argc});
  bench::answer(std::string("\"version\": \"" DRIVER_VERSION "\", \"features\": \"") + llama_print_system_info() + "\", \"compiler\": \"" +
                bench::kCompiler + "\"");
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string command;
    Request q;
    words >> command;
    if (command == "quit") break;
    words >> q.method >> q.draft >> q.n_max >> q.p_min >> q.temperature >> q.seed >> q.max_tokens;
    for (llama_token id; words >> id;) q.prompt.push_back(id);
    if (command != "generate" || q.prompt.empty()) bench::fail("what is \"" + line + "\"?");
    bench::answer(engine.generate(q));
  }
}

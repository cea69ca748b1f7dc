// llama_driver MODEL.gguf THREADS CONTEXT: llama.cpp's passes, timed on command (protocol.h). KV cache, flash
// attention, batch sizes and weight repacking are its defaults.
#include <algorithm>

#include "llama.h"
#include "protocol.h"

namespace {

constexpr int kMaxRows = 512;

class Engine {
 public:
  Engine(const char* path, int threads, int context) : context_(context) {
    if (threads < 1 || context < 2) bench::fail("THREADS must be at least 1, CONTEXT 2");
    llama_backend_init();
    model_ = llama_model_load_from_file(path, llama_model_default_params());
    if (!model_) bench::fail(std::string(path) + ": llama.cpp cannot load it");
    llama_context_params p = llama_context_default_params();
    p.n_ctx = static_cast<uint32_t>(context + kMaxRows);
    p.n_threads = p.n_threads_batch = threads;
    // A recurrent state goes no way back: the context's is kept as another sequence's.
    twice_ = llama_model_is_recurrent(model_) || llama_model_is_hybrid(model_);
    if (twice_) p.n_seq_max = 2, p.kv_unified = true;
    ctx_ = llama_init_from_model(model_, p);
    if (!ctx_) bench::fail("llama.cpp cannot make a context");
    vocab_ = llama_vocab_n_tokens(llama_model_get_vocab(model_));
    batch_ = llama_batch_init(kMaxRows, 0, 1);
  }
  ~Engine() {
    llama_batch_free(batch_);
    llama_free(ctx_);
    llama_model_free(model_);
    llama_backend_free();
  }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  double time_pass(int n) {
    if (n > kMaxRows) bench::fail("too many rows");
    pass(1);  // as in a loop: threads awake, caches full of this engine's weights
    return pass(n);
  }
  double time_prefill(int n) {
    forget(0);
    const double ms = decode(0, n, false);
    fill();
    return ms;
  }
  std::vector<float> logits(const std::vector<int32_t>& ids) {
    forget(0);
    decode(0, static_cast<int>(ids.size()), true, ids.data());
    std::vector<float> out;
    for (int i = 0; i < static_cast<int>(ids.size()); ++i) {
      const float* row = llama_get_logits_ith(ctx_, i);
      out.insert(out.end(), row, row + vocab_);
    }
    fill();
    return out;
  }

 private:
  // The positions before the newest token of the context.
  void fill() {
    forget(0);
    for (int first = 0; first < context_ - 1; first += kMaxRows) decode(first, std::min(kMaxRows, context_ - 1 - first), false);
    if (twice_) copy(0, 1);
  }
  double pass(int n) {
    const double ms = decode(context_ - 1, n, true);
    if (twice_) copy(1, 0);
    else forget(context_ - 1);
    return ms;
  }
  void forget(int from) { llama_memory_seq_rm(llama_get_memory(ctx_), 0, from, -1); }
  void copy(int from, int to) {
    llama_memory_seq_rm(llama_get_memory(ctx_), to, -1, -1);
    llama_memory_seq_cp(llama_get_memory(ctx_), from, to, -1, -1);
  }
  // Tokens at positions [first, first + n); logits of all of them or the last.
  double decode(int first, int n, bool all_logits, const int32_t* ids = nullptr) {
    if (n > kMaxRows) bench::fail("too many rows");
    batch_.n_tokens = n;
    for (int i = 0; i < n; ++i) {
      batch_.token[i] = ids ? ids[i] : bench::token(first + i, vocab_);
      batch_.pos[i] = first + i;
      batch_.n_seq_id[i] = 1;
      batch_.seq_id[i][0] = 0;
      batch_.logits[i] = all_logits || i == n - 1;
    }
    const auto start = bench::Clock::now();
    if (llama_decode(ctx_, batch_) != 0) bench::fail("llama_decode failed");
    llama_synchronize(ctx_);
    return bench::ms_since(start);
  }

  int context_;
  bool twice_ = false;
  int32_t vocab_ = 0;
  llama_model* model_ = nullptr;
  llama_context* ctx_ = nullptr;
  llama_batch batch_{};
};

void errors_only(ggml_log_level level, const char* text, void*) {
  if (level == GGML_LOG_LEVEL_ERROR) std::fputs(text, stderr);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) bench::fail("usage: llama_driver MODEL.gguf THREADS CONTEXT");
  llama_log_set(errors_only, nullptr);
  const auto start = bench::Clock::now();
  Engine engine(argv[1], std::atoi(argv[2]), std::atoi(argv[3]));
  const double open_ms = bench::ms_since(start);
  const std::string features = llama_print_system_info();
  bench::serve(engine, "\"version\": \"" DRIVER_VERSION "\", \"features\": \"" + features + "\"", open_ms);
}

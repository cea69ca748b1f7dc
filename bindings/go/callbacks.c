#include "callbacks.h"

#include "_cgo_export.h"

static void log_message(void *user, int32_t level, const char *message) {
  aerieGoLog((uintptr_t)user, level, (char *)message);
}

void aerie_go_set_log(aerie_runtime_options *options, uintptr_t handle) {
  options->log = log_message;
  options->log_user = (void *)handle;
}

static int32_t progress(void *user, uint64_t done, uint64_t total) {
  return aerieGoProgress((uintptr_t)user, done, total);
}

void aerie_go_set_progress(aerie_model_options *options, uintptr_t handle) {
  options->progress = progress;
  options->progress_user = (void *)handle;
}

void aerie_go_set_drafter_progress(aerie_drafter_options *options, uintptr_t handle) {
  options->progress = progress;
  options->progress_user = (void *)handle;
}

/* The step that runs on this thread, where KVFull is asked for it; a step in a KVFull has its own. */
static __thread uintptr_t running;

static uintptr_t enter(uintptr_t step) {
  uintptr_t around = running;
  running = step;
  return around;
}

static int32_t leave(uintptr_t around, int32_t code) {
  running = around;
  return code;
}

int32_t aerie_go_session_step(aerie_session *session, const aerie_step_options *options, aerie_step_result *result,
                              uintptr_t step, aerie_error *err) {
  uintptr_t around = enter(step);
  return leave(around, aerie_session_step(session, options, result, err));
}

int32_t aerie_go_batch_step(aerie_batch *batch, const aerie_step_options *options, aerie_batch_result *result,
                            uintptr_t step, aerie_error *err) {
  uintptr_t around = enter(step);
  return leave(around, aerie_batch_step(batch, options, result, err));
}

static int32_t kv_full(void *user, int32_t positions_wanted) {
  return aerieGoKVFull((uintptr_t)user, running, positions_wanted);
}

void aerie_go_set_kv_full(aerie_model_options *options, uintptr_t handle) {
  options->kv_full = kv_full;
  options->kv_full_user = (void *)handle;
}

int32_t aerie_go_evaluate(aerie_model *model, const int32_t *tokens, size_t n, const int32_t *taps, int32_t n_taps,
                          float *features, float *logits, uintptr_t handle, aerie_error *err) {
  aerie_evaluate_options options;
  AERIE_INIT(options);
  options.n_taps = n_taps;
  options.taps = taps;
  options.features = features;
  options.logits = logits;
  options.progress = progress;
  options.progress_user = (void *)handle;
  return aerie_model_evaluate(model, tokens, n, &options, err);
}

/* The library's callbacks carry a void *; Go's handles are numbers, which must not lie in Go's pointers. */
#ifndef AERIE_GO_CALLBACKS_H
#define AERIE_GO_CALLBACKS_H

#include <aerie/aerie.h>
#include <stdlib.h>

void aerie_go_set_log(aerie_runtime_options *options, uintptr_t handle);
void aerie_go_set_progress(aerie_model_options *options, uintptr_t handle);
void aerie_go_set_drafter_progress(aerie_drafter_options *options, uintptr_t handle);
void aerie_go_set_kv_full(aerie_model_options *options, uintptr_t handle);

/* aerie_session_step and aerie_batch_step; `step` is what KVFull is told that it is in. */
int32_t aerie_go_session_step(aerie_session *session, const aerie_step_options *options, aerie_step_result *result,
                              uintptr_t step, aerie_error *err);
int32_t aerie_go_batch_step(aerie_batch *batch, const aerie_step_options *options, aerie_batch_result *result,
                            uintptr_t step, aerie_error *err);

/* Go's slices may be handed to C as arguments, not inside of a struct. */
int32_t aerie_go_evaluate(aerie_model *model, const int32_t *tokens, size_t n, const int32_t *taps, int32_t n_taps,
                          float *features, float *logits, uintptr_t handle, aerie_error *err);

#endif

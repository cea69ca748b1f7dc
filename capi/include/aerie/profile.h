/* aerie/profile.h: measure what passes cost on this device, keep it in a file, and let tree policies use it.
 *
 *   aerie_profile_create ── aerie_profile_measure ── aerie_profile_save
 *   aerie_profile_load ── aerie_profile_attach, aerie_profile_attach_drafter ── aerie_session_create
 *
 * A profile holds f(batch, context, rows) of a target's verify pass and of each drafter's passes, in milliseconds. It says
 * nothing about what text comes out, only how fast. docs/profiling.md has the file and the method.
 * Conventions as aerie.h. [profile]: one thread at a time for each profile; a second one gets AERIE_E_BUSY.
 */
#ifndef AERIE_PROFILE_H
#define AERIE_PROFILE_H

#include "aerie/aerie.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct aerie_profile aerie_profile;

/* An empty profile, to measure into. [any] */
AERIE_API int32_t aerie_profile_create(aerie_profile **out, aerie_error *err);
/* A profile from a file. AERIE_E_NOT_FOUND, AERIE_E_IO: the file; AERIE_E_BAD_FORMAT: damaged; AERIE_E_UNSUPPORTED: an older
 * or newer format. The error names file and field. [any] */
AERIE_API int32_t aerie_profile_load(const char *path, aerie_profile **out, aerie_error *err);
/* Waits for a measurement on another thread to stop. What it is attached to keeps the costs. [any] */
AERIE_API void aerie_profile_release(aerie_profile *profile);

typedef struct aerie_profile_options {
  uint32_t struct_size;
  int32_t quick;               /* nonzero: about a second for the target and one for each drafter; fewer points and samples */
  int32_t n_batches;           /* 0: batch 1 */
  int32_t n_contexts;          /* 0: 32, 128, 512, ... and the model's longest, as far as the KV budget goes */
  const int32_t *batches;      /* sequences in a target pass, 1 .. 64 */
  const int32_t *contexts;     /* tokens behind each sequence, 1 .. the model's context */
  int32_t n_drafters;          /* 0: the target alone */
  int32_t reserved;
  aerie_drafter_handle *const *drafters; /* opened for this model; each has a free session (max_sessions) */
  aerie_progress_fn progress;  /* called between passes on the measuring thread, counting points; 0 cancels. NULL: none */
  void *progress_user;
} aerie_profile_options;

/* Measure, in place of what the profile held. Takes KV of the model while it runs (AERIE_E_LIMIT when there is none), and is
 * only as good as the machine is quiet. On failure the profile holds what it held before. options may be NULL. [profile] */
AERIE_API int32_t aerie_profile_measure(aerie_profile *profile, aerie_model *model, const aerie_profile_options *options,
                                        aerie_error *err);
/* Stop the measurement that is running, or else the next one, within milliseconds; it returns AERIE_E_CANCELLED. [any] */
AERIE_API void aerie_profile_cancel(aerie_profile *profile);
/* Forget one that no measurement has taken, as aerie_session_clear_cancel does. [any] */
AERIE_API void aerie_profile_clear_cancel(aerie_profile *profile);

/* Written under a temporary name, renamed when whole. AERIE_E_INVALID_ARGUMENT: the path is there and no cost table, and stays
 * as it is; AERIE_E_IO. [profile] */
AERIE_API int32_t aerie_profile_save(aerie_profile *profile, const char *path, aerie_error *err);
/* The tables as one JSON object; borrowed until the next call on this profile. [profile] */
AERIE_API int32_t aerie_profile_json(aerie_profile *profile, const char **text, size_t *size, aerie_error *err);

/* Sessions created on this model (with this drafter) from now on use the costs. AERIE_E_MISMATCH, naming the field, when
 * they were measured with another model, device, instruction set, thread count, dtype or library version, or hold no such
 * drafter. A drafter without costs is learned from its first passes. [profile] */
AERIE_API int32_t aerie_profile_attach(aerie_profile *profile, aerie_model *model, aerie_error *err);
/* The same for one drafter's passes. [profile] */
AERIE_API int32_t aerie_profile_attach_drafter(aerie_profile *profile, aerie_drafter_handle *drafter, aerie_error *err);

/* Expected milliseconds of a target pass over `rows` rows for each of `batch` sequences of `context` tokens; never falls with
 * any of the three. [profile] */
AERIE_API int32_t aerie_profile_target_ms(aerie_profile *profile, int32_t batch, int32_t context, int32_t rows, double *ms,
                                          aerie_error *err);

#ifdef __cplusplus
}
#endif
#endif /* AERIE_PROFILE_H */

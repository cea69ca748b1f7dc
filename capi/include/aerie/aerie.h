/* aerie/aerie.h: embed a language model that answers several tokens per pass, and never a different
 * token than the model alone.
 *
 *   runtime ── model (the target) ── drafter (a plugin that guesses) ── session (one text) ── step
 *
 * Purpose: generate a target model's own text with lossless speculative decoding.
 * Not here: tokenizers (aerie/text.h), conversion (aerie/tools.h), cost tables (aerie/profile.h), writing drafters
 * (aerie/drafter.h).
 *
 * Conventions
 *  - Functions return AERIE_OK (0) or an AERIE_E_* code. The last argument is an optional caller-owned aerie_error, written on
 *    failure only. Then nothing else is, but the size that aerie_session_save or aerie_tokenizer_encode needs (AERIE_E_LIMIT).
 *  - Any function may return AERIE_E_INVALID_ARGUMENT (a NULL or a number that it does not take, a path that is a folder or a
 *    device), AERIE_E_OUT_OF_MEMORY and AERIE_E_INTERNAL, and one that is not [any] AERIE_E_BUSY; other codes stand in its comment.
 *  - Structs that carry options or results begin with struct_size; set it with AERIE_INIT(x) or to sizeof. Fields are only ever
 *    appended; zero means the default, and reserved ones are zero. One struct points at another, so that each can grow.
 *  - Strings in are (UTF-8, NUL-terminated) and copied. Pointers out are borrowed; their comment says until when.
 *  - Thread tags: [any] any thread at any time; [session] one thread at a time for each session; [batch] one thread at a time
 *    for each batch, where a [session] call on a session in it counts as a call on the batch.
 *  - The library never throws, prints, aborts, exits or installs signal handlers.
 *  - Every *_release accepts NULL, on any thread. Objects retain what they stand on, so release in any order.
 *  - Hooks (log, alloc, free, parallel_for, kv_full, ...) are called until the last object that stands on their runtime
 *    or model is released, and never after that release has returned; a progress hook only during its own call. A hook may
 *    not release what the call that it is in was given (the release of a session, batch or profile would wait for itself for
 *    ever); any other call from one on such an object gives AERIE_E_BUSY (of kv_full, more at aerie_kv_full_fn). log, alloc and
 *    free must call nothing of the library: they are called with its locks held. A C++ exception must not leave a hook; one
 *    that does in a step ends it with AERIE_E_INTERNAL.
 */
#ifndef AERIE_H
#define AERIE_H

#include <stddef.h>
#include <stdint.h>

#if defined(AERIE_STATIC) /* linked with libaerie.a */
#define AERIE_API
#elif defined(_WIN32)
#if defined(AERIE_BUILDING)
#define AERIE_API __declspec(dllexport)
#else
#define AERIE_API __declspec(dllimport)
#endif
#else
#define AERIE_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define AERIE_VERSION_MAJOR 0u
#define AERIE_VERSION_MINOR 1u
#define AERIE_VERSION_PATCH 0u

/* Zero a struct and set its size: aerie_session_options o; AERIE_INIT(o); */
#define AERIE_INIT(x)                                                    \
  do {                                                                   \
    char *aerie_init_p = (char *)&(x);                                   \
    size_t aerie_init_i;                                                 \
    for (aerie_init_i = 0; aerie_init_i < sizeof(x); ++aerie_init_i) aerie_init_p[aerie_init_i] = 0; \
    (x).struct_size = (uint32_t)sizeof(x);                               \
  } while (0)

/* Codes. int32_t in the ABI. */
enum {
  AERIE_OK = 0,
  AERIE_E_INVALID_ARGUMENT = 1,
  AERIE_E_NOT_FOUND = 2,
  AERIE_E_IO = 3,
  AERIE_E_BAD_FORMAT = 4,     /* damaged or hostile file */
  AERIE_E_MISMATCH = 5,       /* things that do not belong together */
  AERIE_E_UNSUPPORTED = 6,
  AERIE_E_OUT_OF_MEMORY = 7,
  AERIE_E_CANCELLED = 8,
  AERIE_E_LIMIT = 9,          /* a stated limit is reached */
  AERIE_E_PLUGIN = 10,
  AERIE_E_DEVICE = 11,
  AERIE_E_BUSY = 12,          /* the session or batch is in use by another thread or a hook's caller, or the session by a batch */
  AERIE_E_INTERNAL = 13
};

typedef struct aerie_error {
  uint32_t struct_size; /* set by the caller, so that the library knows how much it may write */
  int32_t code;
  char message[504];    /* UTF-8, NUL-terminated, cut if longer */
} aerie_error;

typedef struct aerie_runtime aerie_runtime;
typedef struct aerie_model aerie_model;
typedef struct aerie_drafter_handle aerie_drafter_handle;
typedef struct aerie_session aerie_session;
typedef struct aerie_batch aerie_batch;

/* The library's version, (major << 16 | minor << 8 | patch). [any] */
AERIE_API uint32_t aerie_version(void);
/* "invalid argument", "not found", ...; static. [any] */
AERIE_API const char *aerie_code_name(int32_t code);

/* ---- runtime ------------------------------------------------------------------------------------ */

/* level: 0 error, 1 warning, 2 info, 3 debug. Called on whatever thread noticed; must not call back
 * into the library. */
typedef void (*aerie_log_fn)(void *user, int32_t level, const char *message);
typedef void *(*aerie_alloc_fn)(void *user, size_t bytes, size_t alignment); /* NULL: none left */
typedef void (*aerie_free_fn)(void *user, void *memory);
/* Run fn(context, i) for every i in [0, n) and return when all are done. Tasks never wait for each
 * other: running them one by one is fine. Called on the thread that steps, in its own floating-point mode, and returns there: a
 * job system of fibers must not let the one that waits go on on another thread, or the text may be another. */
typedef void (*aerie_parallel_for_fn)(void *user, void (*fn)(void *context, int32_t i), void *context, int32_t n);

typedef struct aerie_runtime_options {
  uint32_t struct_size;
  int32_t threads;                  /* 0: one for each physical core this process may use */
  const char *device;               /* "cpu" (NULL: the same), "cpu:AVX2" (the level of docs/exactness.md with that name, for
                                         one text on all machines), "cuda" or "cuda:N" (libaerie-cuda) */
  aerie_log_fn log;                 /* NULL: silence */
  void *log_user;
  aerie_alloc_fn alloc;             /* both or none: device memory (KV, working memory) */
  aerie_free_fn free;
  void *alloc_user;
  aerie_parallel_for_fn parallel_for; /* the host's job system in place of our threads; `threads` says how many it has, and
                                         with 1 it is not asked */
  void *parallel_user;
} aerie_runtime_options;

/* options may be NULL. AERIE_E_UNSUPPORTED: no such device or instruction set here, or one that is too old;
 * AERIE_E_NOT_FOUND: no such number; AERIE_E_DEVICE: no driver, or the device fails. [any] */
AERIE_API int32_t aerie_runtime_create(const aerie_runtime_options *options, aerie_runtime **out, aerie_error *err);
AERIE_API void aerie_runtime_release(aerie_runtime *runtime);
/* "cpu AVX3_DL, 2 threads"; alive as long as the runtime. [any] */
AERIE_API const char *aerie_runtime_description(const aerie_runtime *runtime);

/* Load one drafter plugin from an absolute path. Nothing is searched; the bytes that were checked are
 * the bytes that run; a plugin stays loaded until the process ends. Loading it again does nothing. AERIE_E_NOT_FOUND,
 * AERIE_E_IO: the file; AERIE_E_PLUGIN: not a plugin for this host; AERIE_E_MISMATCH: another plugin has its id. [any] */
AERIE_API int32_t aerie_runtime_load_plugin(aerie_runtime *runtime, const char *absolute_path, aerie_error *err);
/* Load every plugin in an absolute directory; NULL: the drafters installed with this library
 * (aerie/drafters beside it; those inside it where it was built as libaerie.a). The first error ends it; what was loaded
 * before stays. [any] */
AERIE_API int32_t aerie_runtime_load_plugin_directory(aerie_runtime *runtime, const char *absolute_path,
                                                      aerie_error *err);

/* A plugin's entry point (drafter.h). */
struct aerie_drafter_plugin_table;
typedef const struct aerie_drafter_plugin_table *(*aerie_plugin_entry_fn)(void);
/* Register a drafter plugin that is linked into the program, where nothing can be loaded: AERIE_DRAFTER_STATIC (drafter.h)
 * gives its entry a name of its own. `name` is for errors. [any] */
AERIE_API int32_t aerie_runtime_add_plugin(aerie_runtime *runtime, const char *name, aerie_plugin_entry_fn entry,
                                           aerie_error *err);

typedef struct aerie_plugin_info {
  uint32_t struct_size;
  uint32_t flags;      /* AERIE_DRAFTER_* of drafter.h */
  const char *id;      /* this and the other strings are borrowed from the runtime */
  const char *title;
  const char *version;
  const char *path;
} aerie_plugin_info;
/* The index-th loaded drafter kind; AERIE_E_NOT_FOUND past the last. [any] */
AERIE_API int32_t aerie_runtime_plugin_info(aerie_runtime *runtime, uint32_t index, aerie_plugin_info *out,
                                            aerie_error *err);

/* ---- model -------------------------------------------------------------------------------------- */

/* Return 0 to cancel the load (AERIE_E_CANCELLED). Called on the loading thread. */
typedef int32_t (*aerie_progress_fn)(void *user, uint64_t done_bytes, uint64_t total_bytes);

/* The KV budget is spent, and no kept prefix is left to drop. Called on the stepping thread, which holds no lock; may
 * release, rewind or otherwise call on OTHER sessions of the model than the one that wants room (its release, its batch's,
 * or that of one which another thread is stepping from its own callback waits for ever). In a batch's step every member but
 * that one may be called on too: any call on that one, and a step of any member, gives AERIE_E_BUSY, so that
 * aerie_session_statistics tells which it is; a member with nothing left to continue fails in that step with
 * AERIE_E_INVALID_ARGUMENT. Return nonzero to try again, as often as it does, until the step is cancelled. 0: the step fails with
 * AERIE_E_LIMIT, nothing is lost, and the session may be stepped again when there is room. */
typedef int32_t (*aerie_kv_full_fn)(void *user, int32_t positions_wanted);

enum {
  AERIE_PREFILL_EXACT = 0, /* the same kernels for every row: same seed, same text, bit for bit */
  AERIE_PREFILL_FAST = 1   /* cuda, with cuBLASLt installed: prompts are read 512 tokens at a time by its products. Not
                              bit-exact: another cutting of the prompt, or company in a batch, may give another text.
                              Verification and decoding stay as they are. Rows of such prompts are shared among this
                              model's sessions alone; a saved session goes back only to a model opened like this */
};

typedef struct aerie_model_options {
  uint32_t struct_size;
  int32_t kv_positions;       /* KV budget shared by the model's sessions, in tokens; 0: 4 x the context, from 4096 to 32768 */
  aerie_progress_fn progress;
  void *progress_user;
  int32_t kv_dtype;           /* 0 f32, 1 bf16, 2 int8 (a scale for each position and head) */
  int32_t check_data;         /* nonzero: checksum raw tensors too (reads the whole file) */
  int32_t keep_prefixes;      /* 0: texts' keys and values stay usable for later sessions that begin alike, until their
                                 room is wanted; -1: off */
  int32_t prefill;            /* AERIE_PREFILL_* */
  aerie_kv_full_fn kv_full;   /* NULL: AERIE_E_LIMIT at once */
  void *kv_full_user;
} aerie_model_options;

/* Open a target package. Immutable and shared: any number of sessions on any threads. options may be NULL.
 * AERIE_E_NOT_FOUND, AERIE_E_IO: the file; AERIE_E_BAD_FORMAT; AERIE_E_UNSUPPORTED: a newer format, or a prefill that the
 * device has not; AERIE_E_MISMATCH: a drafter's package; AERIE_E_CANCELLED. [any] */
AERIE_API int32_t aerie_model_open(aerie_runtime *runtime, const char *path, const aerie_model_options *options,
                                   aerie_model **out, aerie_error *err);
/* One more aerie_model_release is due. [any] */
AERIE_API void aerie_model_retain(aerie_model *model);
AERIE_API void aerie_model_release(aerie_model *model);

typedef struct aerie_model_info {
  uint32_t struct_size;
  int32_t vocab_size, hidden_size, layers, heads, kv_heads, head_dim, ffn, max_context;
  int32_t bos_id;             /* -1: none */
  int32_t n_eos;
  const int32_t *eos_ids;     /* borrowed from the model */
  const char *name;
  const char *fingerprint;    /* hex; equal for requantised copies */
  uint64_t weight_bytes;
  uint64_t kv_bytes_per_token;
  int32_t prefill;            /* AERIE_PREFILL_*: how the model was opened */
  int32_t reserved0;
} aerie_model_info;
/* [any] */
AERIE_API int32_t aerie_model_info_get(const aerie_model *model, aerie_model_info *out, aerie_error *err);
/* A byte blob of the package ("tokenizer", "chat_template"); *size is 0 when absent. Borrowed from
 * the model. [any] */
AERIE_API int32_t aerie_model_blob(const aerie_model *model, const char *name, const void **data, size_t *size,
                                   aerie_error *err);

/* A text as the target sees it, for training and analysis: rows are written where the caller wants them. */
typedef struct aerie_evaluate_options {
  uint32_t struct_size;
  int32_t n_taps;
  const int32_t *taps;        /* layers whose input is wanted; their number: the last one's output; -1: that after
                                the final norm */
  float *features;            /* [tokens][n_taps * hidden_size]; NULL: none */
  float *logits;              /* [tokens][vocab_size]; NULL: none */
  aerie_progress_fn progress; /* counting tokens; 0 cancels. NULL: none */
  void *progress_user;
} aerie_evaluate_options;
/* Run the target over a text from its beginning. The rows are those of a session that reads its prompt exactly, bit for
 * bit. Takes KV for n tokens while it runs. AERIE_E_LIMIT: longer than the context, or no KV left; AERIE_E_CANCELLED. [any] */
AERIE_API int32_t aerie_model_evaluate(aerie_model *model, const int32_t *tokens, size_t n,
                                       const aerie_evaluate_options *options, aerie_error *err);

/* ---- drafter ------------------------------------------------------------------------------------ */

typedef struct aerie_drafter_options {
  uint32_t struct_size;
  int32_t max_sessions;       /* sessions that may use it at once, 1 .. 4096; 0: 8 */
  const char *package;        /* path of a drafter package, or of a target used as draft model */
  const char *plugin;         /* plugin id; NULL: what the package names, or the first that takes targets. Required
                                 without a package */
  aerie_progress_fn progress; /* while the package is read; without one it is not called */
  void *progress_user;
} aerie_drafter_options;
/* Bind a loaded plugin, and its weights, to a target. AERIE_E_MISMATCH: made for another one, or the plugin refuses it;
 * AERIE_E_NOT_FOUND: no such file, or the plugin is not loaded; AERIE_E_PLUGIN: the plugin is broken; others as
 * aerie_model_open. [any] */
AERIE_API int32_t aerie_drafter_open(aerie_model *model, const aerie_drafter_options *options,
                                     aerie_drafter_handle **out, aerie_error *err);
AERIE_API void aerie_drafter_release(aerie_drafter_handle *drafter);

/* ---- session ------------------------------------------------------------------------------------ */

enum { AERIE_TREE_DEFAULT = 0, AERIE_TREE_CHAIN = 1, AERIE_TREE_STATIC = 2, AERIE_TREE_EAGLE2 = 3,
       AERIE_TREE_BACKBONE = 4, AERIE_TREE_CAST = 5, AERIE_TREE_AUTO = 6 };
enum { AERIE_NOISE_SHARED = 0, AERIE_NOISE_NONE = 1 };
enum {
  AERIE_VERIFY_EXACT = 0,   /* same seed, same text, bit for bit (docs/exactness.md) */
  AERIE_VERIFY_SAMPLED = 1  /* the papers' sampled-draft rule: exact in distribution only; chain and static trees */
};

typedef struct aerie_logit_bias { /* frozen */
  int32_t token;
  float bias; /* added to the token's logit; -INFINITY: it never comes */
} aerie_logit_bias;

/* Biases come first, then penalties, the session's constraint, temperature, top_k, top_p, min_p and the draw. */
typedef struct aerie_sampling {
  uint32_t struct_size;
  int32_t top_k;        /* 0: off */
  uint64_t seed;
  float temperature;    /* 0: greedy, ties to the lowest id */
  float top_p;          /* 0 or >= 1: off */
  float min_p;          /* 0: off */
  uint32_t stream;      /* noise stream: sessions with equal seeds but different streams differ */
  float repetition_penalty; /* of each token in the text, prompt included: a logit above 0 is divided by it, any other
                               multiplied; 0 or 1: off */
  float presence_penalty;   /* taken from the logit of each token that was generated since the last append; 0: off */
  float frequency_penalty;  /* the same, as often as it was generated; 0: off */
  int32_t penalty_window;   /* penalties look at this many tokens, the newest; 0: all */
  const aerie_logit_bias *logit_bias; /* copied; a token that is listed twice has the sum */
  int32_t n_logit_bias;
  int32_t reserved0;
} aerie_sampling;

typedef struct aerie_tree_options { /* fields that the policy has not stay 0, or it is AERIE_E_INVALID_ARGUMENT */
  uint32_t struct_size;
  int32_t policy;       /* AERIE_TREE_*; default: auto (static under the sampled rule) */
  int32_t nodes;        /* chain: length (0: 5). eagle2, cast: total with the root (0: 60, 72 as published) */
  int32_t depth;        /* eagle2: levels after the first; 0: 5, or all of a one-pass drafter; -1: none.
                           backbone: levels; 0: 7. cast; 0: 13 */
  int32_t top_k;        /* eagle2, cast: children a node and frontier width; backbone: nodes a level; 0: 10 (cast: 12) */
  int32_t n_paths;      /* static: rank paths, 0: EAGLE's 25-node tree */
  const int32_t *paths; /* each path as its ranks followed by -1, every prefix a path too, e.g. 0,-1, 1,-1, 0,0,-1 */
  float threshold;      /* cast: C1 = C2 = C3; 0: 3 */
  int32_t reserved0;
} aerie_tree_options;

typedef struct aerie_session_options {
  uint32_t struct_size;
  int32_t max_context;            /* 0: the model's */
  aerie_drafter_handle *drafter;  /* NULL: plain decode */
  const aerie_sampling *sampling; /* NULL: greedy. What is pointed at is copied, here and below */
  const aerie_tree_options *tree; /* NULL: the default policy */
  int32_t draft_noise;            /* AERIE_NOISE_* */
  int32_t verify;                 /* AERIE_VERIFY_* */
  int32_t ignore_eos;             /* nonzero: the model's end-of-text ids are ordinary tokens */
  int32_t n_stop_tokens;
  const int32_t *stop_tokens;     /* further tokens that end the text; emitted, then stop */
  int32_t n_more_drafters;        /* at most 15; needs `drafter` */
  int32_t no_foresight;           /* nonzero: what a constraint forces, or has usually come there, is left to the drafter, or to
                                   plain decode; to measure what it brings. The text is the same */
  aerie_drafter_handle *const *more_drafters; /* further drafters: AERIE_TREE_AUTO chooses between all of them, cycle by
                                   cycle, by expected tokens a second; other trees use `drafter` alone. Each is opened
                                   for this model and holds one of its max_sessions */
} aerie_session_options;

/* options may be NULL. AERIE_E_LIMIT: a drafter's max_sessions are taken; AERIE_E_MISMATCH: a drafter of another model;
 * AERIE_E_UNSUPPORTED: a tree or drafter that the sampled rule cannot have; AERIE_E_PLUGIN: a drafter did not begin. [any] */
AERIE_API int32_t aerie_session_create(aerie_model *model, const aerie_session_options *options, aerie_session **out,
                                       aerie_error *err);
/* Waits for a step in flight on another thread to stop; leaves its batch. [any] */
AERIE_API void aerie_session_release(aerie_session *session);

/* Bytes of a token in running text (previous: the token before it, -1 none). Return the byte count
 * and point *bytes at memory that stays valid as long as the source is held; -1: no such token. */
typedef int32_t (*aerie_token_bytes_fn)(void *user, int32_t token, int32_t previous, const char **bytes);
typedef void (*aerie_hold_fn)(void *user);

/* Where a session has its tokens' bytes from: aerie_tokenizer_source (text.h) fills it, or a tokenizer of the host's own. */
typedef struct aerie_token_source {
  uint32_t struct_size;
  uint32_t reserved;
  void *user;
  aerie_token_bytes_fn bytes; /* called on the thread that steps */
  aerie_hold_fn hold;         /* called when a session takes the source; NULL (and so release): the host keeps `user` alive */
  aerie_hold_fn release;      /* called once for it when the session and its forks have let go, on whatever thread */
} aerie_token_source;

/* Texts that end the generation, at most 256, none empty; one may have begun in what was generated before. NULL, 0, NULL
 * clears. [session] */
AERIE_API int32_t aerie_session_set_stop_strings(aerie_session *session, const char *const *strings, int32_t n,
                                                 const aerie_token_source *source, aerie_error *err);

/* What may come next: a grammar (aerie_grammar_constraint of text.h), or a matcher of the host's own. The session keeps a
 * state for its text, and copies it to look ahead: in a cycle some hundreds of candidates of a large tree are tried by copy and
 * accept, and a mask is made for each token that comes. Functions return AERIE_OK or the code that the step ends with. They are
 * called on the thread that steps (destroy: on whatever one lets a state go), never two at a time for one session; a fork's
 * states are its own. */
typedef struct aerie_constraint {
  uint32_t struct_size;
  uint32_t reserved;
  void *user;
  int32_t (*begin)(void *user, void **state); /* before the first token */
  int32_t (*copy)(void *user, const void *state, void **copy);
  /* Token t may come next: bit t % 32 of mask[t / 32], of n_words words that are all 0 before. What is beyond the model's
   * vocabulary is ignored. None may: the text ends (AERIE_FINISH_CONSTRAINT). The model's end-of-text ids are allowed where
   * the text may end. */
  int32_t (*allowed)(void *user, void *state, uint32_t *mask, size_t n_words);
  int32_t (*accept)(void *user, void *state, int32_t token); /* it came next. AERIE_E_MISMATCH: it may not (asked of drafted
                                                                tokens); the state is only destroyed then */
  void (*destroy)(void *user, void *state);
  aerie_hold_fn hold;    /* as in aerie_token_source */
  aerie_hold_fn release;
  /* May be NULL. Tokens that very likely come next, one behind the other, since the constraint leaves no other text: at most
   * `capacity`, *n of them. They are drafts, which cost a row of a pass each; a wrong one is no error. The state stays where it
   * is. An answer other than AERIE_OK, and one of copy or accept for a text that has not come yet, means: nothing is foreseen. */
  int32_t (*forced)(void *user, void *state, int32_t *tokens, size_t capacity, size_t *n);
} aerie_constraint;

/* From the next token on. It begins with what is generated now, and after every append anew; a rewind leads it back, one to
 * before the last append to its beginning. NULL: none. An unfinished cycle is discarded. It is not saved with the session.
 * AERIE_E_MISMATCH: no token of the model may come to begin with, it allows none or biases forbid those. [session] */
AERIE_API int32_t aerie_session_set_constraint(aerie_session *session, const aerie_constraint *constraint, aerie_error *err);

/* Append prompt tokens; any chunking gives the same text. Also after generation, to go on. AERIE_E_LIMIT: longer than the
 * context; nothing is appended then. [session] */
AERIE_API int32_t aerie_session_append(aerie_session *session, const int32_t *tokens, size_t n, aerie_error *err);
/* Keep the first `length` tokens; an unfinished cycle is discarded. [session] */
AERIE_API int32_t aerie_session_rewind(aerie_session *session, size_t length, aerie_error *err);
/* From the next token on. An unfinished cycle is discarded. [session] */
AERIE_API int32_t aerie_session_set_sampling(aerie_session *session, const aerie_sampling *sampling, aerie_error *err);
/* From the next cycle on. An unfinished one is discarded. AERIE_E_UNSUPPORTED as at aerie_session_create. [session] */
AERIE_API int32_t aerie_session_set_tree(aerie_session *session, const aerie_tree_options *tree, aerie_error *err);

typedef struct aerie_fork_options {
  uint32_t struct_size;
  uint32_t stream; /* noise stream of the fork; 0: a number of its own, from 2^31 up and the same ones at every run that
                      forks in the same order, so that equal seeds do not make equal twins */
} aerie_fork_options;
/* A second session with the same text, settings, drafters, stop strings and constraint; keys and values are shared until one of
 * them writes. It is in no batch, its statistics begin at zero, and it counts as one of the drafter's max_sessions. An
 * unfinished cycle is discarded, never a committed token. options may be NULL. AERIE_E_LIMIT: max_sessions are taken. A
 * drafter that does not begin is no error here (aerie_statistics). [session] */
AERIE_API int32_t aerie_session_fork(aerie_session *session, const aerie_fork_options *options, aerie_session **out,
                                     aerie_error *err);
/* Stop the step that is running, or else the next one, at the next slice; it returns AERIE_E_CANCELLED,
 * nothing committed is lost, and stepping again goes on. [any] */
AERIE_API void aerie_session_cancel(aerie_session *session);
/* Forget a cancel that no step has taken: one that was meant for a step which has ended by itself meanwhile, and would
 * stop the next. A host that has made sure that nobody cancels any more knows then that nothing is left of it. [any] */
AERIE_API void aerie_session_clear_cancel(aerie_session *session);

enum {
  AERIE_STEP_PENDING = 0,  /* the budget is spent; step again */
  AERIE_STEP_TOKENS = 1,   /* tokens came out; step again for more */
  AERIE_STEP_DONE = 2      /* tokens may have come out; the text has ended (finish) */
};
enum { AERIE_FINISH_NONE = 0, AERIE_FINISH_EOS = 1, AERIE_FINISH_STOP_TOKEN = 2, AERIE_FINISH_STOP_STRING = 3,
       AERIE_FINISH_CONTEXT = 4, AERIE_FINISH_CONSTRAINT = 5 /* no token may come next */ };

typedef struct aerie_token { /* frozen */
  int32_t id;
  float logprob;      /* log-softmax of the target's raw logits */
  uint8_t drafted;    /* 1: it had been guessed, by a drafter or because of a constraint */
  uint8_t reserved[7];
} aerie_token;

typedef struct aerie_step_options {
  uint32_t struct_size;
  int32_t max_tokens;   /* most tokens this step may emit; 0: whatever one cycle gives */
  int64_t budget_us;    /* 0: no limit. At least one slice of work is done */
} aerie_step_options;

typedef struct aerie_step_result {
  uint32_t struct_size;
  int32_t state;             /* AERIE_STEP_* */
  const aerie_token *tokens; /* borrowed until the next call on this session */
  int32_t n_tokens;
  int32_t finish;            /* AERIE_FINISH_* */
  int32_t stop_bytes;        /* STOP_STRING: bytes at the end of the text, from the stop string on, to cut */
  int32_t reserved;
} aerie_step_result;

/* One cycle: draft, verify, commit; or as much of it as the budget allows. options may be NULL. AERIE_E_CANCELLED;
 * AERIE_E_LIMIT: no KV left (aerie_kv_full_fn); AERIE_E_DEVICE: the device is lost, or logits are not finite. The text so far
 * stays. A drafter that fails is no error (aerie_statistics). [session] */
AERIE_API int32_t aerie_session_step(aerie_session *session, const aerie_step_options *options,
                                     aerie_step_result *out, aerie_error *err);
/* What the session's last step gave, its own or its batch's: returns and fills what aerie_session_step would have.
 * Before the first step: AERIE_STEP_PENDING. [session] */
AERIE_API int32_t aerie_session_result(aerie_session *session, aerie_step_result *out, aerie_error *err);

/* All committed tokens, prompt included; borrowed until the next call on this session. [session] */
AERIE_API int32_t aerie_session_tokens(aerie_session *session, const int32_t **tokens, size_t *n, aerie_error *err);

/* Save and restore: a text with what has been computed for it, so that going on costs no prompt reading. The text that
 * follows is the one that would have followed (docs/session-format.md). An unfinished cycle is discarded; a session in
 * a batch may be saved.
 * *size is set to what is needed; buffer NULL, capacity 0: only that. Too small: AERIE_E_LIMIT. Versioned, checksummed.
 * [session] */
AERIE_API int32_t aerie_session_save(aerie_session *session, void *buffer, size_t capacity, size_t *size,
                                     aerie_error *err);
/* The same to a file, which appears whole or not at all. [session] */
AERIE_API int32_t aerie_session_save_file(aerie_session *session, const char *path, aerie_error *err);
/* A session as aerie_session_create(model, options) makes it, whose text, keys and values, and drafter state (if the
 * same drafter is in options) are the saved ones; settings are those of options, stop strings are to be set again,
 * statistics begin at 0. Another drafter, or none, gives the same text. What a saved session holds is believed for this
 * session and its forks alone: no other session of the model shares its keys and values (keep_prefixes).
 * Damaged: AERIE_E_BAD_FORMAT. Of another model, dtype of weights or keys and values, device, ISA level or build:
 * AERIE_E_MISMATCH. Of another format version: AERIE_E_UNSUPPORTED. No room in context or KV budget: AERIE_E_LIMIT. Others
 * as aerie_session_create, but that a drafter which does not begin is no error. The message names the field; *out is
 * untouched. [any] */
AERIE_API int32_t aerie_session_restore(aerie_model *model, const aerie_session_options *options, const void *data,
                                        size_t size, aerie_session **out, aerie_error *err);
/* The same from a file. [any] */
AERIE_API int32_t aerie_session_restore_file(aerie_model *model, const aerie_session_options *options, const char *path,
                                             aerie_session **out, aerie_error *err);

typedef struct aerie_statistics {
  uint32_t struct_size;
  int32_t quarantined;        /* 1: a drafter is out: it has failed too often, or found no memory or KV too often in this session */
  uint64_t emitted;           /* tokens generated */
  uint64_t cycles;            /* verify passes that emitted */
  uint64_t full_cycles;       /* of these, not cut short by a limit, stop or end of text */
  uint64_t full_emitted;      /* tokens of the full cycles: tau = full_emitted / full_cycles */
  uint64_t proposed;          /* nodes the drafter offered */
  uint64_t verified;          /* nodes that went through a verify pass (root not counted) */
  uint64_t accepted;          /* of these, emitted */
  uint64_t drafter_failures;  /* steps that fell back to plain decode */
  uint64_t prefill_ns, draft_ns, verify_ns, other_ns; /* wall-clock in this session's steps */
  uint64_t prefill_tokens;
  uint64_t draft_passes;      /* propose calls */
  uint64_t tried[16];         /* by depth d: cycles whose walk came to depth d and found children there */
  uint64_t taken[16];         /* of these, went on to one of them; taken / tried on chains is the papers' n-alpha */
  uint64_t reused_tokens;     /* prompt tokens whose keys and values were there already (not in prefill_tokens) */
  int32_t chosen_drafter;     /* of the last cycle: 0 `drafter`, 1.. `more_drafters`; -1 none (plain decode) */
  int32_t chosen_nodes;       /* nodes that it verified, the root not counted */
  int32_t chosen_depth;       /* of the deepest of them */
  int32_t reserved0;
  uint64_t plain_cycles;      /* cycles that no drafter was asked in */
  uint64_t chosen_cycles[8];  /* cycles that asked drafter 0, 1, ...; the last one counts all further drafters */
  uint64_t foreseen_verified; /* of `verified`: what a constraint forces, or has usually come there, and no drafter had guessed */
  uint64_t foreseen_accepted; /* of these, emitted */
} aerie_statistics;
/* Since the session was made; what has a time is in nanoseconds. [session] */
AERIE_API int32_t aerie_session_statistics(aerie_session *session, aerie_statistics *out, aerie_error *err);

/* ---- batch -------------------------------------------------------------------------------------- */

/* Sessions of one model stepped together: one pass of the target serves all of them. They may differ in everything
 * (prompt, length, sampling, drafter or none, tree), and each one's text is bit for bit what it is alone. Sessions
 * join and leave between steps; what one of them does (append, rewind, ...) needs no leave.
 *
 *   aerie_batch_step(batch, NULL, NULL, &err);
 *   for each session: code = aerie_session_result(session, &result, &err), then as after aerie_session_step */
typedef struct aerie_batch_options {
  uint32_t struct_size;
  int32_t max_rows; /* rows of one target pass; 0: no limit. More are wanted: prompts are read in smaller chunks, and of
                       all drafted nodes those of highest confidence are verified, whosever they are. Each session has a
                       row at least, and keeps its whole tree under the sampled rule. */
} aerie_batch_options;

/* options may be NULL. [any] */
AERIE_API int32_t aerie_batch_create(aerie_model *model, const aerie_batch_options *options, aerie_batch **out,
                                     aerie_error *err);
/* Its sessions go on alone. Waits for a step in flight on another thread to stop. [any] */
AERIE_API void aerie_batch_release(aerie_batch *batch);
/* A session is in one batch at most (AERIE_E_BUSY), of its own model (AERIE_E_MISMATCH). While it is in, its own
 * aerie_session_step gives AERIE_E_BUSY. A cycle that it has begun is given up. [batch] */
AERIE_API int32_t aerie_batch_add(aerie_batch *batch, aerie_session *session, aerie_error *err);
/* Its cycle is given up, nobody else's. AERIE_E_NOT_FOUND: it is not in this batch. [batch] */
AERIE_API int32_t aerie_batch_remove(aerie_batch *batch, aerie_session *session, aerie_error *err);
/* Stop the step that is running, or else the next one, as aerie_session_cancel does. That function works on a session in
 * a batch too: the step stops, the session's result is AERIE_E_CANCELLED, the others' are what they are. [any] */
AERIE_API void aerie_batch_cancel(aerie_batch *batch);
/* Forget one that no step has taken, as aerie_session_clear_cancel does. [any] */
AERIE_API void aerie_batch_clear_cancel(aerie_batch *batch);

typedef struct aerie_batch_result {
  uint32_t struct_size;
  int32_t n_sessions;  /* in the batch */
  int32_t n_tokens;    /* emitted in this step, all sessions together */
  int32_t n_emitting;  /* sessions with tokens */
  int32_t n_ended;     /* sessions whose text has ended, in this step or before */
  int32_t n_failed;    /* sessions whose result is an error code */
} aerie_batch_result;

/* One cycle of the sessions that are ready to decode and a chunk of prompt of those that are not; or as much of it as
 * the budget allows. Returns when any session has tokens, has ended or is cancelled. max_tokens holds for each session.
 * A session that fails does not stop the others and stays in; one whose text has ended costs nothing. options and out
 * may be NULL. AERIE_E_CANCELLED: by aerie_batch_cancel. [batch] */
AERIE_API int32_t aerie_batch_step(aerie_batch *batch, const aerie_step_options *options, aerie_batch_result *out,
                                   aerie_error *err);

#ifdef __cplusplus
}
#endif
#endif /* AERIE_H */

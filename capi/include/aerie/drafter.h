/* aerie/drafter.h: write a drafter as a shared-library plugin.
 *
 * A drafter guesses what the target will say next. The host (Aerie) owns the loop: it shows the
 * drafter every committed token (`observe`), asks for scored children of chosen tree nodes
 * (`propose`), lets a tree policy pick what to verify, and verifies it with the target. A wrong
 * guess costs speed, never a token.
 *
 * Conventions
 *  - A plugin exports one symbol, aerie_drafter_plugin_entry, and includes only this header.
 *  - No exception, no abort, no output, no signal handler leaves the plugin. Calls return AERIE_D_OK
 *    or an AERIE_D_* code; details go to the caller's aerie_drafter_error.
 *  - Compute is RECORDED: host compute functions append work to a plan and return at once; nothing
 *    has run when `observe` or `propose` returns. Tensor addresses belong to the device: never
 *    dereference them. The host may slice the plan for a frame budget, run it asynchronously, or
 *    capture and replay it; so the work recorded may depend on shapes only.
 *  - Strings are UTF-8 and NUL-terminated. Every pointer passed in is borrowed for the call, unless
 *    its comment says otherwise.
 *  - What describe, create and open fill comes zeroed, with struct_size set (and needs->levels 1).
 *  - Threads: calls for one drafter come from one thread at a time, of different drafters at the same time.
 *  - Host services: [any thread] at any time; [open only] while open runs; the others record into a plan, in the observe or
 *    propose that it came with.
 *  - Growth: the structs marked "frozen" never change; new abilities come as string ids through
 *    get_service (host -> plugin) and get_extension (plugin -> host).
 *
 * ABI 1.0 is a draft until a CUDA release has shipped; see docs/writing-a-drafter.md.
 */
#ifndef AERIE_DRAFTER_H
#define AERIE_DRAFTER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AERIE_DRAFTER_ABI_MAJOR 1u
#define AERIE_DRAFTER_ABI_MINOR 0u

#if defined(AERIE_DRAFTER_STATIC)
#define AERIE_DRAFTER_EXPORT
#elif defined(_WIN32)
#define AERIE_DRAFTER_EXPORT __declspec(dllexport)
#else
#define AERIE_DRAFTER_EXPORT __attribute__((visibility("default")))
#endif

enum {
  AERIE_D_OK = 0,
  AERIE_D_INVALID = 1,       /* an argument or the package is wrong */
  AERIE_D_UNSUPPORTED = 2,   /* valid, but this drafter does not do it */
  AERIE_D_NO_MEMORY = 3,
  AERIE_D_FAILED = 4
};

typedef struct aerie_drafter_error { /* frozen; owned by the caller, filled by the callee */
  uint32_t struct_size;
  int32_t code;
  char message[248];
} aerie_drafter_error;

/* ---- tensors -------------------------------------------------------------------------------- */

enum { AERIE_DTYPE_F32 = 0, AERIE_DTYPE_BF16 = 1, AERIE_DTYPE_INT8 = 2, AERIE_DTYPE_INT4 = 3, AERIE_DTYPE_I32 = 4,
       AERIE_DTYPE_FP8 = 5, AERIE_DTYPE_Q4_1 = 6, AERIE_DTYPE_MXFP4 = 7 };

/* A borrowed view of device memory, (rows, cols). `data` and `scales` are device addresses.
 * stride: elements from one row to the next (row-major tensors). */
typedef struct aerie_tensor { /* frozen */
  void *data;
  void *scales;
  int64_t rows;
  int64_t cols;
  int64_t stride;
  uint8_t dtype;  /* AERIE_DTYPE_* */
  uint8_t layout; /* 0 row-major, 1 packed weights */
  uint8_t reserved[6];
} aerie_tensor;

/* Columns [first, first + n) of a row-major f32 or i32 tensor. */
static inline aerie_tensor aerie_tensor_columns(aerie_tensor t, int64_t first, int64_t n) {
  t.data = (char *)t.data + first * 4;
  t.cols = n;
  return t;
}

/* ---- what the plugin is given in observe and propose ------------------------------------------ */

typedef struct aerie_plan aerie_plan;           /* host's; valid during the call it came with */
typedef struct aerie_attention aerie_attention; /* host's: KV slots and tree mask of these rows */
typedef struct aerie_kv aerie_kv;               /* host's: a KV cache made by kv_create */
typedef struct aerie_package aerie_package;     /* host's: the drafter's package */
typedef struct aerie_submodel aerie_submodel;   /* host's: a model made by aerie.model/1 */

/* Rows of several sequences, ragged; all tensors are device i32 vectors unless noted. Node ids are
 * below max_seqs * max_nodes (open) and unique in the batch; a plugin keeps the state of a fed node
 * at its id, so that the node's children find it. A row may stand for no node (a tree that the device draws): it is
 * valid all the same, and nobody reads what it proposes. */
typedef struct aerie_draft_rows { /* frozen */
  uint32_t struct_size;
  int32_t n;                        /* rows, >= 1 */
  int32_t n_seqs;
  int32_t level;                    /* propose: depth of the rows; 0 = roots. observe: 0 */
  aerie_tensor token;               /* [n] the row's token: t_{j+1} */
  aerie_tensor position;            /* [n] j, the position of the row's feature; without features j + 1 */
  aerie_tensor feature;             /* (n, feature_cols) f32: observe, if asked for; else data = NULL */
  aerie_tensor node;                /* [n] propose: id of the row's node */
  aerie_tensor parent;              /* [n] propose, level > 0: id of its parent */
  aerie_tensor last_row;            /* [n_seqs] observe: each sequence's newest row */
  aerie_tensor root;                /* [n_seqs] observe: node id of each sequence's root */
  aerie_tensor sequence;            /* observe: [n_seqs] sequence ids; propose: [n] the sequence of each row */
  const aerie_attention *attention; /* pass on to decoder_layer / forward; propose at level 0: rows attend to nothing */
} aerie_draft_rows;

/* Propose: where candidates go. The plugin passes it to propose_hidden or one of its kin. */
typedef struct aerie_candidates aerie_candidates;

/* Host-side proposals (HOST_TOKENS drafters): one sequence at a time, all tokens in host memory. */
typedef struct aerie_host_context { /* frozen */
  uint32_t struct_size;
  int32_t seq;
  const int32_t *tokens; /* [n_tokens] committed tokens, oldest first; the last one is the root */
  int32_t n_tokens;
  int32_t width;         /* children per node the policy would like */
  int32_t max_depth;
  int32_t reserved;
} aerie_host_context;

/* Fill at most `capacity` (1 or more) nodes: token[i] is below the target's vocabulary (those that can never be drawn are dropped
 * with what stands on them); parent[i] is -1 (the root) or a smaller index; confidence in [0, 1]: of the token where its parent came true, not of the path. */
typedef struct aerie_host_candidates { /* frozen */
  uint32_t struct_size;
  int32_t capacity;
  int32_t count;
  int32_t reserved;
  int32_t *token;
  int32_t *parent;
  float *confidence;
} aerie_host_candidates;

/* ---- host services ------------------------------------------------------------------------------ */

typedef struct aerie_drafter_host aerie_drafter_host;
struct aerie_drafter_host { /* frozen; alive until destroy has returned */
  uint32_t struct_size;
  uint32_t abi_major, abi_minor;
  uint32_t reserved;
  void *context;
  /* A service table or NULL. Ids: AERIE_SERVICE_*. [any thread] */
  const void *(*get_service)(const aerie_drafter_host *host, const char *id);
};

#define AERIE_SERVICE_LOG "aerie.log/1"
typedef struct aerie_service_log { /* frozen */
  uint32_t struct_size;
  uint32_t reserved;
  /* level: 0 error, 1 warning, 2 info, 3 debug. Goes to the application's log hook. [any thread] */
  void (*log)(const aerie_drafter_host *host, int32_t level, const char *message);
} aerie_service_log;

#define AERIE_SERVICE_ALLOC "aerie.alloc/1"
typedef struct aerie_service_alloc { /* frozen */
  uint32_t struct_size;
  uint32_t reserved;
  void *(*alloc)(const aerie_drafter_host *host, size_t bytes); /* 64-byte aligned; NULL if none. [any thread] */
  void (*free)(const aerie_drafter_host *host, void *memory);   /* [any thread] */
} aerie_service_alloc;

/* A decoder layer: x -> x + attn(norm1(x)) -> + mlp(norm2(.)). Llama's layer; absent pieces have
 * data = NULL (EAGLE: attn_norm). Weights packed. */
typedef struct aerie_decoder_layer { /* frozen */
  uint32_t struct_size;
  int32_t heads, kv_heads, head_dim;
  float rms_eps;
  uint32_t reserved;
  aerie_tensor attn_norm; /* (1, H) or absent: identity */
  aerie_tensor qkv;       /* ((heads + 2 kv_heads) * head_dim, H): rows q, k, v */
  aerie_tensor qkv_bias;  /* (1, ...) or absent */
  aerie_tensor o;         /* (H, heads * head_dim) */
  aerie_tensor mlp_norm;  /* (1, H) */
  aerie_tensor gate_up;   /* (2F, H): rows gate, up */
  aerie_tensor down;      /* (H, F) */
} aerie_decoder_layer;

#define AERIE_SERVICE_PACKAGE "aerie.package/1"
typedef struct aerie_service_package { /* frozen; [open only] */
  uint32_t struct_size;
  uint32_t reserved;
  /* A tensor of the package, on the device, alive until destroy. rows, cols: the shape it must have, 0 for
   * any. AERIE_D_INVALID: absent or mis-shaped (the error message is ready to be returned as it is). */
  int32_t (*tensor)(const aerie_package *package, const char *name, int64_t rows, int64_t cols, aerie_tensor *out,
                    aerie_drafter_error *err);
  int32_t (*has)(const aerie_package *package, const char *name); /* 1: there is such a tensor, 0: not */
  /* A hyper-parameter by name; `fallback` when absent. */
  double (*param)(const aerie_package *package, const char *name, double fallback);
  /* The same for an integer in [least, most]; without it, or outside: AERIE_D_INVALID and the message. */
  int32_t (*integer)(const aerie_package *package, const char *name, int32_t least, int32_t most, int32_t *out,
                     aerie_drafter_error *err);
  /* A decoder layer of width `hidden` whose tensors begin with `prefix` ("layers.0."): attn_norm (optional),
   * attn.qkv (.., qkv_cols), attn.qkv.bias (optional), attn.o, mlp_norm, mlp.gate_up, mlp.down; parameters heads,
   * kv_heads, head_dim, ffn, rms_eps (1e-5). Everything is checked. */
  int32_t (*decoder_layer)(const aerie_package *package, const char *prefix, int64_t hidden, int64_t qkv_cols,
                           aerie_decoder_layer *out, aerie_drafter_error *err);
} aerie_service_package;

typedef struct aerie_kv_desc { /* frozen */
  uint32_t struct_size;
  int32_t layers, kv_heads, head_dim;
  float rope_theta;
  uint32_t reserved;
} aerie_kv_desc;

enum { AERIE_ACT_SILU = 0, AERIE_ACT_GELU_TANH = 1, AERIE_ACT_RELU = 2 };

/* Recording functions return AERIE_D_OK or a code; the first failure also sticks to the plan, so a
 * plugin may ignore the codes inside observe and propose. Shapes are checked. R = rows; what stands as (R, N) is f32
 * row-major. An out may have more rows than are written, and is no input of its op unless that is said. */
#define AERIE_SERVICE_COMPUTE "aerie.compute/1"
typedef struct aerie_service_compute { /* frozen */
  uint32_t struct_size;
  uint32_t reserved;
  /* Persistent f32 tensor, zeroed, freed after destroy. [open only] */
  int32_t (*tensor_create)(const aerie_drafter_host *host, int64_t rows, int64_t cols, aerie_tensor *out);
  /* One KV cache a drafter, of 1 to 64 layers; the host keeps slots, rollback and the tree mask. Rotary angles are scaled as the
   * package's parameters rope_scaling.* say, if it has them. Refused to HOST_TOKENS drafters, which are shown no rows that
   * could fill it. [open only] */
  int32_t (*kv_create)(const aerie_drafter_host *host, const aerie_kv_desc *desc, aerie_kv **out);
  /* f32 working memory until the plan has run; its rows lie end to end (stride = cols). */
  int32_t (*scratch)(aerie_plan *plan, int64_t rows, int64_t cols, aerie_tensor *out);
  /* out[r] = target embedding of ids[r]. ids: i32 [R], out: (R, H). */
  int32_t (*embed_target)(aerie_plan *plan, const aerie_tensor *ids, const aerie_tensor *out);
  /* The same of the drafter's own table (V or more, N), of any dtype; out: (R, N). */
  int32_t (*embed)(aerie_plan *plan, const aerie_tensor *table, const aerie_tensor *ids, const aerie_tensor *out);
  /* out (R, N) = x (R, K) w^T + bias + residual. w: packed (N, K), bias: (1, N), residual: (R, N); the latter two may be
   * NULL, and residual may be out. */
  int32_t (*linear)(aerie_plan *plan, const aerie_tensor *x, const aerie_tensor *w, const aerie_tensor *bias,
                    const aerie_tensor *residual, const aerie_tensor *out);
  /* out[r] = x[r] / sqrt(mean(x[r]^2) + eps) * weight. x, out: (R, N), weight: (1, N). out may be x. */
  int32_t (*rms_norm)(aerie_plan *plan, const aerie_tensor *x, const aerie_tensor *weight, float eps,
                      const aerie_tensor *out);
  /* Each element through AERIE_ACT_*. x, out: (R, N). out may be x. */
  int32_t (*activate)(aerie_plan *plan, int32_t kind, const aerie_tensor *x, const aerie_tensor *out);
  /* out = a + b, all (R, N). out may be a. */
  int32_t (*add)(aerie_plan *plan, const aerie_tensor *a, const aerie_tensor *b, const aerie_tensor *out);
  /* dst[dst_index[r]] = src[src_index[r]], r < n. src, dst: f32 of equal width, not overlapping; indices: i32 [n], NULL: r
   * itself; a row whose index lies outside is left alone. */
  int32_t (*copy_rows)(aerie_plan *plan, const aerie_tensor *src, const aerie_tensor *src_index,
                       const aerie_tensor *dst, const aerie_tensor *dst_index, int64_t n);
  /* One decoder layer over `rows` with layer `layer` of `kv`; x, out: (rows->n, H). */
  int32_t (*decoder_layer)(aerie_plan *plan, const aerie_decoder_layer *w, aerie_kv *kv, int32_t layer,
                           const aerie_draft_rows *rows, const aerie_tensor *x, const aerie_tensor *out);
  /* As decoder_layer, but its attention reads attn_in (R, K), K = columns of w->qkv, in place of
   * attn_norm(x) (EAGLE-3: K = 2H); x is the residual. w->attn_norm is not used. */
  int32_t (*decoder_layer_from)(aerie_plan *plan, const aerie_decoder_layer *w, aerie_kv *kv, int32_t layer,
                                const aerie_draft_rows *rows, const aerie_tensor *attn_in, const aerie_tensor *x,
                                const aerie_tensor *out);
  /* Candidates, once in every propose by one of these functions: the target's LM head over hidden (n * levels, H), or the
   * drafter's own logits (n * levels, V or the length of vocab_map), then
   * top-k (with the target's own dice under shared draft noise). Row r * levels + l proposes the
   * children at depth level + l + 1 of row r's path. The host may find the LM head's best through a low-rank
   * stand-in of the target's package and score those with the head itself. `vocab_map`: i32 ids of the target, or NULL. */
  int32_t (*propose_hidden)(aerie_plan *plan, const aerie_tensor *hidden, aerie_candidates *out);
  int32_t (*propose_logits)(aerie_plan *plan, const aerie_tensor *logits, const aerie_tensor *vocab_map,
                            aerie_candidates *out);
  /* Candidates of an LM head of the drafter's own: linear(hidden, w, bias), then as propose_logits, the same candidates
   * to the bit, but without logits in memory. hidden: (n * levels, K), w: (V or the length of vocab_map, K); bias may be
   * NULL. */
  int32_t (*propose_head)(aerie_plan *plan, const aerie_tensor *hidden, const aerie_tensor *w, const aerie_tensor *bias,
                          const aerie_tensor *vocab_map, aerie_candidates *out);
  /* The same with a head for each level (Medusa's): hidden (n, K), w (V, K). Called for level 0, 1, ... of the call. */
  int32_t (*propose_level)(aerie_plan *plan, int32_t level, const aerie_tensor *hidden, const aerie_tensor *w,
                           const aerie_tensor *bias, aerie_candidates *out);
} aerie_service_compute;

/* Run any packaged target as a draft model. */
#define AERIE_SERVICE_MODEL "aerie.model/1"
typedef struct aerie_service_model { /* frozen */
  uint32_t struct_size;
  uint32_t reserved;
  /* The drafter's package as a model with a KV cache of its own. Fails when it is no target
   * package, and for HOST_TOKENS drafters. [open only] */
  int32_t (*open)(const aerie_drafter_host *host, const aerie_package *package, aerie_submodel **out,
                  aerie_drafter_error *err);
  /* 64-bit hash of the vocabulary (size, used ids and token bytes); equal hashes: same ids. */
  uint64_t (*vocab_hash)(const aerie_submodel *model);
  int32_t (*hidden_size)(const aerie_submodel *model); /* like vocab_hash, while the drafter lives */
  /* Embedding, all layers, final norm: hidden (n, hidden_size). */
  int32_t (*forward)(aerie_plan *plan, aerie_submodel *model, const aerie_draft_rows *rows,
                     const aerie_tensor *hidden);
  /* The model's own LM head, then as propose_hidden. */
  int32_t (*propose)(aerie_plan *plan, aerie_submodel *model, const aerie_tensor *hidden, aerie_candidates *out);
} aerie_service_model;

/* The decoder layers of a package that describes them as a target's are (docs/package-format.md), of any family that targets have.
 * Some read the target's keys and values in place of their own, of the text before a sequence's newest token, and take its position for
 * all nodes of a tree. Such layers are given each sequence's newest row alone when rows are observed. */
#define AERIE_SERVICE_LAYERS "aerie.layers/1"
typedef struct aerie_layers aerie_layers;
typedef struct aerie_service_layers { /* frozen */
  uint32_t struct_size;
  uint32_t reserved;
  /* The package's layers, with a KV cache for them, which is the drafter's one. Fails where the package has none, and for HOST_TOKENS
   * drafters. [open only] */
  int32_t (*open)(const aerie_drafter_host *host, const aerie_package *package, aerie_layers **out, aerie_drafter_error *err);
  int32_t (*hidden_size)(const aerie_layers *layers); /* H; like rms_eps, while the drafter lives */
  float (*rms_eps)(const aerie_layers *layers);
  /* All of them, one after the other: out (rows->n, H) of x (rows->n, H). out may be x. Of layers that read the target's, in observe
   * (rows->n_seqs, H): of the rows of rows->last_row. */
  int32_t (*forward)(aerie_plan *plan, aerie_layers *layers, const aerie_draft_rows *rows, const aerie_tensor *x, const aerie_tensor *out);
} aerie_service_layers;

/* The same layers over a block of rows that see each other, those behind as well as those before (DFlash's block diffusion): what the drafter
 * knows of the text is keys and values made of what it is shown, and every cycle a block of a sequence's newest token and fillers behind it
 * goes through the layers once. A block leaves nothing behind. */
#define AERIE_SERVICE_BLOCK "aerie.block/1"
typedef struct aerie_service_block { /* frozen */
  uint32_t struct_size;
  uint32_t reserved;
  /* In place of aerie.layers/1's open, whose hidden_size and rms_eps answer for these, too. rows: of a block, 2 .. 33; filler: a token of the
   * target. [open only] */
  int32_t (*open)(const aerie_drafter_host *host, const aerie_package *package, int32_t rows, int32_t filler, aerie_layers **out,
                  aerie_drafter_error *err);
  /* In observe: each layer's keys and values of x (rows->n, H), as they are, at the rows' positions. */
  int32_t (*feed)(aerie_plan *plan, aerie_layers *layers, const aerie_draft_rows *rows, const aerie_tensor *x);
  /* In propose, at level 0: the target's embedding of [row r's token, filler, filler, ...] at the positions behind all that r's sequence was
   * fed, through all layers. In a layer with a window a row sees of its block but those before it, as DFlash's are trained. out (rows->n * block,
   * H): row r's block is rows r * block on. */
  int32_t (*forward)(aerie_plan *plan, aerie_layers *layers, const aerie_draft_rows *rows, const aerie_tensor *out);
} aerie_service_block;

/* ---- the plugin --------------------------------------------------------------------------------- */

enum {
  AERIE_DRAFTER_FEATURES = 1 << 0,      /* observe carries target features */
  AERIE_DRAFTER_HOST_TOKENS = 1 << 1,   /* propose_host instead of observe/propose */
  AERIE_DRAFTER_TAKES_TARGET = 1 << 2,  /* opens packages of kind target (external draft model) */
  AERIE_DRAFTER_NO_PACKAGE = 1 << 3,    /* opens without a package */
  AERIE_DRAFTER_SERIAL = 1 << 4,        /* one call at a time over all drafters with this flag of this library */
  AERIE_DRAFTER_ONE_SEQUENCE = 1 << 5   /* rows of one sequence a call (n_seqs = 1), at a price in batches */
};

typedef struct aerie_drafter_desc { /* frozen */
  uint32_t struct_size;
  uint32_t flags;          /* AERIE_DRAFTER_* */
  char id[64];             /* [a-z0-9_.-]; packages name their plugin by it */
  char title[96];
  char version[32];
} aerie_drafter_desc;

typedef struct aerie_drafter_open_info { /* frozen; alive during open */
  uint32_t struct_size;
  int32_t max_seqs;                 /* sequence ids are below it */
  int32_t max_nodes;                /* node ids a sequence: seq * max_nodes + 0 .. max_nodes - 1 */
  int32_t max_rows;                 /* rows in one call */
  int32_t hidden;                   /* target: H */
  int32_t vocab;                    /* target: V */
  uint64_t target_vocab_hash;
  const char *target_fingerprint;   /* hex */
  const aerie_package *package;     /* NULL for NO_PACKAGE drafters */
} aerie_drafter_open_info;

enum { AERIE_FEATURE_FINAL = -1 }; /* hidden state after the final norm (EAGLE-1/2) */

typedef struct aerie_drafter_needs { /* frozen; filled by open */
  uint32_t struct_size;
  int32_t n_taps;                   /* feature_cols = n_taps * H; <= 8 */
  int32_t taps[8];                  /* AERIE_FEATURE_FINAL or i: input of target layer i, pre-norm; the number of
                                       layers: the output of the last */
  int32_t levels;                   /* levels answered by one propose, 1 .. 32; above 1 only the roots are asked
                                       about, once a cycle, and every node of a depth has the same children */
  int32_t max_depth;                /* deepest node worth asking for; 0: no limit (levels > 1: levels) */
  int32_t max_width;                /* most children a node; 0: no limit */
} aerie_drafter_needs;

typedef struct aerie_drafter { /* frozen table; made by create */
  uint32_t struct_size;
  uint32_t reserved;
  void *self;
  void (*destroy)(void *self);
  /* Read the package, check it against the target, allocate all memory. Fails with one clear error. */
  int32_t (*open)(void *self, const aerie_drafter_open_info *info, aerie_drafter_needs *needs,
                  aerie_drafter_error *err);
  int32_t (*begin)(void *self, int32_t seq); /* a sequence starts (or starts again, empty); if it fails, begun again before use */
  void (*end)(void *self, int32_t seq);      /* its id may be begun anew; not called once the drafter is out */
  /* Committed rows, in order, any chunking: rows (feature f_j, token t_{j+1}), or with no features
   * every token t_0, t_1, ... Rows of a plan that never ran, and a sequence's newest, may be shown again. */
  int32_t (*observe)(void *self, aerie_plan *plan, const aerie_draft_rows *rows);
  /* Children of the frontier rows. Level 0: the roots, whose rows were observed last. */
  int32_t (*propose)(void *self, aerie_plan *plan, const aerie_draft_rows *rows, aerie_candidates *out);
  int32_t (*propose_host)(void *self, const aerie_host_context *context, aerie_host_candidates *out);
  /* Forget committed rows at positions >= len (rewind); of a HOST_TOKENS drafter: tokens. Host-managed KV is already rolled
   * back. */
  int32_t (*rollback)(void *self, int32_t seq, int32_t len); /* NULL: it keeps nothing else (see AERIE_EXTENSION_FORK) */
  const void *(*get_extension)(void *self, const char *id); /* asked once, after open; NULL: unknown */
} aerie_drafter;

/* An extension a HOST_TOKENS drafter may offer: rows that the target reads beside the tree in the same pass. They
 * are never accepted and leave nothing behind; what the target would say after each is handed back (Lookahead's
 * Jacobi window). */
#define AERIE_EXTENSION_EXTRA_ROWS "aerie.extra_rows/1"
typedef struct aerie_extension_extra_rows { /* frozen; alive until destroy */
  uint32_t struct_size;
  int32_t max_rows; /* most rows a cycle, 1 .. 96; fewer are run where the tree leaves less room */
  /* Rows beside this cycle's tree, at most `capacity`: a forest under the root (the newest token). parent[i] is -1
   * (the root) or a smaller index. Called after propose_host. */
  int32_t (*rows)(void *self, int32_t seq, int32_t capacity, int32_t *token, int32_t *parent, int32_t *count);
  /* choice[i]: the token the target picks after row i and its ancestors (the argmax at temperature 0, else the draw
   * with the session's sampler and its position's own noise), i < count of the last `rows`. -1: none. A discarded
   * cycle brings no call. */
  int32_t (*chosen)(void *self, int32_t seq, int32_t n, const int32_t *choice);
} aerie_extension_extra_rows;

/* An extension for drafters that keep state of their own in a sequence, beyond host-managed KV and what the newest row
 * left: a forked session's sequence goes on where the other is. Without it, a drafter that has `rollback` is shown the
 * text of a fork from its beginning, and one that has not is taken to keep no such state: its KV is shared, and its
 * newest row shown again. The same holds where a text's beginning is found in KV memory: only drafters with neither
 * are spared it. */
#define AERIE_EXTENSION_FORK "aerie.fork/1"
typedef struct aerie_extension_fork { /* frozen; alive until destroy */
  uint32_t struct_size;
  uint32_t reserved;
  /* Sequence `to`, which has begun and is empty, becomes what `from` is. A rollback of `to` may follow. */
  int32_t (*fork)(void *self, int32_t from, int32_t to);
} aerie_extension_fork;

typedef struct aerie_drafter_plugin_table { /* frozen */
  uint32_t struct_size;
  uint32_t abi_major;        /* AERIE_DRAFTER_ABI_MAJOR */
  uint32_t abi_min_minor;    /* oldest host minor this plugin can live with */
  uint32_t abi_built_minor;  /* AERIE_DRAFTER_ABI_MINOR of the header it was built with */
  /* The i-th drafter in this library; AERIE_D_INVALID past the last. Needs no host. [any thread] */
  int32_t (*describe)(uint32_t i, aerie_drafter_desc *out);
  /* A drafter of the kind `id`. What is in `out` after a failure is not used. [any thread] */
  int32_t (*create)(const aerie_drafter_host *host, const char *id, aerie_drafter *out, aerie_drafter_error *err);
} aerie_drafter_plugin_table;

typedef const aerie_drafter_plugin_table *(*aerie_drafter_plugin_entry_fn)(void);
/* The one exported symbol. Plugins linked into one program cannot all have it: compile each with AERIE_DRAFTER_STATIC
 * defined as a name, and its entry is aerie_drafter_plugin_entry_NAME, for aerie_runtime_add_plugin. */
#if defined(AERIE_DRAFTER_STATIC)
#define AERIE_DRAFTER_JOIN2(a, b) a##b
#define AERIE_DRAFTER_JOIN(a, b) AERIE_DRAFTER_JOIN2(a, b)
#define aerie_drafter_plugin_entry AERIE_DRAFTER_JOIN(aerie_drafter_plugin_entry_, AERIE_DRAFTER_STATIC)
#endif
AERIE_DRAFTER_EXPORT const aerie_drafter_plugin_table *aerie_drafter_plugin_entry(void);

#ifdef __cplusplus
}
#endif
#endif /* AERIE_DRAFTER_H */

//! Generated from capi/include/aerie/aerie.h by bindings/generate.py: do not edit.

use core::marker::{PhantomData, PhantomPinned};
use std::os::raw::{c_char, c_void};
use super::*;

/// `#define AERIE_VERSION_MAJOR 0u`
pub const AERIE_VERSION_MAJOR: u32 = 0;
/// `#define AERIE_VERSION_MINOR 1u`
pub const AERIE_VERSION_MINOR: u32 = 1;
/// `#define AERIE_VERSION_PATCH 0u`
pub const AERIE_VERSION_PATCH: u32 = 0;
/// `AERIE_OK = 0`
pub const AERIE_OK: i32 = 0;
/// `AERIE_E_INVALID_ARGUMENT = 1`
pub const AERIE_E_INVALID_ARGUMENT: i32 = 1;
/// `AERIE_E_NOT_FOUND = 2`
pub const AERIE_E_NOT_FOUND: i32 = 2;
/// `AERIE_E_IO = 3`
pub const AERIE_E_IO: i32 = 3;
/// damaged or hostile file
pub const AERIE_E_BAD_FORMAT: i32 = 4;
/// things that do not belong together
pub const AERIE_E_MISMATCH: i32 = 5;
/// `AERIE_E_UNSUPPORTED = 6`
pub const AERIE_E_UNSUPPORTED: i32 = 6;
/// `AERIE_E_OUT_OF_MEMORY = 7`
pub const AERIE_E_OUT_OF_MEMORY: i32 = 7;
/// `AERIE_E_CANCELLED = 8`
pub const AERIE_E_CANCELLED: i32 = 8;
/// a stated limit is reached
pub const AERIE_E_LIMIT: i32 = 9;
/// `AERIE_E_PLUGIN = 10`
pub const AERIE_E_PLUGIN: i32 = 10;
/// `AERIE_E_DEVICE = 11`
pub const AERIE_E_DEVICE: i32 = 11;
/// the session or batch is in use by another thread or a hook's caller, or the session by a batch
pub const AERIE_E_BUSY: i32 = 12;
/// `AERIE_E_INTERNAL = 13`
pub const AERIE_E_INTERNAL: i32 = 13;
/// the same kernels for every row: same seed, same text, bit for bit
pub const AERIE_PREFILL_EXACT: i32 = 0;
/// cuda, with cuBLASLt installed: prompts are read 512 tokens at a time by its products. Not
/// bit-exact: another cutting of the prompt, or company in a batch, may give another text.
/// Verification and decoding stay as they are. Rows of such prompts are shared among this
/// model's sessions alone; a saved session goes back only to a model opened like this
pub const AERIE_PREFILL_FAST: i32 = 1;
/// `AERIE_TREE_DEFAULT = 0`
pub const AERIE_TREE_DEFAULT: i32 = 0;
/// `AERIE_TREE_CHAIN = 1`
pub const AERIE_TREE_CHAIN: i32 = 1;
/// `AERIE_TREE_STATIC = 2`
pub const AERIE_TREE_STATIC: i32 = 2;
/// `AERIE_TREE_EAGLE2 = 3`
pub const AERIE_TREE_EAGLE2: i32 = 3;
/// `AERIE_TREE_BACKBONE = 4`
pub const AERIE_TREE_BACKBONE: i32 = 4;
/// `AERIE_TREE_CAST = 5`
pub const AERIE_TREE_CAST: i32 = 5;
/// `AERIE_TREE_AUTO = 6`
pub const AERIE_TREE_AUTO: i32 = 6;
/// `AERIE_NOISE_SHARED = 0`
pub const AERIE_NOISE_SHARED: i32 = 0;
/// `AERIE_NOISE_NONE = 1`
pub const AERIE_NOISE_NONE: i32 = 1;
/// same seed, same text, bit for bit (docs/exactness.md)
pub const AERIE_VERIFY_EXACT: i32 = 0;
/// the papers' sampled-draft rule: exact in distribution only; chain and static trees
pub const AERIE_VERIFY_SAMPLED: i32 = 1;
/// the budget is spent; step again
pub const AERIE_STEP_PENDING: i32 = 0;
/// tokens came out; step again for more
pub const AERIE_STEP_TOKENS: i32 = 1;
/// tokens may have come out; the text has ended (finish)
pub const AERIE_STEP_DONE: i32 = 2;
/// `AERIE_FINISH_NONE = 0`
pub const AERIE_FINISH_NONE: i32 = 0;
/// `AERIE_FINISH_EOS = 1`
pub const AERIE_FINISH_EOS: i32 = 1;
/// `AERIE_FINISH_STOP_TOKEN = 2`
pub const AERIE_FINISH_STOP_TOKEN: i32 = 2;
/// `AERIE_FINISH_STOP_STRING = 3`
pub const AERIE_FINISH_STOP_STRING: i32 = 3;
/// `AERIE_FINISH_CONTEXT = 4`
pub const AERIE_FINISH_CONTEXT: i32 = 4;
/// `AERIE_FINISH_CONSTRAINT = 5`
pub const AERIE_FINISH_CONSTRAINT: i32 = 5;

/// `struct aerie_runtime`
#[repr(C)]
pub struct aerie_runtime {
    _opaque: [u8; 0],
    _not_send: PhantomData<(*mut u8, PhantomPinned)>,
}

/// `struct aerie_model`
#[repr(C)]
pub struct aerie_model {
    _opaque: [u8; 0],
    _not_send: PhantomData<(*mut u8, PhantomPinned)>,
}

/// `struct aerie_drafter_handle`
#[repr(C)]
pub struct aerie_drafter_handle {
    _opaque: [u8; 0],
    _not_send: PhantomData<(*mut u8, PhantomPinned)>,
}

/// `struct aerie_session`
#[repr(C)]
pub struct aerie_session {
    _opaque: [u8; 0],
    _not_send: PhantomData<(*mut u8, PhantomPinned)>,
}

/// `struct aerie_batch`
#[repr(C)]
pub struct aerie_batch {
    _opaque: [u8; 0],
    _not_send: PhantomData<(*mut u8, PhantomPinned)>,
}

/// level: 0 error, 1 warning, 2 info, 3 debug. Called on whatever thread noticed; must not call back
/// into the library.
pub type aerie_log_fn = Option<unsafe extern "C" fn(user: *mut c_void, level: i32, message: *const c_char)>;

/// NULL: none left
pub type aerie_alloc_fn = Option<unsafe extern "C" fn(user: *mut c_void, bytes: usize, alignment: usize) -> *mut c_void>;

/// `void (*aerie_free_fn)(void *user, void *memory)`
pub type aerie_free_fn = Option<unsafe extern "C" fn(user: *mut c_void, memory: *mut c_void)>;

/// Run fn(context, i) for every i in \[0, n) and return when all are done. Tasks never wait for each
/// other: running them one by one is fine. Called on the thread that steps, in its own floating-point mode, and returns there: a
/// job system of fibers must not let the one that waits go on on another thread, or the text may be another.
pub type aerie_parallel_for_fn = Option<unsafe extern "C" fn(user: *mut c_void, r#fn: Option<unsafe extern "C" fn(context: *mut c_void, i: i32)>, context: *mut c_void, n: i32)>;

/// `const struct aerie_drafter_plugin_table *(*aerie_plugin_entry_fn)(void)`
pub type aerie_plugin_entry_fn = Option<unsafe extern "C" fn() -> *const aerie_drafter_plugin_table>;

/// Return 0 to cancel the load (AERIE_E_CANCELLED). Called on the loading thread.
pub type aerie_progress_fn = Option<unsafe extern "C" fn(user: *mut c_void, done_bytes: u64, total_bytes: u64) -> i32>;

/// The KV budget is spent, and no kept prefix is left to drop. Called on the stepping thread, which holds no lock; may
/// release, rewind or otherwise call on OTHER sessions of the model than the one that wants room (its release, its batch's,
/// or that of one which another thread is stepping from its own callback waits for ever). In a batch's step every member but
/// that one may be called on too: any call on that one, and a step of any member, gives AERIE_E_BUSY, so that
/// aerie_session_statistics tells which it is; a member with nothing left to continue fails in that step with
/// AERIE_E_INVALID_ARGUMENT. Return nonzero to try again, as often as it does, until the step is cancelled. 0: the step fails with
/// AERIE_E_LIMIT, nothing is lost, and the session may be stepped again when there is room.
pub type aerie_kv_full_fn = Option<unsafe extern "C" fn(user: *mut c_void, positions_wanted: i32) -> i32>;

/// Bytes of a token in running text (previous: the token before it, -1 none). Return the byte count
/// and point \*bytes at memory that stays valid as long as the source is held; -1: no such token.
pub type aerie_token_bytes_fn = Option<unsafe extern "C" fn(user: *mut c_void, token: i32, previous: i32, bytes: *mut *const c_char) -> i32>;

/// `void (*aerie_hold_fn)(void *user)`
pub type aerie_hold_fn = Option<unsafe extern "C" fn(user: *mut c_void)>;

/// `struct aerie_error`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aerie_error {
    /// set by the caller, so that the library knows how much it may write
    pub struct_size: u32,
    /// `int32_t code`
    pub code: i32,
    /// UTF-8, NUL-terminated, cut if longer
    pub message: [c_char; 504],
}
default_is_zero!(aerie_error);

/// `struct aerie_runtime_options`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aerie_runtime_options {
    /// `uint32_t struct_size`
    pub struct_size: u32,
    /// 0: one for each physical core this process may use
    pub threads: i32,
    /// "cpu" (NULL: the same), "cpu:AVX2" (the level of docs/exactness.md with that name, for
    /// one text on all machines), "cuda" or "cuda:N" (libaerie-cuda)
    pub device: *const c_char,
    /// NULL: silence
    pub log: aerie_log_fn,
    /// `void *log_user`
    pub log_user: *mut c_void,
    /// both or none: device memory (KV, working memory)
    pub alloc: aerie_alloc_fn,
    /// `aerie_free_fn free`
    pub free: aerie_free_fn,
    /// `void *alloc_user`
    pub alloc_user: *mut c_void,
    /// the host's job system in place of our threads; `threads` says how many it has, and
    /// with 1 it is not asked
    pub parallel_for: aerie_parallel_for_fn,
    /// `void *parallel_user`
    pub parallel_user: *mut c_void,
}
default_is_zero!(aerie_runtime_options);

/// `struct aerie_plugin_info`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aerie_plugin_info {
    /// `uint32_t struct_size`
    pub struct_size: u32,
    /// AERIE_DRAFTER_\* of drafter.h
    pub flags: u32,
    /// this and the other strings are borrowed from the runtime
    pub id: *const c_char,
    /// `const char *title`
    pub title: *const c_char,
    /// `const char *version`
    pub version: *const c_char,
    /// `const char *path`
    pub path: *const c_char,
}
default_is_zero!(aerie_plugin_info);

/// `struct aerie_model_options`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aerie_model_options {
    /// `uint32_t struct_size`
    pub struct_size: u32,
    /// KV budget shared by the model's sessions, in tokens; 0: 4 x the context, from 4096 to 32768
    pub kv_positions: i32,
    /// `aerie_progress_fn progress`
    pub progress: aerie_progress_fn,
    /// `void *progress_user`
    pub progress_user: *mut c_void,
    /// 0 f32, 1 bf16, 2 int8 (a scale for each position and head)
    pub kv_dtype: i32,
    /// nonzero: checksum raw tensors too (reads the whole file)
    pub check_data: i32,
    /// 0: texts' keys and values stay usable for later sessions that begin alike, until their
    /// room is wanted; -1: off
    pub keep_prefixes: i32,
    /// AERIE_PREFILL_\*
    pub prefill: i32,
    /// NULL: AERIE_E_LIMIT at once
    pub kv_full: aerie_kv_full_fn,
    /// `void *kv_full_user`
    pub kv_full_user: *mut c_void,
}
default_is_zero!(aerie_model_options);

/// `struct aerie_model_info`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aerie_model_info {
    /// `uint32_t struct_size`
    pub struct_size: u32,
    /// `int32_t vocab_size`
    pub vocab_size: i32,
    /// `int32_t hidden_size`
    pub hidden_size: i32,
    /// `int32_t layers`
    pub layers: i32,
    /// `int32_t heads`
    pub heads: i32,
    /// `int32_t kv_heads`
    pub kv_heads: i32,
    /// `int32_t head_dim`
    pub head_dim: i32,
    /// `int32_t ffn`
    pub ffn: i32,
    /// `int32_t max_context`
    pub max_context: i32,
    /// -1: none
    pub bos_id: i32,
    /// `int32_t n_eos`
    pub n_eos: i32,
    /// borrowed from the model
    pub eos_ids: *const i32,
    /// `const char *name`
    pub name: *const c_char,
    /// hex; equal for requantised copies
    pub fingerprint: *const c_char,
    /// `uint64_t weight_bytes`
    pub weight_bytes: u64,
    /// `uint64_t kv_bytes_per_token`
    pub kv_bytes_per_token: u64,
    /// AERIE_PREFILL_\*: how the model was opened
    pub prefill: i32,
    /// `int32_t reserved0`
    pub reserved0: i32,
}
default_is_zero!(aerie_model_info);

/// A text as the target sees it, for training and analysis: rows are written where the caller wants them.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aerie_evaluate_options {
    /// `uint32_t struct_size`
    pub struct_size: u32,
    /// `int32_t n_taps`
    pub n_taps: i32,
    /// layers whose input is wanted; their number: the last one's output; -1: that after
    /// the final norm
    pub taps: *const i32,
    /// \[tokens\]\[n_taps \* hidden_size\]; NULL: none
    pub features: *mut f32,
    /// \[tokens\]\[vocab_size\]; NULL: none
    pub logits: *mut f32,
    /// counting tokens; 0 cancels. NULL: none
    pub progress: aerie_progress_fn,
    /// `void *progress_user`
    pub progress_user: *mut c_void,
}
default_is_zero!(aerie_evaluate_options);

/// `struct aerie_drafter_options`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aerie_drafter_options {
    /// `uint32_t struct_size`
    pub struct_size: u32,
    /// sessions that may use it at once, 1 .. 4096; 0: 8
    pub max_sessions: i32,
    /// path of a drafter package, or of a target used as draft model
    pub package: *const c_char,
    /// plugin id; NULL: what the package names, or the first that takes targets. Required
    /// without a package
    pub plugin: *const c_char,
    /// while the package is read; without one it is not called
    pub progress: aerie_progress_fn,
    /// `void *progress_user`
    pub progress_user: *mut c_void,
}
default_is_zero!(aerie_drafter_options);

/// frozen
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aerie_logit_bias {
    /// `int32_t token`
    pub token: i32,
    /// added to the token's logit; -INFINITY: it never comes
    pub bias: f32,
}
default_is_zero!(aerie_logit_bias);

/// Biases come first, then penalties, the session's constraint, temperature, top_k, top_p, min_p and the draw.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aerie_sampling {
    /// `uint32_t struct_size`
    pub struct_size: u32,
    /// 0: off
    pub top_k: i32,
    /// `uint64_t seed`
    pub seed: u64,
    /// 0: greedy, ties to the lowest id
    pub temperature: f32,
    /// 0 or \>= 1: off
    pub top_p: f32,
    /// 0: off
    pub min_p: f32,
    /// noise stream: sessions with equal seeds but different streams differ
    pub stream: u32,
    /// of each token in the text, prompt included: a logit above 0 is divided by it, any other
    /// multiplied; 0 or 1: off
    pub repetition_penalty: f32,
    /// taken from the logit of each token that was generated since the last append; 0: off
    pub presence_penalty: f32,
    /// the same, as often as it was generated; 0: off
    pub frequency_penalty: f32,
    /// penalties look at this many tokens, the newest; 0: all
    pub penalty_window: i32,
    /// copied; a token that is listed twice has the sum
    pub logit_bias: *const aerie_logit_bias,
    /// `int32_t n_logit_bias`
    pub n_logit_bias: i32,
    /// `int32_t reserved0`
    pub reserved0: i32,
}
default_is_zero!(aerie_sampling);

/// fields that the policy has not stay 0, or it is AERIE_E_INVALID_ARGUMENT
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aerie_tree_options {
    /// `uint32_t struct_size`
    pub struct_size: u32,
    /// AERIE_TREE_\*; default: auto (static under the sampled rule)
    pub policy: i32,
    /// chain: length (0: 5). eagle2, cast: total with the root (0: 60, 72 as published)
    pub nodes: i32,
    /// eagle2: levels after the first; 0: 5, or all of a one-pass drafter; -1: none.
    /// backbone: levels; 0: 7. cast; 0: 13
    pub depth: i32,
    /// eagle2, cast: children a node and frontier width; backbone: nodes a level; 0: 10 (cast: 12)
    pub top_k: i32,
    /// static: rank paths, 0: EAGLE's 25-node tree
    pub n_paths: i32,
    /// each path as its ranks followed by -1, every prefix a path too, e.g. 0,-1, 1,-1, 0,0,-1
    pub paths: *const i32,
    /// cast: C1 = C2 = C3; 0: 3
    pub threshold: f32,
    /// `int32_t reserved0`
    pub reserved0: i32,
}
default_is_zero!(aerie_tree_options);

/// `struct aerie_session_options`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aerie_session_options {
    /// `uint32_t struct_size`
    pub struct_size: u32,
    /// 0: the model's
    pub max_context: i32,
    /// NULL: plain decode
    pub drafter: *mut aerie_drafter_handle,
    /// NULL: greedy. What is pointed at is copied, here and below
    pub sampling: *const aerie_sampling,
    /// NULL: the default policy
    pub tree: *const aerie_tree_options,
    /// AERIE_NOISE_\*
    pub draft_noise: i32,
    /// AERIE_VERIFY_\*
    pub verify: i32,
    /// nonzero: the model's end-of-text ids are ordinary tokens
    pub ignore_eos: i32,
    /// `int32_t n_stop_tokens`
    pub n_stop_tokens: i32,
    /// further tokens that end the text; emitted, then stop
    pub stop_tokens: *const i32,
    /// at most 15; needs `drafter`
    pub n_more_drafters: i32,
    /// nonzero: what a constraint forces, or has usually come there, is left to the drafter, or to
    /// plain decode; to measure what it brings. The text is the same
    pub no_foresight: i32,
    /// further drafters: AERIE_TREE_AUTO chooses between all of them, cycle by
    /// cycle, by expected tokens a second; other trees use `drafter` alone. Each is opened
    /// for this model and holds one of its max_sessions
    pub more_drafters: *const *mut aerie_drafter_handle,
}
default_is_zero!(aerie_session_options);

/// Where a session has its tokens' bytes from: aerie_tokenizer_source (text.h) fills it, or a tokenizer of the host's own.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aerie_token_source {
    /// `uint32_t struct_size`
    pub struct_size: u32,
    /// `uint32_t reserved`
    pub reserved: u32,
    /// `void *user`
    pub user: *mut c_void,
    /// called on the thread that steps
    pub bytes: aerie_token_bytes_fn,
    /// called when a session takes the source; NULL (and so release): the host keeps `user` alive
    pub hold: aerie_hold_fn,
    /// called once for it when the session and its forks have let go, on whatever thread
    pub release: aerie_hold_fn,
}
default_is_zero!(aerie_token_source);

/// What may come next: a grammar (aerie_grammar_constraint of text.h), or a matcher of the host's own. The session keeps a
/// state for its text, and copies it to look ahead: in a cycle some hundreds of candidates of a large tree are tried by copy and
/// accept, and a mask is made for each token that comes. Functions return AERIE_OK or the code that the step ends with. They are
/// called on the thread that steps (destroy: on whatever one lets a state go), never two at a time for one session; a fork's
/// states are its own.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aerie_constraint {
    /// `uint32_t struct_size`
    pub struct_size: u32,
    /// `uint32_t reserved`
    pub reserved: u32,
    /// `void *user`
    pub user: *mut c_void,
    /// before the first token
    pub begin: Option<unsafe extern "C" fn(user: *mut c_void, state: *mut *mut c_void) -> i32>,
    /// `int32_t (*copy)(void *user, const void *state, void **copy)`
    pub copy: Option<unsafe extern "C" fn(user: *mut c_void, state: *const c_void, copy: *mut *mut c_void) -> i32>,
    /// Token t may come next: bit t % 32 of mask\[t / 32\], of n_words words that are all 0 before. What is beyond the model's
    /// vocabulary is ignored. None may: the text ends (AERIE_FINISH_CONSTRAINT). The model's end-of-text ids are allowed where
    /// the text may end.
    pub allowed: Option<unsafe extern "C" fn(user: *mut c_void, state: *mut c_void, mask: *mut u32, n_words: usize) -> i32>,
    /// it came next. AERIE_E_MISMATCH: it may not (asked of drafted
    /// tokens); the state is only destroyed then
    pub accept: Option<unsafe extern "C" fn(user: *mut c_void, state: *mut c_void, token: i32) -> i32>,
    /// `void (*destroy)(void *user, void *state)`
    pub destroy: Option<unsafe extern "C" fn(user: *mut c_void, state: *mut c_void)>,
    /// as in aerie_token_source
    pub hold: aerie_hold_fn,
    /// `aerie_hold_fn release`
    pub release: aerie_hold_fn,
    /// May be NULL. Tokens that very likely come next, one behind the other, since the constraint leaves no other text: at most
    /// `capacity`, \*n of them. They are drafts, which cost a row of a pass each; a wrong one is no error. The state stays where it
    /// is. An answer other than AERIE_OK, and one of copy or accept for a text that has not come yet, means: nothing is foreseen.
    pub forced: Option<unsafe extern "C" fn(user: *mut c_void, state: *mut c_void, tokens: *mut i32, capacity: usize, n: *mut usize) -> i32>,
}
default_is_zero!(aerie_constraint);

/// `struct aerie_fork_options`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aerie_fork_options {
    /// `uint32_t struct_size`
    pub struct_size: u32,
    /// noise stream of the fork; 0: a number of its own, from 2^31 up and the same ones at every run that
    /// forks in the same order, so that equal seeds do not make equal twins
    pub stream: u32,
}
default_is_zero!(aerie_fork_options);

/// frozen
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aerie_token {
    /// `int32_t id`
    pub id: i32,
    /// log-softmax of the target's raw logits
    pub logprob: f32,
    /// 1: it had been guessed, by a drafter or because of a constraint
    pub drafted: u8,
    /// `uint8_t reserved[7]`
    pub reserved: [u8; 7],
}
default_is_zero!(aerie_token);

/// `struct aerie_step_options`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aerie_step_options {
    /// `uint32_t struct_size`
    pub struct_size: u32,
    /// most tokens this step may emit; 0: whatever one cycle gives
    pub max_tokens: i32,
    /// 0: no limit. At least one slice of work is done
    pub budget_us: i64,
}
default_is_zero!(aerie_step_options);

/// `struct aerie_step_result`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aerie_step_result {
    /// `uint32_t struct_size`
    pub struct_size: u32,
    /// AERIE_STEP_\*
    pub state: i32,
    /// borrowed until the next call on this session
    pub tokens: *const aerie_token,
    /// `int32_t n_tokens`
    pub n_tokens: i32,
    /// AERIE_FINISH_\*
    pub finish: i32,
    /// STOP_STRING: bytes at the end of the text, from the stop string on, to cut
    pub stop_bytes: i32,
    /// `int32_t reserved`
    pub reserved: i32,
}
default_is_zero!(aerie_step_result);

/// `struct aerie_statistics`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aerie_statistics {
    /// `uint32_t struct_size`
    pub struct_size: u32,
    /// 1: a drafter is out: it has failed too often, or found no memory or KV too often in this session
    pub quarantined: i32,
    /// tokens generated
    pub emitted: u64,
    /// verify passes that emitted
    pub cycles: u64,
    /// of these, not cut short by a limit, stop or end of text
    pub full_cycles: u64,
    /// tokens of the full cycles: tau = full_emitted / full_cycles
    pub full_emitted: u64,
    /// nodes the drafter offered
    pub proposed: u64,
    /// nodes that went through a verify pass (root not counted)
    pub verified: u64,
    /// of these, emitted
    pub accepted: u64,
    /// steps that fell back to plain decode
    pub drafter_failures: u64,
    /// wall-clock in this session's steps
    pub prefill_ns: u64,
    /// wall-clock in this session's steps
    pub draft_ns: u64,
    /// wall-clock in this session's steps
    pub verify_ns: u64,
    /// wall-clock in this session's steps
    pub other_ns: u64,
    /// `uint64_t prefill_tokens`
    pub prefill_tokens: u64,
    /// propose calls
    pub draft_passes: u64,
    /// by depth d: cycles whose walk came to depth d and found children there
    pub tried: [u64; 16],
    /// of these, went on to one of them; taken / tried on chains is the papers' n-alpha
    pub taken: [u64; 16],
    /// prompt tokens whose keys and values were there already (not in prefill_tokens)
    pub reused_tokens: u64,
    /// of the last cycle: 0 `drafter`, 1.. `more_drafters`; -1 none (plain decode)
    pub chosen_drafter: i32,
    /// nodes that it verified, the root not counted
    pub chosen_nodes: i32,
    /// of the deepest of them
    pub chosen_depth: i32,
    /// `int32_t reserved0`
    pub reserved0: i32,
    /// cycles that no drafter was asked in
    pub plain_cycles: u64,
    /// cycles that asked drafter 0, 1, ...; the last one counts all further drafters
    pub chosen_cycles: [u64; 8],
    /// of `verified`: what a constraint forces, or has usually come there, and no drafter had guessed
    pub foreseen_verified: u64,
    /// of these, emitted
    pub foreseen_accepted: u64,
}
default_is_zero!(aerie_statistics);

/// Sessions of one model stepped together: one pass of the target serves all of them. They may differ in everything
/// (prompt, length, sampling, drafter or none, tree), and each one's text is bit for bit what it is alone. Sessions
/// join and leave between steps; what one of them does (append, rewind, ...) needs no leave.
///
///   aerie_batch_step(batch, NULL, NULL, &err);
///   for each session: code = aerie_session_result(session, &result, &err), then as after aerie_session_step
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aerie_batch_options {
    /// `uint32_t struct_size`
    pub struct_size: u32,
    /// rows of one target pass; 0: no limit. More are wanted: prompts are read in smaller chunks, and of
    /// all drafted nodes those of highest confidence are verified, whosever they are. Each session has a
    /// row at least, and keeps its whole tree under the sampled rule.
    pub max_rows: i32,
}
default_is_zero!(aerie_batch_options);

/// `struct aerie_batch_result`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aerie_batch_result {
    /// `uint32_t struct_size`
    pub struct_size: u32,
    /// in the batch
    pub n_sessions: i32,
    /// emitted in this step, all sessions together
    pub n_tokens: i32,
    /// sessions with tokens
    pub n_emitting: i32,
    /// sessions whose text has ended, in this step or before
    pub n_ended: i32,
    /// sessions whose result is an error code
    pub n_failed: i32,
}
default_is_zero!(aerie_batch_result);

functions! {
    "aerie";
    /// The library's version, (major \<\< 16 \| minor \<\< 8 \| patch). \[any\]
    fn aerie_version() -> u32;
    /// "invalid argument", "not found", ...; static. \[any\]
    fn aerie_code_name(code: i32) -> *const c_char;
    /// options may be NULL. AERIE_E_UNSUPPORTED: no such device or instruction set here, or one that is too old;
    /// AERIE_E_NOT_FOUND: no such number; AERIE_E_DEVICE: no driver, or the device fails. \[any\]
    fn aerie_runtime_create(options: *const aerie_runtime_options, out: *mut *mut aerie_runtime, err: *mut aerie_error) -> i32;
    /// `void aerie_runtime_release(aerie_runtime *runtime)`
    fn aerie_runtime_release(runtime: *mut aerie_runtime);
    /// "cpu AVX3_DL, 2 threads"; alive as long as the runtime. \[any\]
    fn aerie_runtime_description(runtime: *const aerie_runtime) -> *const c_char;
    /// Load one drafter plugin from an absolute path. Nothing is searched; the bytes that were checked are
    /// the bytes that run; a plugin stays loaded until the process ends. Loading it again does nothing. AERIE_E_NOT_FOUND,
    /// AERIE_E_IO: the file; AERIE_E_PLUGIN: not a plugin for this host; AERIE_E_MISMATCH: another plugin has its id. \[any\]
    fn aerie_runtime_load_plugin(runtime: *mut aerie_runtime, absolute_path: *const c_char, err: *mut aerie_error) -> i32;
    /// Load every plugin in an absolute directory; NULL: the drafters installed with this library
    /// (aerie/drafters beside it; those inside it where it was built as libaerie.a). The first error ends it; what was loaded
    /// before stays. \[any\]
    fn aerie_runtime_load_plugin_directory(runtime: *mut aerie_runtime, absolute_path: *const c_char, err: *mut aerie_error) -> i32;
    /// Register a drafter plugin that is linked into the program, where nothing can be loaded: AERIE_DRAFTER_STATIC (drafter.h)
    /// gives its entry a name of its own. `name` is for errors. \[any\]
    fn aerie_runtime_add_plugin(runtime: *mut aerie_runtime, name: *const c_char, entry: aerie_plugin_entry_fn, err: *mut aerie_error) -> i32;
    /// The index-th loaded drafter kind; AERIE_E_NOT_FOUND past the last. \[any\]
    fn aerie_runtime_plugin_info(runtime: *mut aerie_runtime, index: u32, out: *mut aerie_plugin_info, err: *mut aerie_error) -> i32;
    /// Open a target package. Immutable and shared: any number of sessions on any threads. options may be NULL.
    /// AERIE_E_NOT_FOUND, AERIE_E_IO: the file; AERIE_E_BAD_FORMAT; AERIE_E_UNSUPPORTED: a newer format, or a prefill that the
    /// device has not; AERIE_E_MISMATCH: a drafter's package; AERIE_E_CANCELLED. \[any\]
    fn aerie_model_open(runtime: *mut aerie_runtime, path: *const c_char, options: *const aerie_model_options, out: *mut *mut aerie_model, err: *mut aerie_error) -> i32;
    /// One more aerie_model_release is due. \[any\]
    fn aerie_model_retain(model: *mut aerie_model);
    /// `void aerie_model_release(aerie_model *model)`
    fn aerie_model_release(model: *mut aerie_model);
    /// \[any\]
    fn aerie_model_info_get(model: *const aerie_model, out: *mut aerie_model_info, err: *mut aerie_error) -> i32;
    /// A byte blob of the package ("tokenizer", "chat_template"); \*size is 0 when absent. Borrowed from
    /// the model. \[any\]
    fn aerie_model_blob(model: *const aerie_model, name: *const c_char, data: *mut *const c_void, size: *mut usize, err: *mut aerie_error) -> i32;
    /// Run the target over a text from its beginning. The rows are those of a session that reads its prompt exactly, bit for
    /// bit. Takes KV for n tokens while it runs. AERIE_E_LIMIT: longer than the context, or no KV left; AERIE_E_CANCELLED. \[any\]
    fn aerie_model_evaluate(model: *mut aerie_model, tokens: *const i32, n: usize, options: *const aerie_evaluate_options, err: *mut aerie_error) -> i32;
    /// Bind a loaded plugin, and its weights, to a target. AERIE_E_MISMATCH: made for another one, or the plugin refuses it;
    /// AERIE_E_NOT_FOUND: no such file, or the plugin is not loaded; AERIE_E_PLUGIN: the plugin is broken; others as
    /// aerie_model_open. \[any\]
    fn aerie_drafter_open(model: *mut aerie_model, options: *const aerie_drafter_options, out: *mut *mut aerie_drafter_handle, err: *mut aerie_error) -> i32;
    /// `void aerie_drafter_release(aerie_drafter_handle *drafter)`
    fn aerie_drafter_release(drafter: *mut aerie_drafter_handle);
    /// options may be NULL. AERIE_E_LIMIT: a drafter's max_sessions are taken; AERIE_E_MISMATCH: a drafter of another model;
    /// AERIE_E_UNSUPPORTED: a tree or drafter that the sampled rule cannot have; AERIE_E_PLUGIN: a drafter did not begin. \[any\]
    fn aerie_session_create(model: *mut aerie_model, options: *const aerie_session_options, out: *mut *mut aerie_session, err: *mut aerie_error) -> i32;
    /// Waits for a step in flight on another thread to stop; leaves its batch. \[any\]
    fn aerie_session_release(session: *mut aerie_session);
    /// Texts that end the generation, at most 256, none empty; one may have begun in what was generated before. NULL, 0, NULL
    /// clears. \[session\]
    fn aerie_session_set_stop_strings(session: *mut aerie_session, strings: *const *const c_char, n: i32, source: *const aerie_token_source, err: *mut aerie_error) -> i32;
    /// From the next token on. It begins with what is generated now, and after every append anew; a rewind leads it back, one to
    /// before the last append to its beginning. NULL: none. An unfinished cycle is discarded. It is not saved with the session.
    /// AERIE_E_MISMATCH: no token of the model may come to begin with, it allows none or biases forbid those. \[session\]
    fn aerie_session_set_constraint(session: *mut aerie_session, constraint: *const aerie_constraint, err: *mut aerie_error) -> i32;
    /// Append prompt tokens; any chunking gives the same text. Also after generation, to go on. AERIE_E_LIMIT: longer than the
    /// context; nothing is appended then. \[session\]
    fn aerie_session_append(session: *mut aerie_session, tokens: *const i32, n: usize, err: *mut aerie_error) -> i32;
    /// Keep the first `length` tokens; an unfinished cycle is discarded. \[session\]
    fn aerie_session_rewind(session: *mut aerie_session, length: usize, err: *mut aerie_error) -> i32;
    /// From the next token on. An unfinished cycle is discarded. \[session\]
    fn aerie_session_set_sampling(session: *mut aerie_session, sampling: *const aerie_sampling, err: *mut aerie_error) -> i32;
    /// From the next cycle on. An unfinished one is discarded. AERIE_E_UNSUPPORTED as at aerie_session_create. \[session\]
    fn aerie_session_set_tree(session: *mut aerie_session, tree: *const aerie_tree_options, err: *mut aerie_error) -> i32;
    /// A second session with the same text, settings, drafters, stop strings and constraint; keys and values are shared until one of
    /// them writes. It is in no batch, its statistics begin at zero, and it counts as one of the drafter's max_sessions. An
    /// unfinished cycle is discarded, never a committed token. options may be NULL. AERIE_E_LIMIT: max_sessions are taken. A
    /// drafter that does not begin is no error here (aerie_statistics). \[session\]
    fn aerie_session_fork(session: *mut aerie_session, options: *const aerie_fork_options, out: *mut *mut aerie_session, err: *mut aerie_error) -> i32;
    /// Stop the step that is running, or else the next one, at the next slice; it returns AERIE_E_CANCELLED,
    /// nothing committed is lost, and stepping again goes on. \[any\]
    fn aerie_session_cancel(session: *mut aerie_session);
    /// Forget a cancel that no step has taken: one that was meant for a step which has ended by itself meanwhile, and would
    /// stop the next. A host that has made sure that nobody cancels any more knows then that nothing is left of it. \[any\]
    fn aerie_session_clear_cancel(session: *mut aerie_session);
    /// One cycle: draft, verify, commit; or as much of it as the budget allows. options may be NULL. AERIE_E_CANCELLED;
    /// AERIE_E_LIMIT: no KV left (aerie_kv_full_fn); AERIE_E_DEVICE: the device is lost, or logits are not finite. The text so far
    /// stays. A drafter that fails is no error (aerie_statistics). \[session\]
    fn aerie_session_step(session: *mut aerie_session, options: *const aerie_step_options, out: *mut aerie_step_result, err: *mut aerie_error) -> i32;
    /// What the session's last step gave, its own or its batch's: returns and fills what aerie_session_step would have.
    /// Before the first step: AERIE_STEP_PENDING. \[session\]
    fn aerie_session_result(session: *mut aerie_session, out: *mut aerie_step_result, err: *mut aerie_error) -> i32;
    /// All committed tokens, prompt included; borrowed until the next call on this session. \[session\]
    fn aerie_session_tokens(session: *mut aerie_session, tokens: *mut *const i32, n: *mut usize, err: *mut aerie_error) -> i32;
    /// Save and restore: a text with what has been computed for it, so that going on costs no prompt reading. The text that
    /// follows is the one that would have followed (docs/session-format.md). An unfinished cycle is discarded; a session in
    /// a batch may be saved.
    /// \*size is set to what is needed; buffer NULL, capacity 0: only that. Too small: AERIE_E_LIMIT. Versioned, checksummed.
    /// \[session\]
    fn aerie_session_save(session: *mut aerie_session, buffer: *mut c_void, capacity: usize, size: *mut usize, err: *mut aerie_error) -> i32;
    /// The same to a file, which appears whole or not at all. \[session\]
    fn aerie_session_save_file(session: *mut aerie_session, path: *const c_char, err: *mut aerie_error) -> i32;
    /// A session as aerie_session_create(model, options) makes it, whose text, keys and values, and drafter state (if the
    /// same drafter is in options) are the saved ones; settings are those of options, stop strings are to be set again,
    /// statistics begin at 0. Another drafter, or none, gives the same text. What a saved session holds is believed for this
    /// session and its forks alone: no other session of the model shares its keys and values (keep_prefixes).
    /// Damaged: AERIE_E_BAD_FORMAT. Of another model, dtype of weights or keys and values, device, ISA level or build:
    /// AERIE_E_MISMATCH. Of another format version: AERIE_E_UNSUPPORTED. No room in context or KV budget: AERIE_E_LIMIT. Others
    /// as aerie_session_create, but that a drafter which does not begin is no error. The message names the field; \*out is
    /// untouched. \[any\]
    fn aerie_session_restore(model: *mut aerie_model, options: *const aerie_session_options, data: *const c_void, size: usize, out: *mut *mut aerie_session, err: *mut aerie_error) -> i32;
    /// The same from a file. \[any\]
    fn aerie_session_restore_file(model: *mut aerie_model, options: *const aerie_session_options, path: *const c_char, out: *mut *mut aerie_session, err: *mut aerie_error) -> i32;
    /// Since the session was made; what has a time is in nanoseconds. \[session\]
    fn aerie_session_statistics(session: *mut aerie_session, out: *mut aerie_statistics, err: *mut aerie_error) -> i32;
    /// options may be NULL. \[any\]
    fn aerie_batch_create(model: *mut aerie_model, options: *const aerie_batch_options, out: *mut *mut aerie_batch, err: *mut aerie_error) -> i32;
    /// Its sessions go on alone. Waits for a step in flight on another thread to stop. \[any\]
    fn aerie_batch_release(batch: *mut aerie_batch);
    /// A session is in one batch at most (AERIE_E_BUSY), of its own model (AERIE_E_MISMATCH). While it is in, its own
    /// aerie_session_step gives AERIE_E_BUSY. A cycle that it has begun is given up. \[batch\]
    fn aerie_batch_add(batch: *mut aerie_batch, session: *mut aerie_session, err: *mut aerie_error) -> i32;
    /// Its cycle is given up, nobody else's. AERIE_E_NOT_FOUND: it is not in this batch. \[batch\]
    fn aerie_batch_remove(batch: *mut aerie_batch, session: *mut aerie_session, err: *mut aerie_error) -> i32;
    /// Stop the step that is running, or else the next one, as aerie_session_cancel does. That function works on a session in
    /// a batch too: the step stops, the session's result is AERIE_E_CANCELLED, the others' are what they are. \[any\]
    fn aerie_batch_cancel(batch: *mut aerie_batch);
    /// Forget one that no step has taken, as aerie_session_clear_cancel does. \[any\]
    fn aerie_batch_clear_cancel(batch: *mut aerie_batch);
    /// One cycle of the sessions that are ready to decode and a chunk of prompt of those that are not; or as much of it as
    /// the budget allows. Returns when any session has tokens, has ended or is cancelled. max_tokens holds for each session.
    /// A session that fails does not stop the others and stays in; one whose text has ended costs nothing. options and out
    /// may be NULL. AERIE_E_CANCELLED: by aerie_batch_cancel. \[batch\]
    fn aerie_batch_step(batch: *mut aerie_batch, options: *const aerie_step_options, out: *mut aerie_batch_result, err: *mut aerie_error) -> i32;
}

//! Generated from capi/include/aerie/drafter.h by bindings/generate.py: do not edit.

use core::marker::{PhantomData, PhantomPinned};
use std::os::raw::{c_char, c_void};
use super::*;

/// `#define AERIE_DRAFTER_ABI_MAJOR 1u`
pub const AERIE_DRAFTER_ABI_MAJOR: u32 = 1;
/// `#define AERIE_DRAFTER_ABI_MINOR 0u`
pub const AERIE_DRAFTER_ABI_MINOR: u32 = 0;
/// `#define AERIE_SERVICE_LOG "aerie.log/1"`
pub const AERIE_SERVICE_LOG: &[u8; 12] = b"aerie.log/1\0";
/// `#define AERIE_SERVICE_ALLOC "aerie.alloc/1"`
pub const AERIE_SERVICE_ALLOC: &[u8; 14] = b"aerie.alloc/1\0";
/// `#define AERIE_SERVICE_PACKAGE "aerie.package/1"`
pub const AERIE_SERVICE_PACKAGE: &[u8; 16] = b"aerie.package/1\0";
/// Recording functions return AERIE_D_OK or a code; the first failure also sticks to the plan, so a
/// plugin may ignore the codes inside observe and propose. Shapes are checked. R = rows; what stands as (R, N) is f32
/// row-major. An out may have more rows than are written, and is no input of its op unless that is said.
pub const AERIE_SERVICE_COMPUTE: &[u8; 16] = b"aerie.compute/1\0";
/// Run any packaged target as a draft model.
pub const AERIE_SERVICE_MODEL: &[u8; 14] = b"aerie.model/1\0";
/// The decoder layers of a package that describes them as a target's are (docs/package-format.md), of any family that targets have.
/// Some read the target's keys and values in place of their own, of the text before a sequence's newest token, and take its position for
/// all nodes of a tree. Such layers are given each sequence's newest row alone when rows are observed.
pub const AERIE_SERVICE_LAYERS: &[u8; 15] = b"aerie.layers/1\0";
/// The same layers over a block of rows that see each other, those behind as well as those before (DFlash's block diffusion): what the drafter
/// knows of the text is keys and values made of what it is shown, and every cycle a block of a sequence's newest token and fillers behind it
/// goes through the layers once. A block leaves nothing behind.
pub const AERIE_SERVICE_BLOCK: &[u8; 14] = b"aerie.block/1\0";
/// An extension a HOST_TOKENS drafter may offer: rows that the target reads beside the tree in the same pass. They
/// are never accepted and leave nothing behind; what the target would say after each is handed back (Lookahead's
/// Jacobi window).
pub const AERIE_EXTENSION_EXTRA_ROWS: &[u8; 19] = b"aerie.extra_rows/1\0";
/// An extension for drafters that keep state of their own in a sequence, beyond host-managed KV and what the newest row
/// left: a forked session's sequence goes on where the other is. Without it, a drafter that has `rollback` is shown the
/// text of a fork from its beginning, and one that has not is taken to keep no such state: its KV is shared, and its
/// newest row shown again. The same holds where a text's beginning is found in KV memory: only drafters with neither
/// are spared it.
pub const AERIE_EXTENSION_FORK: &[u8; 13] = b"aerie.fork/1\0";
/// `AERIE_D_OK = 0`
pub const AERIE_D_OK: i32 = 0;
/// an argument or the package is wrong
pub const AERIE_D_INVALID: i32 = 1;
/// valid, but this drafter does not do it
pub const AERIE_D_UNSUPPORTED: i32 = 2;
/// `AERIE_D_NO_MEMORY = 3`
pub const AERIE_D_NO_MEMORY: i32 = 3;
/// `AERIE_D_FAILED = 4`
pub const AERIE_D_FAILED: i32 = 4;
/// `AERIE_DTYPE_F32 = 0`
pub const AERIE_DTYPE_F32: i32 = 0;
/// `AERIE_DTYPE_BF16 = 1`
pub const AERIE_DTYPE_BF16: i32 = 1;
/// `AERIE_DTYPE_INT8 = 2`
pub const AERIE_DTYPE_INT8: i32 = 2;
/// `AERIE_DTYPE_INT4 = 3`
pub const AERIE_DTYPE_INT4: i32 = 3;
/// `AERIE_DTYPE_I32 = 4`
pub const AERIE_DTYPE_I32: i32 = 4;
/// `AERIE_DTYPE_FP8 = 5`
pub const AERIE_DTYPE_FP8: i32 = 5;
/// `AERIE_DTYPE_Q4_1 = 6`
pub const AERIE_DTYPE_Q4_1: i32 = 6;
/// `AERIE_DTYPE_MXFP4 = 7`
pub const AERIE_DTYPE_MXFP4: i32 = 7;
/// `AERIE_ACT_SILU = 0`
pub const AERIE_ACT_SILU: i32 = 0;
/// `AERIE_ACT_GELU_TANH = 1`
pub const AERIE_ACT_GELU_TANH: i32 = 1;
/// `AERIE_ACT_RELU = 2`
pub const AERIE_ACT_RELU: i32 = 2;
/// observe carries target features
pub const AERIE_DRAFTER_FEATURES: u32 = 1;
/// propose_host instead of observe/propose
pub const AERIE_DRAFTER_HOST_TOKENS: u32 = 2;
/// opens packages of kind target (external draft model)
pub const AERIE_DRAFTER_TAKES_TARGET: u32 = 4;
/// opens without a package
pub const AERIE_DRAFTER_NO_PACKAGE: u32 = 8;
/// one call at a time over all drafters with this flag of this library
pub const AERIE_DRAFTER_SERIAL: u32 = 16;
/// rows of one sequence a call (n_seqs = 1), at a price in batches
pub const AERIE_DRAFTER_ONE_SEQUENCE: u32 = 32;
/// hidden state after the final norm (EAGLE-1/2)
pub const AERIE_FEATURE_FINAL: i32 = -1;

/// host's; valid during the call it came with
#[repr(C)]
pub struct aerie_plan {
    _opaque: [u8; 0],
    _not_send: PhantomData<(*mut u8, PhantomPinned)>,
}

/// host's: KV slots and tree mask of these rows
#[repr(C)]
pub struct aerie_attention {
    _opaque: [u8; 0],
    _not_send: PhantomData<(*mut u8, PhantomPinned)>,
}

/// host's: a KV cache made by kv_create
#[repr(C)]
pub struct aerie_kv {
    _opaque: [u8; 0],
    _not_send: PhantomData<(*mut u8, PhantomPinned)>,
}

/// host's: the drafter's package
#[repr(C)]
pub struct aerie_package {
    _opaque: [u8; 0],
    _not_send: PhantomData<(*mut u8, PhantomPinned)>,
}

/// host's: a model made by aerie.model/1
#[repr(C)]
pub struct aerie_submodel {
    _opaque: [u8; 0],
    _not_send: PhantomData<(*mut u8, PhantomPinned)>,
}

/// Propose: where candidates go. The plugin passes it to propose_hidden or one of its kin.
#[repr(C)]
pub struct aerie_candidates {
    _opaque: [u8; 0],
    _not_send: PhantomData<(*mut u8, PhantomPinned)>,
}

/// `struct aerie_layers`
#[repr(C)]
pub struct aerie_layers {
    _opaque: [u8; 0],
    _not_send: PhantomData<(*mut u8, PhantomPinned)>,
}

/// `const aerie_drafter_plugin_table *(*aerie_drafter_plugin_entry_fn)(void)`
pub type aerie_drafter_plugin_entry_fn = Option<unsafe extern "C" fn() -> *const aerie_drafter_plugin_table>;

/// frozen; owned by the caller, filled by the callee
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aerie_drafter_error {
    /// `uint32_t struct_size`
    pub struct_size: u32,
    /// `int32_t code`
    pub code: i32,
    /// `char message[248]`
    pub message: [c_char; 248],
}
default_is_zero!(aerie_drafter_error);

/// A borrowed view of device memory, (rows, cols). `data` and `scales` are device addresses.
/// stride: elements from one row to the next (row-major tensors).
/// frozen
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aerie_tensor {
    /// `void *data`
    pub data: *mut c_void,
    /// `void *scales`
    pub scales: *mut c_void,
    /// `int64_t rows`
    pub rows: i64,
    /// `int64_t cols`
    pub cols: i64,
    /// `int64_t stride`
    pub stride: i64,
    /// AERIE_DTYPE_\*
    pub dtype: u8,
    /// 0 row-major, 1 packed weights
    pub layout: u8,
    /// `uint8_t reserved[6]`
    pub reserved: [u8; 6],
}
default_is_zero!(aerie_tensor);

/// Rows of several sequences, ragged; all tensors are device i32 vectors unless noted. Node ids are
/// below max_seqs \* max_nodes (open) and unique in the batch; a plugin keeps the state of a fed node
/// at its id, so that the node's children find it. A row may stand for no node (a tree that the device draws): it is
/// valid all the same, and nobody reads what it proposes.
/// frozen
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aerie_draft_rows {
    /// `uint32_t struct_size`
    pub struct_size: u32,
    /// rows, \>= 1
    pub n: i32,
    /// `int32_t n_seqs`
    pub n_seqs: i32,
    /// propose: depth of the rows; 0 = roots. observe: 0
    pub level: i32,
    /// \[n\] the row's token: t_{j+1}
    pub token: aerie_tensor,
    /// \[n\] j, the position of the row's feature; without features j + 1
    pub position: aerie_tensor,
    /// (n, feature_cols) f32: observe, if asked for; else data = NULL
    pub feature: aerie_tensor,
    /// \[n\] propose: id of the row's node
    pub node: aerie_tensor,
    /// \[n\] propose, level \> 0: id of its parent
    pub parent: aerie_tensor,
    /// \[n_seqs\] observe: each sequence's newest row
    pub last_row: aerie_tensor,
    /// \[n_seqs\] observe: node id of each sequence's root
    pub root: aerie_tensor,
    /// observe: \[n_seqs\] sequence ids; propose: \[n\] the sequence of each row
    pub sequence: aerie_tensor,
    /// pass on to decoder_layer / forward; propose at level 0: rows attend to nothing
    pub attention: *const aerie_attention,
}
default_is_zero!(aerie_draft_rows);

/// Host-side proposals (HOST_TOKENS drafters): one sequence at a time, all tokens in host memory.
/// frozen
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aerie_host_context {
    /// `uint32_t struct_size`
    pub struct_size: u32,
    /// `int32_t seq`
    pub seq: i32,
    /// \[n_tokens\] committed tokens, oldest first; the last one is the root
    pub tokens: *const i32,
    /// `int32_t n_tokens`
    pub n_tokens: i32,
    /// children per node the policy would like
    pub width: i32,
    /// `int32_t max_depth`
    pub max_depth: i32,
    /// `int32_t reserved`
    pub reserved: i32,
}
default_is_zero!(aerie_host_context);

/// Fill at most `capacity` (1 or more) nodes: token\[i\] is below the target's vocabulary (those that can never be drawn are dropped
/// with what stands on them); parent\[i\] is -1 (the root) or a smaller index; confidence in \[0, 1\]: of the token where its parent came true, not of the path.
/// frozen
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aerie_host_candidates {
    /// `uint32_t struct_size`
    pub struct_size: u32,
    /// `int32_t capacity`
    pub capacity: i32,
    /// `int32_t count`
    pub count: i32,
    /// `int32_t reserved`
    pub reserved: i32,
    /// `int32_t *token`
    pub token: *mut i32,
    /// `int32_t *parent`
    pub parent: *mut i32,
    /// `float *confidence`
    pub confidence: *mut f32,
}
default_is_zero!(aerie_host_candidates);

/// frozen; alive until destroy has returned
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aerie_drafter_host {
    /// `uint32_t struct_size`
    pub struct_size: u32,
    /// `uint32_t abi_major`
    pub abi_major: u32,
    /// `uint32_t abi_minor`
    pub abi_minor: u32,
    /// `uint32_t reserved`
    pub reserved: u32,
    /// `void *context`
    pub context: *mut c_void,
    /// A service table or NULL. Ids: AERIE_SERVICE_\*. \[any thread\]
    pub get_service: Option<unsafe extern "C" fn(host: *const aerie_drafter_host, id: *const c_char) -> *const c_void>,
}
default_is_zero!(aerie_drafter_host);

/// frozen
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aerie_service_log {
    /// `uint32_t struct_size`
    pub struct_size: u32,
    /// `uint32_t reserved`
    pub reserved: u32,
    /// level: 0 error, 1 warning, 2 info, 3 debug. Goes to the application's log hook. \[any thread\]
    pub log: Option<unsafe extern "C" fn(host: *const aerie_drafter_host, level: i32, message: *const c_char)>,
}
default_is_zero!(aerie_service_log);

/// frozen
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aerie_service_alloc {
    /// `uint32_t struct_size`
    pub struct_size: u32,
    /// `uint32_t reserved`
    pub reserved: u32,
    /// 64-byte aligned; NULL if none. \[any thread\]
    pub alloc: Option<unsafe extern "C" fn(host: *const aerie_drafter_host, bytes: usize) -> *mut c_void>,
    /// \[any thread\]
    pub free: Option<unsafe extern "C" fn(host: *const aerie_drafter_host, memory: *mut c_void)>,
}
default_is_zero!(aerie_service_alloc);

/// A decoder layer: x -\> x + attn(norm1(x)) -\> + mlp(norm2(.)). Llama's layer; absent pieces have
/// data = NULL (EAGLE: attn_norm). Weights packed.
/// frozen
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aerie_decoder_layer {
    /// `uint32_t struct_size`
    pub struct_size: u32,
    /// `int32_t heads`
    pub heads: i32,
    /// `int32_t kv_heads`
    pub kv_heads: i32,
    /// `int32_t head_dim`
    pub head_dim: i32,
    /// `float rms_eps`
    pub rms_eps: f32,
    /// `uint32_t reserved`
    pub reserved: u32,
    /// (1, H) or absent: identity
    pub attn_norm: aerie_tensor,
    /// ((heads + 2 kv_heads) \* head_dim, H): rows q, k, v
    pub qkv: aerie_tensor,
    /// (1, ...) or absent
    pub qkv_bias: aerie_tensor,
    /// (H, heads \* head_dim)
    pub o: aerie_tensor,
    /// (1, H)
    pub mlp_norm: aerie_tensor,
    /// (2F, H): rows gate, up
    pub gate_up: aerie_tensor,
    /// (H, F)
    pub down: aerie_tensor,
}
default_is_zero!(aerie_decoder_layer);

/// frozen; \[open only\]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aerie_service_package {
    /// `uint32_t struct_size`
    pub struct_size: u32,
    /// `uint32_t reserved`
    pub reserved: u32,
    /// A tensor of the package, on the device, alive until destroy. rows, cols: the shape it must have, 0 for
    /// any. AERIE_D_INVALID: absent or mis-shaped (the error message is ready to be returned as it is).
    pub tensor: Option<unsafe extern "C" fn(package: *const aerie_package, name: *const c_char, rows: i64, cols: i64, out: *mut aerie_tensor, err: *mut aerie_drafter_error) -> i32>,
    /// 1: there is such a tensor, 0: not
    pub has: Option<unsafe extern "C" fn(package: *const aerie_package, name: *const c_char) -> i32>,
    /// A hyper-parameter by name; `fallback` when absent.
    pub param: Option<unsafe extern "C" fn(package: *const aerie_package, name: *const c_char, fallback: f64) -> f64>,
    /// The same for an integer in \[least, most\]; without it, or outside: AERIE_D_INVALID and the message.
    pub integer: Option<unsafe extern "C" fn(package: *const aerie_package, name: *const c_char, least: i32, most: i32, out: *mut i32, err: *mut aerie_drafter_error) -> i32>,
    /// A decoder layer of width `hidden` whose tensors begin with `prefix` ("layers.0."): attn_norm (optional),
    /// attn.qkv (.., qkv_cols), attn.qkv.bias (optional), attn.o, mlp_norm, mlp.gate_up, mlp.down; parameters heads,
    /// kv_heads, head_dim, ffn, rms_eps (1e-5). Everything is checked.
    pub decoder_layer: Option<unsafe extern "C" fn(package: *const aerie_package, prefix: *const c_char, hidden: i64, qkv_cols: i64, out: *mut aerie_decoder_layer, err: *mut aerie_drafter_error) -> i32>,
}
default_is_zero!(aerie_service_package);

/// frozen
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aerie_kv_desc {
    /// `uint32_t struct_size`
    pub struct_size: u32,
    /// `int32_t layers`
    pub layers: i32,
    /// `int32_t kv_heads`
    pub kv_heads: i32,
    /// `int32_t head_dim`
    pub head_dim: i32,
    /// `float rope_theta`
    pub rope_theta: f32,
    /// `uint32_t reserved`
    pub reserved: u32,
}
default_is_zero!(aerie_kv_desc);

/// frozen
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aerie_service_compute {
    /// `uint32_t struct_size`
    pub struct_size: u32,
    /// `uint32_t reserved`
    pub reserved: u32,
    /// Persistent f32 tensor, zeroed, freed after destroy. \[open only\]
    pub tensor_create: Option<unsafe extern "C" fn(host: *const aerie_drafter_host, rows: i64, cols: i64, out: *mut aerie_tensor) -> i32>,
    /// One KV cache a drafter, of 1 to 64 layers; the host keeps slots, rollback and the tree mask. Rotary angles are scaled as the
    /// package's parameters rope_scaling.\* say, if it has them. Refused to HOST_TOKENS drafters, which are shown no rows that
    /// could fill it. \[open only\]
    pub kv_create: Option<unsafe extern "C" fn(host: *const aerie_drafter_host, desc: *const aerie_kv_desc, out: *mut *mut aerie_kv) -> i32>,
    /// f32 working memory until the plan has run; its rows lie end to end (stride = cols).
    pub scratch: Option<unsafe extern "C" fn(plan: *mut aerie_plan, rows: i64, cols: i64, out: *mut aerie_tensor) -> i32>,
    /// out\[r\] = target embedding of ids\[r\]. ids: i32 \[R\], out: (R, H).
    pub embed_target: Option<unsafe extern "C" fn(plan: *mut aerie_plan, ids: *const aerie_tensor, out: *const aerie_tensor) -> i32>,
    /// The same of the drafter's own table (V or more, N), of any dtype; out: (R, N).
    pub embed: Option<unsafe extern "C" fn(plan: *mut aerie_plan, table: *const aerie_tensor, ids: *const aerie_tensor, out: *const aerie_tensor) -> i32>,
    /// out (R, N) = x (R, K) w^T + bias + residual. w: packed (N, K), bias: (1, N), residual: (R, N); the latter two may be
    /// NULL, and residual may be out.
    pub linear: Option<unsafe extern "C" fn(plan: *mut aerie_plan, x: *const aerie_tensor, w: *const aerie_tensor, bias: *const aerie_tensor, residual: *const aerie_tensor, out: *const aerie_tensor) -> i32>,
    /// out\[r\] = x\[r\] / sqrt(mean(x\[r\]^2) + eps) \* weight. x, out: (R, N), weight: (1, N). out may be x.
    pub rms_norm: Option<unsafe extern "C" fn(plan: *mut aerie_plan, x: *const aerie_tensor, weight: *const aerie_tensor, eps: f32, out: *const aerie_tensor) -> i32>,
    /// Each element through AERIE_ACT_\*. x, out: (R, N). out may be x.
    pub activate: Option<unsafe extern "C" fn(plan: *mut aerie_plan, kind: i32, x: *const aerie_tensor, out: *const aerie_tensor) -> i32>,
    /// out = a + b, all (R, N). out may be a.
    pub add: Option<unsafe extern "C" fn(plan: *mut aerie_plan, a: *const aerie_tensor, b: *const aerie_tensor, out: *const aerie_tensor) -> i32>,
    /// dst\[dst_index\[r\]\] = src\[src_index\[r\]\], r \< n. src, dst: f32 of equal width, not overlapping; indices: i32 \[n\], NULL: r
    /// itself; a row whose index lies outside is left alone.
    pub copy_rows: Option<unsafe extern "C" fn(plan: *mut aerie_plan, src: *const aerie_tensor, src_index: *const aerie_tensor, dst: *const aerie_tensor, dst_index: *const aerie_tensor, n: i64) -> i32>,
    /// One decoder layer over `rows` with layer `layer` of `kv`; x, out: (rows-\>n, H).
    pub decoder_layer: Option<unsafe extern "C" fn(plan: *mut aerie_plan, w: *const aerie_decoder_layer, kv: *mut aerie_kv, layer: i32, rows: *const aerie_draft_rows, x: *const aerie_tensor, out: *const aerie_tensor) -> i32>,
    /// As decoder_layer, but its attention reads attn_in (R, K), K = columns of w-\>qkv, in place of
    /// attn_norm(x) (EAGLE-3: K = 2H); x is the residual. w-\>attn_norm is not used.
    pub decoder_layer_from: Option<unsafe extern "C" fn(plan: *mut aerie_plan, w: *const aerie_decoder_layer, kv: *mut aerie_kv, layer: i32, rows: *const aerie_draft_rows, attn_in: *const aerie_tensor, x: *const aerie_tensor, out: *const aerie_tensor) -> i32>,
    /// Candidates, once in every propose by one of these functions: the target's LM head over hidden (n \* levels, H), or the
    /// drafter's own logits (n \* levels, V or the length of vocab_map), then
    /// top-k (with the target's own dice under shared draft noise). Row r \* levels + l proposes the
    /// children at depth level + l + 1 of row r's path. The host may find the LM head's best through a low-rank
    /// stand-in of the target's package and score those with the head itself. `vocab_map`: i32 ids of the target, or NULL.
    pub propose_hidden: Option<unsafe extern "C" fn(plan: *mut aerie_plan, hidden: *const aerie_tensor, out: *mut aerie_candidates) -> i32>,
    /// `int32_t (*propose_logits)(aerie_plan *plan, const aerie_tensor *logits, const aerie_tensor *vocab_map, aerie_candidates *out)`
    pub propose_logits: Option<unsafe extern "C" fn(plan: *mut aerie_plan, logits: *const aerie_tensor, vocab_map: *const aerie_tensor, out: *mut aerie_candidates) -> i32>,
    /// Candidates of an LM head of the drafter's own: linear(hidden, w, bias), then as propose_logits, the same candidates
    /// to the bit, but without logits in memory. hidden: (n \* levels, K), w: (V or the length of vocab_map, K); bias may be
    /// NULL.
    pub propose_head: Option<unsafe extern "C" fn(plan: *mut aerie_plan, hidden: *const aerie_tensor, w: *const aerie_tensor, bias: *const aerie_tensor, vocab_map: *const aerie_tensor, out: *mut aerie_candidates) -> i32>,
    /// The same with a head for each level (Medusa's): hidden (n, K), w (V, K). Called for level 0, 1, ... of the call.
    pub propose_level: Option<unsafe extern "C" fn(plan: *mut aerie_plan, level: i32, hidden: *const aerie_tensor, w: *const aerie_tensor, bias: *const aerie_tensor, out: *mut aerie_candidates) -> i32>,
}
default_is_zero!(aerie_service_compute);

/// frozen
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aerie_service_model {
    /// `uint32_t struct_size`
    pub struct_size: u32,
    /// `uint32_t reserved`
    pub reserved: u32,
    /// The drafter's package as a model with a KV cache of its own. Fails when it is no target
    /// package, and for HOST_TOKENS drafters. \[open only\]
    pub open: Option<unsafe extern "C" fn(host: *const aerie_drafter_host, package: *const aerie_package, out: *mut *mut aerie_submodel, err: *mut aerie_drafter_error) -> i32>,
    /// 64-bit hash of the vocabulary (size, used ids and token bytes); equal hashes: same ids.
    pub vocab_hash: Option<unsafe extern "C" fn(model: *const aerie_submodel) -> u64>,
    /// like vocab_hash, while the drafter lives
    pub hidden_size: Option<unsafe extern "C" fn(model: *const aerie_submodel) -> i32>,
    /// Embedding, all layers, final norm: hidden (n, hidden_size).
    pub forward: Option<unsafe extern "C" fn(plan: *mut aerie_plan, model: *mut aerie_submodel, rows: *const aerie_draft_rows, hidden: *const aerie_tensor) -> i32>,
    /// The model's own LM head, then as propose_hidden.
    pub propose: Option<unsafe extern "C" fn(plan: *mut aerie_plan, model: *mut aerie_submodel, hidden: *const aerie_tensor, out: *mut aerie_candidates) -> i32>,
}
default_is_zero!(aerie_service_model);

/// frozen
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aerie_service_layers {
    /// `uint32_t struct_size`
    pub struct_size: u32,
    /// `uint32_t reserved`
    pub reserved: u32,
    /// The package's layers, with a KV cache for them, which is the drafter's one. Fails where the package has none, and for HOST_TOKENS
    /// drafters. \[open only\]
    pub open: Option<unsafe extern "C" fn(host: *const aerie_drafter_host, package: *const aerie_package, out: *mut *mut aerie_layers, err: *mut aerie_drafter_error) -> i32>,
    /// H; like rms_eps, while the drafter lives
    pub hidden_size: Option<unsafe extern "C" fn(layers: *const aerie_layers) -> i32>,
    /// `float (*rms_eps)(const aerie_layers *layers)`
    pub rms_eps: Option<unsafe extern "C" fn(layers: *const aerie_layers) -> f32>,
    /// All of them, one after the other: out (rows-\>n, H) of x (rows-\>n, H). out may be x. Of layers that read the target's, in observe
    /// (rows-\>n_seqs, H): of the rows of rows-\>last_row.
    pub forward: Option<unsafe extern "C" fn(plan: *mut aerie_plan, layers: *mut aerie_layers, rows: *const aerie_draft_rows, x: *const aerie_tensor, out: *const aerie_tensor) -> i32>,
}
default_is_zero!(aerie_service_layers);

/// frozen
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aerie_service_block {
    /// `uint32_t struct_size`
    pub struct_size: u32,
    /// `uint32_t reserved`
    pub reserved: u32,
    /// In place of aerie.layers/1's open, whose hidden_size and rms_eps answer for these, too. rows: of a block, 2 .. 33; filler: a token of the
    /// target. \[open only\]
    pub open: Option<unsafe extern "C" fn(host: *const aerie_drafter_host, package: *const aerie_package, rows: i32, filler: i32, out: *mut *mut aerie_layers, err: *mut aerie_drafter_error) -> i32>,
    /// In observe: each layer's keys and values of x (rows-\>n, H), as they are, at the rows' positions.
    pub feed: Option<unsafe extern "C" fn(plan: *mut aerie_plan, layers: *mut aerie_layers, rows: *const aerie_draft_rows, x: *const aerie_tensor) -> i32>,
    /// In propose, at level 0: the target's embedding of \[row r's token, filler, filler, ...\] at the positions behind all that r's sequence was
    /// fed, through all layers. In a layer with a window a row sees of its block but those before it, as DFlash's are trained. out (rows-\>n \* block,
    /// H): row r's block is rows r \* block on.
    pub forward: Option<unsafe extern "C" fn(plan: *mut aerie_plan, layers: *mut aerie_layers, rows: *const aerie_draft_rows, out: *const aerie_tensor) -> i32>,
}
default_is_zero!(aerie_service_block);

/// frozen
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aerie_drafter_desc {
    /// `uint32_t struct_size`
    pub struct_size: u32,
    /// AERIE_DRAFTER_\*
    pub flags: u32,
    /// \[a-z0-9_.-\]; packages name their plugin by it
    pub id: [c_char; 64],
    /// `char title[96]`
    pub title: [c_char; 96],
    /// `char version[32]`
    pub version: [c_char; 32],
}
default_is_zero!(aerie_drafter_desc);

/// frozen; alive during open
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aerie_drafter_open_info {
    /// `uint32_t struct_size`
    pub struct_size: u32,
    /// sequence ids are below it
    pub max_seqs: i32,
    /// node ids a sequence: seq \* max_nodes + 0 .. max_nodes - 1
    pub max_nodes: i32,
    /// rows in one call
    pub max_rows: i32,
    /// target: H
    pub hidden: i32,
    /// target: V
    pub vocab: i32,
    /// `uint64_t target_vocab_hash`
    pub target_vocab_hash: u64,
    /// hex
    pub target_fingerprint: *const c_char,
    /// NULL for NO_PACKAGE drafters
    pub package: *const aerie_package,
}
default_is_zero!(aerie_drafter_open_info);

/// frozen; filled by open
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aerie_drafter_needs {
    /// `uint32_t struct_size`
    pub struct_size: u32,
    /// feature_cols = n_taps \* H; \<= 8
    pub n_taps: i32,
    /// AERIE_FEATURE_FINAL or i: input of target layer i, pre-norm; the number of
    /// layers: the output of the last
    pub taps: [i32; 8],
    /// levels answered by one propose, 1 .. 32; above 1 only the roots are asked
    /// about, once a cycle, and every node of a depth has the same children
    pub levels: i32,
    /// deepest node worth asking for; 0: no limit (levels \> 1: levels)
    pub max_depth: i32,
    /// most children a node; 0: no limit
    pub max_width: i32,
}
default_is_zero!(aerie_drafter_needs);

/// frozen table; made by create
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aerie_drafter {
    /// `uint32_t struct_size`
    pub struct_size: u32,
    /// `uint32_t reserved`
    pub reserved: u32,
    /// `void *self`
    pub self_: *mut c_void,
    /// `void (*destroy)(void *self)`
    pub destroy: Option<unsafe extern "C" fn(self_: *mut c_void)>,
    /// Read the package, check it against the target, allocate all memory. Fails with one clear error.
    pub open: Option<unsafe extern "C" fn(self_: *mut c_void, info: *const aerie_drafter_open_info, needs: *mut aerie_drafter_needs, err: *mut aerie_drafter_error) -> i32>,
    /// a sequence starts (or starts again, empty); if it fails, begun again before use
    pub begin: Option<unsafe extern "C" fn(self_: *mut c_void, seq: i32) -> i32>,
    /// its id may be begun anew; not called once the drafter is out
    pub end: Option<unsafe extern "C" fn(self_: *mut c_void, seq: i32)>,
    /// Committed rows, in order, any chunking: rows (feature f_j, token t_{j+1}), or with no features
    /// every token t_0, t_1, ... Rows of a plan that never ran, and a sequence's newest, may be shown again.
    pub observe: Option<unsafe extern "C" fn(self_: *mut c_void, plan: *mut aerie_plan, rows: *const aerie_draft_rows) -> i32>,
    /// Children of the frontier rows. Level 0: the roots, whose rows were observed last.
    pub propose: Option<unsafe extern "C" fn(self_: *mut c_void, plan: *mut aerie_plan, rows: *const aerie_draft_rows, out: *mut aerie_candidates) -> i32>,
    /// `int32_t (*propose_host)(void *self, const aerie_host_context *context, aerie_host_candidates *out)`
    pub propose_host: Option<unsafe extern "C" fn(self_: *mut c_void, context: *const aerie_host_context, out: *mut aerie_host_candidates) -> i32>,
    /// Forget committed rows at positions \>= len (rewind); of a HOST_TOKENS drafter: tokens. Host-managed KV is already rolled
    /// back.
    /// NULL: it keeps nothing else (see AERIE_EXTENSION_FORK)
    pub rollback: Option<unsafe extern "C" fn(self_: *mut c_void, seq: i32, len: i32) -> i32>,
    /// asked once, after open; NULL: unknown
    pub get_extension: Option<unsafe extern "C" fn(self_: *mut c_void, id: *const c_char) -> *const c_void>,
}
default_is_zero!(aerie_drafter);

/// frozen; alive until destroy
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aerie_extension_extra_rows {
    /// `uint32_t struct_size`
    pub struct_size: u32,
    /// most rows a cycle, 1 .. 96; fewer are run where the tree leaves less room
    pub max_rows: i32,
    /// Rows beside this cycle's tree, at most `capacity`: a forest under the root (the newest token). parent\[i\] is -1
    /// (the root) or a smaller index. Called after propose_host.
    pub rows: Option<unsafe extern "C" fn(self_: *mut c_void, seq: i32, capacity: i32, token: *mut i32, parent: *mut i32, count: *mut i32) -> i32>,
    /// choice\[i\]: the token the target picks after row i and its ancestors (the argmax at temperature 0, else the draw
    /// with the session's sampler and its position's own noise), i \< count of the last `rows`. -1: none. A discarded
    /// cycle brings no call.
    pub chosen: Option<unsafe extern "C" fn(self_: *mut c_void, seq: i32, n: i32, choice: *const i32) -> i32>,
}
default_is_zero!(aerie_extension_extra_rows);

/// frozen; alive until destroy
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aerie_extension_fork {
    /// `uint32_t struct_size`
    pub struct_size: u32,
    /// `uint32_t reserved`
    pub reserved: u32,
    /// Sequence `to`, which has begun and is empty, becomes what `from` is. A rollback of `to` may follow.
    pub fork: Option<unsafe extern "C" fn(self_: *mut c_void, from: i32, to: i32) -> i32>,
}
default_is_zero!(aerie_extension_fork);

/// frozen
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aerie_drafter_plugin_table {
    /// `uint32_t struct_size`
    pub struct_size: u32,
    /// AERIE_DRAFTER_ABI_MAJOR
    pub abi_major: u32,
    /// oldest host minor this plugin can live with
    pub abi_min_minor: u32,
    /// AERIE_DRAFTER_ABI_MINOR of the header it was built with
    pub abi_built_minor: u32,
    /// The i-th drafter in this library; AERIE_D_INVALID past the last. Needs no host. \[any thread\]
    pub describe: Option<unsafe extern "C" fn(i: u32, out: *mut aerie_drafter_desc) -> i32>,
    /// A drafter of the kind `id`. What is in `out` after a failure is not used. \[any thread\]
    pub create: Option<unsafe extern "C" fn(host: *const aerie_drafter_host, id: *const c_char, out: *mut aerie_drafter, err: *mut aerie_drafter_error) -> i32>,
}
default_is_zero!(aerie_drafter_plugin_table);

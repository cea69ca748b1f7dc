"""The C API as ctypes. Generated from capi/include/aerie/*.h by bindings/generate.py: do not edit."""
from ctypes import (CDLL, CFUNCTYPE, POINTER, Structure, c_void_p, c_char_p, c_char, c_uint8, c_int32,
                    c_uint32, c_int64, c_uint64, c_size_t, c_float, c_double)
from typing import Any

AERIE_VERSION_MAJOR = 0
AERIE_VERSION_MINOR = 1
AERIE_VERSION_PATCH = 0
AERIE_OK = 0
AERIE_E_INVALID_ARGUMENT = 1
AERIE_E_NOT_FOUND = 2
AERIE_E_IO = 3
AERIE_E_BAD_FORMAT = 4  # damaged or hostile file
AERIE_E_MISMATCH = 5  # things that do not belong together
AERIE_E_UNSUPPORTED = 6
AERIE_E_OUT_OF_MEMORY = 7
AERIE_E_CANCELLED = 8
AERIE_E_LIMIT = 9  # a stated limit is reached
AERIE_E_PLUGIN = 10
AERIE_E_DEVICE = 11
AERIE_E_BUSY = 12  # the session or batch is in use by another thread or a hook's caller, or the session by a batch
AERIE_E_INTERNAL = 13
AERIE_PREFILL_EXACT = 0  # the same kernels for every row: same seed, same text, bit for bit
AERIE_PREFILL_FAST = 1  # cuda, with cuBLASLt installed: prompts are read 512 tokens at a time by its products. Not bit-exact: another cutting of the prompt, or company in a batch, may give another text. Verification and decoding stay as they are. Rows of such prompts are shared among this model's sessions alone; a saved session goes back only to a model opened like this
AERIE_TREE_DEFAULT = 0
AERIE_TREE_CHAIN = 1
AERIE_TREE_STATIC = 2
AERIE_TREE_EAGLE2 = 3
AERIE_TREE_BACKBONE = 4
AERIE_TREE_CAST = 5
AERIE_TREE_AUTO = 6
AERIE_NOISE_SHARED = 0
AERIE_NOISE_NONE = 1
AERIE_VERIFY_EXACT = 0  # same seed, same text, bit for bit (docs/exactness.md)
AERIE_VERIFY_SAMPLED = 1  # the papers' sampled-draft rule: exact in distribution only; chain and static trees
AERIE_STEP_PENDING = 0  # the budget is spent; step again
AERIE_STEP_TOKENS = 1  # tokens came out; step again for more
AERIE_STEP_DONE = 2  # tokens may have come out; the text has ended (finish)
AERIE_FINISH_NONE = 0
AERIE_FINISH_EOS = 1
AERIE_FINISH_STOP_TOKEN = 2
AERIE_FINISH_STOP_STRING = 3
AERIE_FINISH_CONTEXT = 4
AERIE_FINISH_CONSTRAINT = 5
AERIE_ENCODE_NO_BOS = 1
AERIE_ENCODE_SPECIAL = 2
AERIE_JSON_FREE = 0  # as the model likes: a space or a line break with its indentation, or nothing, between tokens of JSON
AERIE_JSON_ONE_LINE = 1  # a space behind : and behind , as Python's json.dumps writes it
AERIE_JSON_COMPACT = 2  # no white space
AERIE_WEIGHTS_DEFAULT = 0
AERIE_WEIGHTS_F32 = 1
AERIE_WEIGHTS_BF16 = 2
AERIE_WEIGHTS_INT8 = 3
AERIE_WEIGHTS_INT4 = 4
AERIE_WEIGHTS_FP8 = 5
AERIE_WEIGHTS_Q4_1 = 6
AERIE_WEIGHTS_STORED = 7  # each matrix in that of these which is nearest to what the source has it in
AERIE_WEIGHTS_MXFP4 = 8  # E2M1, a power of two for 32. A source's MXFP4 stays that, whatever is asked for, but f32 or bf16
AERIE_INSPECT_TEXT = 0
AERIE_INSPECT_JSON = 1
AERIE_DRAFTER_ABI_MAJOR = 1
AERIE_DRAFTER_ABI_MINOR = 0
AERIE_SERVICE_LOG = 'aerie.log/1'
AERIE_SERVICE_ALLOC = 'aerie.alloc/1'
AERIE_SERVICE_PACKAGE = 'aerie.package/1'
AERIE_SERVICE_COMPUTE = 'aerie.compute/1'  # Recording functions return AERIE_D_OK or a code; the first failure also sticks to the plan, so a plugin may ignore the codes inside observe and propose. Shapes are checked. R = rows; what stands as (R, N) is f32 row-major. An out may have more rows than are written, and is no input of its op unless that is said.
AERIE_SERVICE_MODEL = 'aerie.model/1'  # Run any packaged target as a draft model.
AERIE_SERVICE_LAYERS = 'aerie.layers/1'  # The decoder layers of a package that describes them as a target's are (docs/package-format.md), of any family that targets have. Some read the target's keys and values in place of their own, of the text before a sequence's newest token, and take its position for all nodes of a tree. Such layers are given each sequence's newest row alone when rows are observed.
AERIE_SERVICE_BLOCK = 'aerie.block/1'  # The same layers over a block of rows that see each other, those behind as well as those before (DFlash's block diffusion): what the drafter knows of the text is keys and values made of what it is shown, and every cycle a block of a sequence's newest token and fillers behind it goes through the layers once. A block leaves nothing behind.
AERIE_EXTENSION_EXTRA_ROWS = 'aerie.extra_rows/1'  # An extension a HOST_TOKENS drafter may offer: rows that the target reads beside the tree in the same pass. They are never accepted and leave nothing behind; what the target would say after each is handed back (Lookahead's Jacobi window).
AERIE_EXTENSION_FORK = 'aerie.fork/1'  # An extension for drafters that keep state of their own in a sequence, beyond host-managed KV and what the newest row left: a forked session's sequence goes on where the other is. Without it, a drafter that has `rollback` is shown the text of a fork from its beginning, and one that has not is taken to keep no such state: its KV is shared, and its newest row shown again. The same holds where a text's beginning is found in KV memory: only drafters with neither are spared it.
AERIE_D_OK = 0
AERIE_D_INVALID = 1  # an argument or the package is wrong
AERIE_D_UNSUPPORTED = 2  # valid, but this drafter does not do it
AERIE_D_NO_MEMORY = 3
AERIE_D_FAILED = 4
AERIE_DTYPE_F32 = 0
AERIE_DTYPE_BF16 = 1
AERIE_DTYPE_INT8 = 2
AERIE_DTYPE_INT4 = 3
AERIE_DTYPE_I32 = 4
AERIE_DTYPE_FP8 = 5
AERIE_DTYPE_Q4_1 = 6
AERIE_DTYPE_MXFP4 = 7
AERIE_ACT_SILU = 0
AERIE_ACT_GELU_TANH = 1
AERIE_ACT_RELU = 2
AERIE_DRAFTER_FEATURES = 1  # observe carries target features
AERIE_DRAFTER_HOST_TOKENS = 2  # propose_host instead of observe/propose
AERIE_DRAFTER_TAKES_TARGET = 4  # opens packages of kind target (external draft model)
AERIE_DRAFTER_NO_PACKAGE = 8  # opens without a package
AERIE_DRAFTER_SERIAL = 16  # one call at a time over all drafters with this flag of this library
AERIE_DRAFTER_ONE_SEQUENCE = 32  # rows of one sequence a call (n_seqs = 1), at a price in batches
AERIE_FEATURE_FINAL = -1  # hidden state after the final norm (EAGLE-1/2)

# level: 0 error, 1 warning, 2 info, 3 debug. Called on whatever thread noticed; must not call back
# into the library.
aerie_log_fn = CFUNCTYPE(None, c_void_p, c_int32, c_char_p)

# NULL: none left
aerie_alloc_fn = CFUNCTYPE(c_void_p, c_void_p, c_size_t, c_size_t)

# void (*aerie_free_fn)(void *user, void *memory)
aerie_free_fn = CFUNCTYPE(None, c_void_p, c_void_p)

# Run fn(context, i) for every i in [0, n) and return when all are done. Tasks never wait for each
# other: running them one by one is fine. Called on the thread that steps, in its own floating-point mode, and returns there: a
# job system of fibers must not let the one that waits go on on another thread, or the text may be another.
aerie_parallel_for_fn = CFUNCTYPE(None, c_void_p, CFUNCTYPE(None, c_void_p, c_int32), c_void_p, c_int32)

# const struct aerie_drafter_plugin_table *(*aerie_plugin_entry_fn)(void)
aerie_plugin_entry_fn = CFUNCTYPE(c_void_p)

# Return 0 to cancel the load (AERIE_E_CANCELLED). Called on the loading thread.
aerie_progress_fn = CFUNCTYPE(c_int32, c_void_p, c_uint64, c_uint64)

# The KV budget is spent, and no kept prefix is left to drop. Called on the stepping thread, which holds no lock; may
# release, rewind or otherwise call on OTHER sessions of the model than the one that wants room (its release, its batch's,
# or that of one which another thread is stepping from its own callback waits for ever). In a batch's step every member but
# that one may be called on too: any call on that one, and a step of any member, gives AERIE_E_BUSY, so that
# aerie_session_statistics tells which it is; a member with nothing left to continue fails in that step with
# AERIE_E_INVALID_ARGUMENT. Return nonzero to try again, as often as it does, until the step is cancelled. 0: the step fails with
# AERIE_E_LIMIT, nothing is lost, and the session may be stepped again when there is room.
aerie_kv_full_fn = CFUNCTYPE(c_int32, c_void_p, c_int32)

# Bytes of a token in running text (previous: the token before it, -1 none). Return the byte count
# and point *bytes at memory that stays valid as long as the source is held; -1: no such token.
aerie_token_bytes_fn = CFUNCTYPE(c_int32, c_void_p, c_int32, c_int32, POINTER(POINTER(c_char)))

# void (*aerie_hold_fn)(void *user)
aerie_hold_fn = CFUNCTYPE(None, c_void_p)


class aerie_error(Structure):
    _fields_ = [
        ("struct_size", c_uint32),  # set by the caller, so that the library knows how much it may write
        ("code", c_int32),
        ("message", c_char * 504),  # UTF-8, NUL-terminated, cut if longer
    ]


class aerie_runtime_options(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("threads", c_int32),  # 0: one for each physical core this process may use
        ("device", c_char_p),  # "cpu" (NULL: the same), "cpu:AVX2" (the level of docs/exactness.md with that name, for one text on all machines), "cuda" or "cuda:N" (libaerie-cuda)
        ("log", aerie_log_fn),  # NULL: silence
        ("log_user", c_void_p),
        ("alloc", aerie_alloc_fn),  # both or none: device memory (KV, working memory)
        ("free", aerie_free_fn),
        ("alloc_user", c_void_p),
        ("parallel_for", aerie_parallel_for_fn),  # the host's job system in place of our threads; `threads` says how many it has, and with 1 it is not asked
        ("parallel_user", c_void_p),
    ]


class aerie_plugin_info(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("flags", c_uint32),  # AERIE_DRAFTER_* of drafter.h
        ("id", c_char_p),  # this and the other strings are borrowed from the runtime
        ("title", c_char_p),
        ("version", c_char_p),
        ("path", c_char_p),
    ]


class aerie_model_options(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("kv_positions", c_int32),  # KV budget shared by the model's sessions, in tokens; 0: 4 x the context, from 4096 to 32768
        ("progress", aerie_progress_fn),
        ("progress_user", c_void_p),
        ("kv_dtype", c_int32),  # 0 f32, 1 bf16, 2 int8 (a scale for each position and head)
        ("check_data", c_int32),  # nonzero: checksum raw tensors too (reads the whole file)
        ("keep_prefixes", c_int32),  # 0: texts' keys and values stay usable for later sessions that begin alike, until their room is wanted; -1: off
        ("prefill", c_int32),  # AERIE_PREFILL_*
        ("kv_full", aerie_kv_full_fn),  # NULL: AERIE_E_LIMIT at once
        ("kv_full_user", c_void_p),
    ]


class aerie_model_info(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("vocab_size", c_int32),
        ("hidden_size", c_int32),
        ("layers", c_int32),
        ("heads", c_int32),
        ("kv_heads", c_int32),
        ("head_dim", c_int32),
        ("ffn", c_int32),
        ("max_context", c_int32),
        ("bos_id", c_int32),  # -1: none
        ("n_eos", c_int32),
        ("eos_ids", POINTER(c_int32)),  # borrowed from the model
        ("name", c_char_p),
        ("fingerprint", c_char_p),  # hex; equal for requantised copies
        ("weight_bytes", c_uint64),
        ("kv_bytes_per_token", c_uint64),
        ("prefill", c_int32),  # AERIE_PREFILL_*: how the model was opened
        ("reserved0", c_int32),
    ]


class aerie_evaluate_options(Structure):
    """A text as the target sees it, for training and analysis: rows are written where the caller wants them."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("n_taps", c_int32),
        ("taps", POINTER(c_int32)),  # layers whose input is wanted; their number: the last one's output; -1: that after the final norm
        ("features", POINTER(c_float)),  # [tokens][n_taps * hidden_size]; NULL: none
        ("logits", POINTER(c_float)),  # [tokens][vocab_size]; NULL: none
        ("progress", aerie_progress_fn),  # counting tokens; 0 cancels. NULL: none
        ("progress_user", c_void_p),
    ]


class aerie_drafter_options(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("max_sessions", c_int32),  # sessions that may use it at once, 1 .. 4096; 0: 8
        ("package", c_char_p),  # path of a drafter package, or of a target used as draft model
        ("plugin", c_char_p),  # plugin id; NULL: what the package names, or the first that takes targets. Required without a package
        ("progress", aerie_progress_fn),  # while the package is read; without one it is not called
        ("progress_user", c_void_p),
    ]


class aerie_logit_bias(Structure):
    """frozen"""

    _fields_ = [
        ("token", c_int32),
        ("bias", c_float),  # added to the token's logit; -INFINITY: it never comes
    ]


class aerie_sampling(Structure):
    """Biases come first, then penalties, the session's constraint, temperature, top_k, top_p, min_p and the draw."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("top_k", c_int32),  # 0: off
        ("seed", c_uint64),
        ("temperature", c_float),  # 0: greedy, ties to the lowest id
        ("top_p", c_float),  # 0 or >= 1: off
        ("min_p", c_float),  # 0: off
        ("stream", c_uint32),  # noise stream: sessions with equal seeds but different streams differ
        ("repetition_penalty", c_float),  # of each token in the text, prompt included: a logit above 0 is divided by it, any other multiplied; 0 or 1: off
        ("presence_penalty", c_float),  # taken from the logit of each token that was generated since the last append; 0: off
        ("frequency_penalty", c_float),  # the same, as often as it was generated; 0: off
        ("penalty_window", c_int32),  # penalties look at this many tokens, the newest; 0: all
        ("logit_bias", POINTER(aerie_logit_bias)),  # copied; a token that is listed twice has the sum
        ("n_logit_bias", c_int32),
        ("reserved0", c_int32),
    ]


class aerie_tree_options(Structure):
    """fields that the policy has not stay 0, or it is AERIE_E_INVALID_ARGUMENT"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("policy", c_int32),  # AERIE_TREE_*; default: auto (static under the sampled rule)
        ("nodes", c_int32),  # chain: length (0: 5). eagle2, cast: total with the root (0: 60, 72 as published)
        ("depth", c_int32),  # eagle2: levels after the first; 0: 5, or all of a one-pass drafter; -1: none. backbone: levels; 0: 7. cast; 0: 13
        ("top_k", c_int32),  # eagle2, cast: children a node and frontier width; backbone: nodes a level; 0: 10 (cast: 12)
        ("n_paths", c_int32),  # static: rank paths, 0: EAGLE's 25-node tree
        ("paths", POINTER(c_int32)),  # each path as its ranks followed by -1, every prefix a path too, e.g. 0,-1, 1,-1, 0,0,-1
        ("threshold", c_float),  # cast: C1 = C2 = C3; 0: 3
        ("reserved0", c_int32),
    ]


class aerie_session_options(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("max_context", c_int32),  # 0: the model's
        ("drafter", c_void_p),  # NULL: plain decode
        ("sampling", POINTER(aerie_sampling)),  # NULL: greedy. What is pointed at is copied, here and below
        ("tree", POINTER(aerie_tree_options)),  # NULL: the default policy
        ("draft_noise", c_int32),  # AERIE_NOISE_*
        ("verify", c_int32),  # AERIE_VERIFY_*
        ("ignore_eos", c_int32),  # nonzero: the model's end-of-text ids are ordinary tokens
        ("n_stop_tokens", c_int32),
        ("stop_tokens", POINTER(c_int32)),  # further tokens that end the text; emitted, then stop
        ("n_more_drafters", c_int32),  # at most 15; needs `drafter`
        ("no_foresight", c_int32),  # nonzero: what a constraint forces, or has usually come there, is left to the drafter, or to plain decode; to measure what it brings. The text is the same
        ("more_drafters", POINTER(c_void_p)),  # further drafters: AERIE_TREE_AUTO chooses between all of them, cycle by cycle, by expected tokens a second; other trees use `drafter` alone. Each is opened for this model and holds one of its max_sessions
    ]


class aerie_token_source(Structure):
    """Where a session has its tokens' bytes from: aerie_tokenizer_source (text.h) fills it, or a tokenizer of the host's own."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("user", c_void_p),
        ("bytes", aerie_token_bytes_fn),  # called on the thread that steps
        ("hold", aerie_hold_fn),  # called when a session takes the source; NULL (and so release): the host keeps `user` alive
        ("release", aerie_hold_fn),  # called once for it when the session and its forks have let go, on whatever thread
    ]


class aerie_constraint(Structure):
    """What may come next: a grammar (aerie_grammar_constraint of text.h), or a matcher of the host's own. The session keeps a
    state for its text, and copies it to look ahead: in a cycle some hundreds of candidates of a large tree are tried by copy and
    accept, and a mask is made for each token that comes. Functions return AERIE_OK or the code that the step ends with. They are
    called on the thread that steps (destroy: on whatever one lets a state go), never two at a time for one session; a fork's
    states are its own.
    """

    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("user", c_void_p),
        ("begin", CFUNCTYPE(c_int32, c_void_p, POINTER(c_void_p))),  # before the first token
        ("copy", CFUNCTYPE(c_int32, c_void_p, c_void_p, POINTER(c_void_p))),
        ("allowed", CFUNCTYPE(c_int32, c_void_p, c_void_p, POINTER(c_uint32), c_size_t)),  # Token t may come next: bit t % 32 of mask[t / 32], of n_words words that are all 0 before. What is beyond the model's vocabulary is ignored. None may: the text ends (AERIE_FINISH_CONSTRAINT). The model's end-of-text ids are allowed where the text may end.
        ("accept", CFUNCTYPE(c_int32, c_void_p, c_void_p, c_int32)),  # it came next. AERIE_E_MISMATCH: it may not (asked of drafted tokens); the state is only destroyed then
        ("destroy", CFUNCTYPE(None, c_void_p, c_void_p)),
        ("hold", aerie_hold_fn),  # as in aerie_token_source
        ("release", aerie_hold_fn),
        ("forced", CFUNCTYPE(c_int32, c_void_p, c_void_p, POINTER(c_int32), c_size_t, POINTER(c_size_t))),  # May be NULL. Tokens that very likely come next, one behind the other, since the constraint leaves no other text: at most `capacity`, *n of them. They are drafts, which cost a row of a pass each; a wrong one is no error. The state stays where it is. An answer other than AERIE_OK, and one of copy or accept for a text that has not come yet, means: nothing is foreseen.
    ]


class aerie_fork_options(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("stream", c_uint32),  # noise stream of the fork; 0: a number of its own, from 2^31 up and the same ones at every run that forks in the same order, so that equal seeds do not make equal twins
    ]


class aerie_token(Structure):
    """frozen"""

    _fields_ = [
        ("id", c_int32),
        ("logprob", c_float),  # log-softmax of the target's raw logits
        ("drafted", c_uint8),  # 1: it had been guessed, by a drafter or because of a constraint
        ("reserved", c_uint8 * 7),
    ]


class aerie_step_options(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("max_tokens", c_int32),  # most tokens this step may emit; 0: whatever one cycle gives
        ("budget_us", c_int64),  # 0: no limit. At least one slice of work is done
    ]


class aerie_step_result(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("state", c_int32),  # AERIE_STEP_*
        ("tokens", POINTER(aerie_token)),  # borrowed until the next call on this session
        ("n_tokens", c_int32),
        ("finish", c_int32),  # AERIE_FINISH_*
        ("stop_bytes", c_int32),  # STOP_STRING: bytes at the end of the text, from the stop string on, to cut
        ("reserved", c_int32),
    ]


class aerie_statistics(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("quarantined", c_int32),  # 1: a drafter is out: it has failed too often, or found no memory or KV too often in this session
        ("emitted", c_uint64),  # tokens generated
        ("cycles", c_uint64),  # verify passes that emitted
        ("full_cycles", c_uint64),  # of these, not cut short by a limit, stop or end of text
        ("full_emitted", c_uint64),  # tokens of the full cycles: tau = full_emitted / full_cycles
        ("proposed", c_uint64),  # nodes the drafter offered
        ("verified", c_uint64),  # nodes that went through a verify pass (root not counted)
        ("accepted", c_uint64),  # of these, emitted
        ("drafter_failures", c_uint64),  # steps that fell back to plain decode
        ("prefill_ns", c_uint64),  # wall-clock in this session's steps
        ("draft_ns", c_uint64),  # wall-clock in this session's steps
        ("verify_ns", c_uint64),  # wall-clock in this session's steps
        ("other_ns", c_uint64),  # wall-clock in this session's steps
        ("prefill_tokens", c_uint64),
        ("draft_passes", c_uint64),  # propose calls
        ("tried", c_uint64 * 16),  # by depth d: cycles whose walk came to depth d and found children there
        ("taken", c_uint64 * 16),  # of these, went on to one of them; taken / tried on chains is the papers' n-alpha
        ("reused_tokens", c_uint64),  # prompt tokens whose keys and values were there already (not in prefill_tokens)
        ("chosen_drafter", c_int32),  # of the last cycle: 0 `drafter`, 1.. `more_drafters`; -1 none (plain decode)
        ("chosen_nodes", c_int32),  # nodes that it verified, the root not counted
        ("chosen_depth", c_int32),  # of the deepest of them
        ("reserved0", c_int32),
        ("plain_cycles", c_uint64),  # cycles that no drafter was asked in
        ("chosen_cycles", c_uint64 * 8),  # cycles that asked drafter 0, 1, ...; the last one counts all further drafters
        ("foreseen_verified", c_uint64),  # of `verified`: what a constraint forces, or has usually come there, and no drafter had guessed
        ("foreseen_accepted", c_uint64),  # of these, emitted
    ]


class aerie_batch_options(Structure):
    """Sessions of one model stepped together: one pass of the target serves all of them. They may differ in everything
    (prompt, length, sampling, drafter or none, tree), and each one's text is bit for bit what it is alone. Sessions
    join and leave between steps; what one of them does (append, rewind, ...) needs no leave.

      aerie_batch_step(batch, NULL, NULL, &err);
      for each session: code = aerie_session_result(session, &result, &err), then as after aerie_session_step
    """

    _fields_ = [
        ("struct_size", c_uint32),
        ("max_rows", c_int32),  # rows of one target pass; 0: no limit. More are wanted: prompts are read in smaller chunks, and of all drafted nodes those of highest confidence are verified, whosever they are. Each session has a row at least, and keeps its whole tree under the sampled rule.
    ]


class aerie_batch_result(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("n_sessions", c_int32),  # in the batch
        ("n_tokens", c_int32),  # emitted in this step, all sessions together
        ("n_emitting", c_int32),  # sessions with tokens
        ("n_ended", c_int32),  # sessions whose text has ended, in this step or before
        ("n_failed", c_int32),  # sessions whose result is an error code
    ]


class aerie_profile_options(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("quick", c_int32),  # nonzero: about a second for the target and one for each drafter; fewer points and samples
        ("n_batches", c_int32),  # 0: batch 1
        ("n_contexts", c_int32),  # 0: 32, 128, 512, ... and the model's longest, as far as the KV budget goes
        ("batches", POINTER(c_int32)),  # sequences in a target pass, 1 .. 64
        ("contexts", POINTER(c_int32)),  # tokens behind each sequence, 1 .. the model's context
        ("n_drafters", c_int32),  # 0: the target alone
        ("reserved", c_int32),
        ("drafters", POINTER(c_void_p)),  # opened for this model; each has a free session (max_sessions)
        ("progress", aerie_progress_fn),  # called between passes on the measuring thread, counting points; 0 cancels. NULL: none
        ("progress_user", c_void_p),
    ]


class aerie_grammar_options(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("n_end_tokens", c_int32),
        ("end_tokens", POINTER(c_int32)),  # allowed where the text is complete: aerie_model_info.eos_ids. Without any it ends there once nothing can follow (AERIE_FINISH_CONSTRAINT)
        ("json_layout", c_int32),  # AERIE_JSON_*, of aerie_grammar_create_json alone. What it leaves no choice about is not drafted by anyone, but verified at once: the less choice, the faster
        ("reserved", c_int32),
    ]


class aerie_chat_message(Structure):
    """frozen"""

    _fields_ = [
        ("role", c_char_p),  # "system", "user", "assistant", ...
        ("content", c_char_p),
    ]


class aerie_chat_options(Structure):
    """A conversation: messages, or messages_json. Texts are UTF-8 and end with a zero byte; all are read during the call alone."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("add_generation_prompt", c_int32),  # nonzero: the text ends with what begins the model's answer, which comes next
        ("messages", POINTER(aerie_chat_message)),
        ("n_messages", c_int32),
        ("reserved", c_int32),
        ("messages_json", c_char_p),  # a list of objects, for what else messages have: tool_calls, reasoning_content, parts of a content. Members that are null are left out
        ("tools_json", c_char_p),  # a list of the tools' descriptions; NULL: none
        ("variables_json", c_char_p),  # an object: further variables, such as {"enable_thinking": false}; NULL: none
    ]


class aerie_convert_options(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),  # AERIE_WEIGHTS_*
        ("source", c_char_p),  # Hugging Face directory, GGUF, llama2.c .bin, head directory, or .aerie
        ("output", c_char_p),  # written under a temporary name, renamed when whole
        ("drafter_for", c_char_p),  # drafters: the target package
        ("tokenizer", c_char_p),  # llama2.c's tokenizer.bin, a tokenizer.json or tokenizer.model, or "none"; NULL: the source's own
        ("compress", c_int32),  # nonzero: zstd chunks (smaller file, unpacked at load)
        ("context", c_int32),  # targets: the longest text they will read; 0: as long as they can (LongRoPE: the shorter of two)
        ("progress", aerie_progress_fn),  # NULL: none
        ("progress_user", c_void_p),
        ("log", aerie_log_fn),  # what a user should know though it went well (level 1); NULL: silence
        ("log_user", c_void_p),
        ("candidate_rank", c_int32),  # targets: rank of a candidate head to add; 0: as the source; -1: none
        ("head_dtype", c_int32),  # AERIE_WEIGHTS_* of the embedding and the LM head; 0: dtype's
    ]


# By library: (name, result, arguments...).
FUNCTIONS: dict[str, list[Any]] = {
    "aerie": [
        # The library's version, (major << 16 | minor << 8 | patch). [any]
        ("aerie_version", c_uint32),
        # "invalid argument", "not found", ...; static. [any]
        ("aerie_code_name", c_char_p, c_int32),
        # options may be NULL. AERIE_E_UNSUPPORTED: no such device or instruction set here, or one that is too old;
        # AERIE_E_NOT_FOUND: no such number; AERIE_E_DEVICE: no driver, or the device fails. [any]
        ("aerie_runtime_create", c_int32, POINTER(aerie_runtime_options), POINTER(c_void_p), POINTER(aerie_error)),
        ("aerie_runtime_release", None, c_void_p),
        # "cpu AVX3_DL, 2 threads"; alive as long as the runtime. [any]
        ("aerie_runtime_description", c_char_p, c_void_p),
        # Load one drafter plugin from an absolute path. Nothing is searched; the bytes that were checked are
        # the bytes that run; a plugin stays loaded until the process ends. Loading it again does nothing. AERIE_E_NOT_FOUND,
        # AERIE_E_IO: the file; AERIE_E_PLUGIN: not a plugin for this host; AERIE_E_MISMATCH: another plugin has its id. [any]
        ("aerie_runtime_load_plugin", c_int32, c_void_p, c_char_p, POINTER(aerie_error)),
        # Load every plugin in an absolute directory; NULL: the drafters installed with this library
        # (aerie/drafters beside it; those inside it where it was built as libaerie.a). The first error ends it; what was loaded
        # before stays. [any]
        ("aerie_runtime_load_plugin_directory", c_int32, c_void_p, c_char_p, POINTER(aerie_error)),
        # Register a drafter plugin that is linked into the program, where nothing can be loaded: AERIE_DRAFTER_STATIC (drafter.h)
        # gives its entry a name of its own. `name` is for errors. [any]
        ("aerie_runtime_add_plugin", c_int32, c_void_p, c_char_p, aerie_plugin_entry_fn, POINTER(aerie_error)),
        # The index-th loaded drafter kind; AERIE_E_NOT_FOUND past the last. [any]
        ("aerie_runtime_plugin_info", c_int32, c_void_p, c_uint32, POINTER(aerie_plugin_info), POINTER(aerie_error)),
        # Open a target package. Immutable and shared: any number of sessions on any threads. options may be NULL.
        # AERIE_E_NOT_FOUND, AERIE_E_IO: the file; AERIE_E_BAD_FORMAT; AERIE_E_UNSUPPORTED: a newer format, or a prefill that the
        # device has not; AERIE_E_MISMATCH: a drafter's package; AERIE_E_CANCELLED. [any]
        ("aerie_model_open", c_int32, c_void_p, c_char_p, POINTER(aerie_model_options), POINTER(c_void_p), POINTER(aerie_error)),
        # One more aerie_model_release is due. [any]
        ("aerie_model_retain", None, c_void_p),
        ("aerie_model_release", None, c_void_p),
        # [any]
        ("aerie_model_info_get", c_int32, c_void_p, POINTER(aerie_model_info), POINTER(aerie_error)),
        # A byte blob of the package ("tokenizer", "chat_template"); *size is 0 when absent. Borrowed from
        # the model. [any]
        ("aerie_model_blob", c_int32, c_void_p, c_char_p, POINTER(c_void_p), POINTER(c_size_t), POINTER(aerie_error)),
        # Run the target over a text from its beginning. The rows are those of a session that reads its prompt exactly, bit for
        # bit. Takes KV for n tokens while it runs. AERIE_E_LIMIT: longer than the context, or no KV left; AERIE_E_CANCELLED. [any]
        ("aerie_model_evaluate", c_int32, c_void_p, POINTER(c_int32), c_size_t, POINTER(aerie_evaluate_options), POINTER(aerie_error)),
        # Bind a loaded plugin, and its weights, to a target. AERIE_E_MISMATCH: made for another one, or the plugin refuses it;
        # AERIE_E_NOT_FOUND: no such file, or the plugin is not loaded; AERIE_E_PLUGIN: the plugin is broken; others as
        # aerie_model_open. [any]
        ("aerie_drafter_open", c_int32, c_void_p, POINTER(aerie_drafter_options), POINTER(c_void_p), POINTER(aerie_error)),
        ("aerie_drafter_release", None, c_void_p),
        # options may be NULL. AERIE_E_LIMIT: a drafter's max_sessions are taken; AERIE_E_MISMATCH: a drafter of another model;
        # AERIE_E_UNSUPPORTED: a tree or drafter that the sampled rule cannot have; AERIE_E_PLUGIN: a drafter did not begin. [any]
        ("aerie_session_create", c_int32, c_void_p, POINTER(aerie_session_options), POINTER(c_void_p), POINTER(aerie_error)),
        # Waits for a step in flight on another thread to stop; leaves its batch. [any]
        ("aerie_session_release", None, c_void_p),
        # Texts that end the generation, at most 256, none empty; one may have begun in what was generated before. NULL, 0, NULL
        # clears. [session]
        ("aerie_session_set_stop_strings", c_int32, c_void_p, POINTER(c_char_p), c_int32, POINTER(aerie_token_source), POINTER(aerie_error)),
        # From the next token on. It begins with what is generated now, and after every append anew; a rewind leads it back, one to
        # before the last append to its beginning. NULL: none. An unfinished cycle is discarded. It is not saved with the session.
        # AERIE_E_MISMATCH: no token of the model may come to begin with, it allows none or biases forbid those. [session]
        ("aerie_session_set_constraint", c_int32, c_void_p, POINTER(aerie_constraint), POINTER(aerie_error)),
        # Append prompt tokens; any chunking gives the same text. Also after generation, to go on. AERIE_E_LIMIT: longer than the
        # context; nothing is appended then. [session]
        ("aerie_session_append", c_int32, c_void_p, POINTER(c_int32), c_size_t, POINTER(aerie_error)),
        # Keep the first `length` tokens; an unfinished cycle is discarded. [session]
        ("aerie_session_rewind", c_int32, c_void_p, c_size_t, POINTER(aerie_error)),
        # From the next token on. An unfinished cycle is discarded. [session]
        ("aerie_session_set_sampling", c_int32, c_void_p, POINTER(aerie_sampling), POINTER(aerie_error)),
        # From the next cycle on. An unfinished one is discarded. AERIE_E_UNSUPPORTED as at aerie_session_create. [session]
        ("aerie_session_set_tree", c_int32, c_void_p, POINTER(aerie_tree_options), POINTER(aerie_error)),
        # A second session with the same text, settings, drafters, stop strings and constraint; keys and values are shared until one of
        # them writes. It is in no batch, its statistics begin at zero, and it counts as one of the drafter's max_sessions. An
        # unfinished cycle is discarded, never a committed token. options may be NULL. AERIE_E_LIMIT: max_sessions are taken. A
        # drafter that does not begin is no error here (aerie_statistics). [session]
        ("aerie_session_fork", c_int32, c_void_p, POINTER(aerie_fork_options), POINTER(c_void_p), POINTER(aerie_error)),
        # Stop the step that is running, or else the next one, at the next slice; it returns AERIE_E_CANCELLED,
        # nothing committed is lost, and stepping again goes on. [any]
        ("aerie_session_cancel", None, c_void_p),
        # Forget a cancel that no step has taken: one that was meant for a step which has ended by itself meanwhile, and would
        # stop the next. A host that has made sure that nobody cancels any more knows then that nothing is left of it. [any]
        ("aerie_session_clear_cancel", None, c_void_p),
        # One cycle: draft, verify, commit; or as much of it as the budget allows. options may be NULL. AERIE_E_CANCELLED;
        # AERIE_E_LIMIT: no KV left (aerie_kv_full_fn); AERIE_E_DEVICE: the device is lost, or logits are not finite. The text so far
        # stays. A drafter that fails is no error (aerie_statistics). [session]
        ("aerie_session_step", c_int32, c_void_p, POINTER(aerie_step_options), POINTER(aerie_step_result), POINTER(aerie_error)),
        # What the session's last step gave, its own or its batch's: returns and fills what aerie_session_step would have.
        # Before the first step: AERIE_STEP_PENDING. [session]
        ("aerie_session_result", c_int32, c_void_p, POINTER(aerie_step_result), POINTER(aerie_error)),
        # All committed tokens, prompt included; borrowed until the next call on this session. [session]
        ("aerie_session_tokens", c_int32, c_void_p, POINTER(POINTER(c_int32)), POINTER(c_size_t), POINTER(aerie_error)),
        # Save and restore: a text with what has been computed for it, so that going on costs no prompt reading. The text that
        # follows is the one that would have followed (docs/session-format.md). An unfinished cycle is discarded; a session in
        # a batch may be saved.
        # *size is set to what is needed; buffer NULL, capacity 0: only that. Too small: AERIE_E_LIMIT. Versioned, checksummed.
        # [session]
        ("aerie_session_save", c_int32, c_void_p, c_void_p, c_size_t, POINTER(c_size_t), POINTER(aerie_error)),
        # The same to a file, which appears whole or not at all. [session]
        ("aerie_session_save_file", c_int32, c_void_p, c_char_p, POINTER(aerie_error)),
        # A session as aerie_session_create(model, options) makes it, whose text, keys and values, and drafter state (if the
        # same drafter is in options) are the saved ones; settings are those of options, stop strings are to be set again,
        # statistics begin at 0. Another drafter, or none, gives the same text. What a saved session holds is believed for this
        # session and its forks alone: no other session of the model shares its keys and values (keep_prefixes).
        # Damaged: AERIE_E_BAD_FORMAT. Of another model, dtype of weights or keys and values, device, ISA level or build:
        # AERIE_E_MISMATCH. Of another format version: AERIE_E_UNSUPPORTED. No room in context or KV budget: AERIE_E_LIMIT. Others
        # as aerie_session_create, but that a drafter which does not begin is no error. The message names the field; *out is
        # untouched. [any]
        ("aerie_session_restore", c_int32, c_void_p, POINTER(aerie_session_options), c_void_p, c_size_t, POINTER(c_void_p), POINTER(aerie_error)),
        # The same from a file. [any]
        ("aerie_session_restore_file", c_int32, c_void_p, POINTER(aerie_session_options), c_char_p, POINTER(c_void_p), POINTER(aerie_error)),
        # Since the session was made; what has a time is in nanoseconds. [session]
        ("aerie_session_statistics", c_int32, c_void_p, POINTER(aerie_statistics), POINTER(aerie_error)),
        # options may be NULL. [any]
        ("aerie_batch_create", c_int32, c_void_p, POINTER(aerie_batch_options), POINTER(c_void_p), POINTER(aerie_error)),
        # Its sessions go on alone. Waits for a step in flight on another thread to stop. [any]
        ("aerie_batch_release", None, c_void_p),
        # A session is in one batch at most (AERIE_E_BUSY), of its own model (AERIE_E_MISMATCH). While it is in, its own
        # aerie_session_step gives AERIE_E_BUSY. A cycle that it has begun is given up. [batch]
        ("aerie_batch_add", c_int32, c_void_p, c_void_p, POINTER(aerie_error)),
        # Its cycle is given up, nobody else's. AERIE_E_NOT_FOUND: it is not in this batch. [batch]
        ("aerie_batch_remove", c_int32, c_void_p, c_void_p, POINTER(aerie_error)),
        # Stop the step that is running, or else the next one, as aerie_session_cancel does. That function works on a session in
        # a batch too: the step stops, the session's result is AERIE_E_CANCELLED, the others' are what they are. [any]
        ("aerie_batch_cancel", None, c_void_p),
        # Forget one that no step has taken, as aerie_session_clear_cancel does. [any]
        ("aerie_batch_clear_cancel", None, c_void_p),
        # One cycle of the sessions that are ready to decode and a chunk of prompt of those that are not; or as much of it as
        # the budget allows. Returns when any session has tokens, has ended or is cancelled. max_tokens holds for each session.
        # A session that fails does not stop the others and stays in; one whose text has ended costs nothing. options and out
        # may be NULL. AERIE_E_CANCELLED: by aerie_batch_cancel. [batch]
        ("aerie_batch_step", c_int32, c_void_p, POINTER(aerie_step_options), POINTER(aerie_batch_result), POINTER(aerie_error)),
        # An empty profile, to measure into. [any]
        ("aerie_profile_create", c_int32, POINTER(c_void_p), POINTER(aerie_error)),
        # A profile from a file. AERIE_E_NOT_FOUND, AERIE_E_IO: the file; AERIE_E_BAD_FORMAT: damaged; AERIE_E_UNSUPPORTED: an older
        # or newer format. The error names file and field. [any]
        ("aerie_profile_load", c_int32, c_char_p, POINTER(c_void_p), POINTER(aerie_error)),
        # Waits for a measurement on another thread to stop. What it is attached to keeps the costs. [any]
        ("aerie_profile_release", None, c_void_p),
        # Measure, in place of what the profile held. Takes KV of the model while it runs (AERIE_E_LIMIT when there is none), and is
        # only as good as the machine is quiet. On failure the profile holds what it held before. options may be NULL. [profile]
        ("aerie_profile_measure", c_int32, c_void_p, c_void_p, POINTER(aerie_profile_options), POINTER(aerie_error)),
        # Stop the measurement that is running, or else the next one, within milliseconds; it returns AERIE_E_CANCELLED. [any]
        ("aerie_profile_cancel", None, c_void_p),
        # Forget one that no measurement has taken, as aerie_session_clear_cancel does. [any]
        ("aerie_profile_clear_cancel", None, c_void_p),
        # Written under a temporary name, renamed when whole. AERIE_E_INVALID_ARGUMENT: the path is there and no cost table, and stays
        # as it is; AERIE_E_IO. [profile]
        ("aerie_profile_save", c_int32, c_void_p, c_char_p, POINTER(aerie_error)),
        # The tables as one JSON object; borrowed until the next call on this profile. [profile]
        ("aerie_profile_json", c_int32, c_void_p, POINTER(POINTER(c_char)), POINTER(c_size_t), POINTER(aerie_error)),
        # Sessions created on this model (with this drafter) from now on use the costs. AERIE_E_MISMATCH, naming the field, when
        # they were measured with another model, device, instruction set, thread count, dtype or library version, or hold no such
        # drafter. A drafter without costs is learned from its first passes. [profile]
        ("aerie_profile_attach", c_int32, c_void_p, c_void_p, POINTER(aerie_error)),
        # The same for one drafter's passes. [profile]
        ("aerie_profile_attach_drafter", c_int32, c_void_p, c_void_p, POINTER(aerie_error)),
        # Expected milliseconds of a target pass over `rows` rows for each of `batch` sequences of `context` tokens; never falls with
        # any of the three. [profile]
        ("aerie_profile_target_ms", c_int32, c_void_p, c_int32, c_int32, c_int32, POINTER(c_double), POINTER(aerie_error)),
    ],
    "aerie-text": [
        # From a package's "tokenizer" blob (aerie_model_blob). The bytes are copied. AERIE_E_NOT_FOUND: size 0, the package has
        # none; AERIE_E_BAD_FORMAT; AERIE_E_UNSUPPORTED: of a newer version. [any]
        ("aerie_tokenizer_create", c_int32, c_void_p, c_size_t, POINTER(c_void_p), POINTER(aerie_error)),
        ("aerie_tokenizer_release", None, c_void_p),
        # Fill a source for aerie_session_set_stop_strings. A session that has taken it holds the tokenizer, which may be released
        # then. [any]
        ("aerie_tokenizer_source", c_int32, c_void_p, POINTER(aerie_token_source), POINTER(aerie_error)),
        # Encode UTF-8. Writes at most `capacity` ids and sets *n to the number needed; AERIE_E_LIMIT when
        # that is more than capacity (ids may be NULL with capacity 0 to ask), AERIE_E_INVALID_ARGUMENT when the vocabulary has no
        # token for a byte of it (SmolLM's lacks some that text hardly has). [any]
        ("aerie_tokenizer_encode", c_int32, c_void_p, c_char_p, c_size_t, c_uint32, POINTER(c_int32), c_size_t, POINTER(c_size_t), POINTER(aerie_error)),
        # Token ids are below it. [any]
        ("aerie_tokenizer_vocab_size", c_int32, c_void_p),
        # Bytes of a token, as aerie_token_bytes_fn has them, and their number, not a code; alive as long as the tokenizer. [any]
        ("aerie_tokenizer_token_bytes", c_int32, c_void_p, c_int32, c_int32, POINTER(POINTER(c_char))),
        # Tokens to text without splitting a UTF-8 character. Retains the tokenizer. [any]
        ("aerie_decoder_create", c_int32, c_void_p, POINTER(c_void_p), POINTER(aerie_error)),
        ("aerie_decoder_release", None, c_void_p),
        # Push a token; *text (complete characters, may be empty) is borrowed until the next call. [decoder]
        ("aerie_decoder_push", c_int32, c_void_p, c_int32, POINTER(POINTER(c_char)), POINTER(c_size_t), POINTER(aerie_error)),
        # What was held back, as U+FFFD; borrowed as above. The decoder is then fresh. [decoder]
        ("aerie_decoder_finish", c_int32, c_void_p, POINTER(POINTER(c_char)), POINTER(c_size_t), POINTER(aerie_error)),
        # From GBNF, llama.cpp's notation, whose start is the rule "root". Immutable, may be shared by sessions on many threads; retains the
        # tokenizer. options may be NULL. AERIE_E_BAD_FORMAT: no grammar, with the line; AERIE_E_UNSUPPORTED: left recursion;
        # AERIE_E_LIMIT: it grows too large. [any]
        ("aerie_grammar_create", c_int32, c_void_p, c_char_p, POINTER(aerie_grammar_options), POINTER(c_void_p), POINTER(aerie_error)),
        # JSON that a JSON Schema describes; "{}" is any JSON. AERIE_E_BAD_FORMAT: no JSON or no schema; AERIE_E_UNSUPPORTED: a keyword that
        # is not known, by its path; AERIE_E_LIMIT as above. [any]
        ("aerie_grammar_create_json", c_int32, c_void_p, c_char_p, POINTER(aerie_grammar_options), POINTER(c_void_p), POINTER(aerie_error)),
        ("aerie_grammar_release", None, c_void_p),
        # Fill a constraint for aerie_session_set_constraint. A session that has taken it holds the grammar, which may be released
        # then. [any]
        ("aerie_grammar_constraint", c_int32, c_void_p, POINTER(aerie_constraint), POINTER(aerie_error)),
        # From a package's "chat_template" blob (aerie_model_blob), a Jinja template as transformers runs them. The model's tokenizer and
        # info say what its bos_token and eos_token are; either may be NULL, and the template does without. Nothing is retained. Immutable,
        # may be shared by threads. AERIE_E_NOT_FOUND: size 0, the package has none; AERIE_E_BAD_FORMAT: no template, with the line;
        # AERIE_E_UNSUPPORTED: it uses what is not supported, by name and line; AERIE_E_LIMIT: longer than 1 MiB, or nested too deep. [any]
        ("aerie_chat_template_create", c_int32, c_char_p, c_size_t, c_void_p, POINTER(aerie_model_info), POINTER(c_void_p), POINTER(aerie_error)),
        ("aerie_chat_template_release", None, c_void_p),
        # Writes the text, at most `capacity` bytes without a zero byte at the end, and sets *size to the number needed; AERIE_E_LIMIT when
        # that is more than capacity (out may be NULL with capacity 0 to ask). Encode it with AERIE_ENCODE_SPECIAL | AERIE_ENCODE_NO_BOS: the
        # template writes the model's markers, a BOS among them. AERIE_E_INVALID_ARGUMENT: the template refuses the conversation, in its
        # own words (roles must alternate), or wants what is not there; AERIE_E_BAD_FORMAT: no JSON; AERIE_E_UNSUPPORTED as at create;
        # AERIE_E_LIMIT, *size untouched: it takes too many steps, too much memory, or writes more than 64 MiB. [any]
        ("aerie_chat_template_render", c_int32, c_void_p, POINTER(aerie_chat_options), POINTER(c_char), c_size_t, POINTER(c_size_t), POINTER(aerie_error)),
        # Reads all of the source and writes one package (docs/package-format.md). Hooks are called on this thread. AERIE_E_NOT_FOUND,
        # AERIE_E_IO: a file; AERIE_E_BAD_FORMAT; AERIE_E_UNSUPPORTED: no checkpoint that is known, or a setting that would be another
        # model; AERIE_E_MISMATCH: source and drafter_for do not go together; AERIE_E_CANCELLED. Nothing is left behind then.
        ("aerie_convert", c_int32, POINTER(aerie_convert_options), POINTER(aerie_error)),
        # A description of a package. *text is malloc-owned by the library: free it with aerie_string_free.
        ("aerie_inspect", c_int32, c_char_p, c_int32, POINTER(POINTER(c_char)), POINTER(aerie_error)),
        ("aerie_string_free", None, POINTER(c_char)),
    ],
}


def declare(library: CDLL, functions: list[Any]) -> None:
    """Give the functions of a CDLL their types."""
    for name, result, *arguments in functions:
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments

// Generated from capi/include/aerie/*.h by bindings/generate.py: do not edit.
using System;
using System.Runtime.InteropServices;

namespace Aerie.Native
{
    /// <summary>struct aerie_error</summary>
    [StructLayout(LayoutKind.Sequential)]
    internal unsafe struct aerie_error
    {
        /// <summary>set by the caller, so that the library knows how much it may write</summary>
        internal uint struct_size;
        internal int code;
        /// <summary>UTF-8, NUL-terminated, cut if longer</summary>
        internal fixed byte message[504];
    }

    /// <summary>struct aerie_runtime_options</summary>
    [StructLayout(LayoutKind.Sequential)]
    internal unsafe struct aerie_runtime_options
    {
        internal uint struct_size;
        /// <summary>0: one for each physical core this process may use</summary>
        internal int threads;
        /// <summary>
        /// "cpu" (NULL: the same), "cpu:AVX2" (the level of docs/exactness.md with that name, for
        /// one text on all machines), "cuda" or "cuda:N" (libaerie-cuda)
        /// </summary>
        internal byte* device;
        /// <summary>NULL: silence</summary>
        internal IntPtr log;
        internal IntPtr log_user;
        /// <summary>both or none: device memory (KV, working memory)</summary>
        internal IntPtr alloc;
        internal IntPtr free;
        internal IntPtr alloc_user;
        /// <summary>
        /// the host's job system in place of our threads; `threads` says how many it has, and
        /// with 1 it is not asked
        /// </summary>
        internal IntPtr parallel_for;
        internal IntPtr parallel_user;
    }

    /// <summary>struct aerie_plugin_info</summary>
    [StructLayout(LayoutKind.Sequential)]
    internal unsafe struct aerie_plugin_info
    {
        internal uint struct_size;
        /// <summary>AERIE_DRAFTER_* of drafter.h</summary>
        internal uint flags;
        /// <summary>this and the other strings are borrowed from the runtime</summary>
        internal byte* id;
        internal byte* title;
        internal byte* version;
        internal byte* path;
    }

    /// <summary>struct aerie_model_options</summary>
    [StructLayout(LayoutKind.Sequential)]
    internal unsafe struct aerie_model_options
    {
        internal uint struct_size;
        /// <summary>KV budget shared by the model's sessions, in tokens; 0: 4 x the context, from 4096 to 32768</summary>
        internal int kv_positions;
        internal IntPtr progress;
        internal IntPtr progress_user;
        /// <summary>0 f32, 1 bf16, 2 int8 (a scale for each position and head)</summary>
        internal int kv_dtype;
        /// <summary>nonzero: checksum raw tensors too (reads the whole file)</summary>
        internal int check_data;
        /// <summary>
        /// 0: texts' keys and values stay usable for later sessions that begin alike, until their
        /// room is wanted; -1: off
        /// </summary>
        internal int keep_prefixes;
        /// <summary>AERIE_PREFILL_*</summary>
        internal int prefill;
        /// <summary>NULL: AERIE_E_LIMIT at once</summary>
        internal IntPtr kv_full;
        internal IntPtr kv_full_user;
    }

    /// <summary>struct aerie_model_info</summary>
    [StructLayout(LayoutKind.Sequential)]
    internal unsafe struct aerie_model_info
    {
        internal uint struct_size;
        internal int vocab_size;
        internal int hidden_size;
        internal int layers;
        internal int heads;
        internal int kv_heads;
        internal int head_dim;
        internal int ffn;
        internal int max_context;
        /// <summary>-1: none</summary>
        internal int bos_id;
        internal int n_eos;
        /// <summary>borrowed from the model</summary>
        internal int* eos_ids;
        internal byte* name;
        /// <summary>hex; equal for requantised copies</summary>
        internal byte* fingerprint;
        internal ulong weight_bytes;
        internal ulong kv_bytes_per_token;
        /// <summary>AERIE_PREFILL_*: how the model was opened</summary>
        internal int prefill;
        internal int reserved0;
    }

    /// <summary>A text as the target sees it, for training and analysis: rows are written where the caller wants them.</summary>
    [StructLayout(LayoutKind.Sequential)]
    internal unsafe struct aerie_evaluate_options
    {
        internal uint struct_size;
        internal int n_taps;
        /// <summary>
        /// layers whose input is wanted; their number: the last one's output; -1: that after
        /// the final norm
        /// </summary>
        internal int* taps;
        /// <summary>[tokens][n_taps * hidden_size]; NULL: none</summary>
        internal float* features;
        /// <summary>[tokens][vocab_size]; NULL: none</summary>
        internal float* logits;
        /// <summary>counting tokens; 0 cancels. NULL: none</summary>
        internal IntPtr progress;
        internal IntPtr progress_user;
    }

    /// <summary>struct aerie_drafter_options</summary>
    [StructLayout(LayoutKind.Sequential)]
    internal unsafe struct aerie_drafter_options
    {
        internal uint struct_size;
        /// <summary>sessions that may use it at once, 1 .. 4096; 0: 8</summary>
        internal int max_sessions;
        /// <summary>path of a drafter package, or of a target used as draft model</summary>
        internal byte* package;
        /// <summary>
        /// plugin id; NULL: what the package names, or the first that takes targets. Required
        /// without a package
        /// </summary>
        internal byte* plugin;
        /// <summary>while the package is read; without one it is not called</summary>
        internal IntPtr progress;
        internal IntPtr progress_user;
    }

    /// <summary>frozen</summary>
    [StructLayout(LayoutKind.Sequential)]
    internal unsafe struct aerie_logit_bias
    {
        internal int token;
        /// <summary>added to the token's logit; -INFINITY: it never comes</summary>
        internal float bias;
    }

    /// <summary>Biases come first, then penalties, the session's constraint, temperature, top_k, top_p, min_p and the draw.</summary>
    [StructLayout(LayoutKind.Sequential)]
    internal unsafe struct aerie_sampling
    {
        internal uint struct_size;
        /// <summary>0: off</summary>
        internal int top_k;
        internal ulong seed;
        /// <summary>0: greedy, ties to the lowest id</summary>
        internal float temperature;
        /// <summary>0 or &gt;= 1: off</summary>
        internal float top_p;
        /// <summary>0: off</summary>
        internal float min_p;
        /// <summary>noise stream: sessions with equal seeds but different streams differ</summary>
        internal uint stream;
        /// <summary>
        /// of each token in the text, prompt included: a logit above 0 is divided by it, any other
        /// multiplied; 0 or 1: off
        /// </summary>
        internal float repetition_penalty;
        /// <summary>taken from the logit of each token that was generated since the last append; 0: off</summary>
        internal float presence_penalty;
        /// <summary>the same, as often as it was generated; 0: off</summary>
        internal float frequency_penalty;
        /// <summary>penalties look at this many tokens, the newest; 0: all</summary>
        internal int penalty_window;
        /// <summary>copied; a token that is listed twice has the sum</summary>
        internal aerie_logit_bias* logit_bias;
        internal int n_logit_bias;
        internal int reserved0;
    }

    /// <summary>fields that the policy has not stay 0, or it is AERIE_E_INVALID_ARGUMENT</summary>
    [StructLayout(LayoutKind.Sequential)]
    internal unsafe struct aerie_tree_options
    {
        internal uint struct_size;
        /// <summary>AERIE_TREE_*; default: auto (static under the sampled rule)</summary>
        internal int policy;
        /// <summary>chain: length (0: 5). eagle2, cast: total with the root (0: 60, 72 as published)</summary>
        internal int nodes;
        /// <summary>
        /// eagle2: levels after the first; 0: 5, or all of a one-pass drafter; -1: none.
        /// backbone: levels; 0: 7. cast; 0: 13
        /// </summary>
        internal int depth;
        /// <summary>eagle2, cast: children a node and frontier width; backbone: nodes a level; 0: 10 (cast: 12)</summary>
        internal int top_k;
        /// <summary>static: rank paths, 0: EAGLE's 25-node tree</summary>
        internal int n_paths;
        /// <summary>each path as its ranks followed by -1, every prefix a path too, e.g. 0,-1, 1,-1, 0,0,-1</summary>
        internal int* paths;
        /// <summary>cast: C1 = C2 = C3; 0: 3</summary>
        internal float threshold;
        internal int reserved0;
    }

    /// <summary>struct aerie_session_options</summary>
    [StructLayout(LayoutKind.Sequential)]
    internal unsafe struct aerie_session_options
    {
        internal uint struct_size;
        /// <summary>0: the model's</summary>
        internal int max_context;
        /// <summary>NULL: plain decode</summary>
        internal IntPtr drafter;
        /// <summary>NULL: greedy. What is pointed at is copied, here and below</summary>
        internal aerie_sampling* sampling;
        /// <summary>NULL: the default policy</summary>
        internal aerie_tree_options* tree;
        /// <summary>AERIE_NOISE_*</summary>
        internal int draft_noise;
        /// <summary>AERIE_VERIFY_*</summary>
        internal int verify;
        /// <summary>nonzero: the model's end-of-text ids are ordinary tokens</summary>
        internal int ignore_eos;
        internal int n_stop_tokens;
        /// <summary>further tokens that end the text; emitted, then stop</summary>
        internal int* stop_tokens;
        /// <summary>at most 15; needs `drafter`</summary>
        internal int n_more_drafters;
        /// <summary>
        /// nonzero: what a constraint forces, or has usually come there, is left to the drafter, or to
        /// plain decode; to measure what it brings. The text is the same
        /// </summary>
        internal int no_foresight;
        /// <summary>
        /// further drafters: AERIE_TREE_AUTO chooses between all of them, cycle by
        /// cycle, by expected tokens a second; other trees use `drafter` alone. Each is opened
        /// for this model and holds one of its max_sessions
        /// </summary>
        internal IntPtr* more_drafters;
    }

    /// <summary>Where a session has its tokens' bytes from: aerie_tokenizer_source (text.h) fills it, or a tokenizer of the host's own.</summary>
    [StructLayout(LayoutKind.Sequential)]
    internal unsafe struct aerie_token_source
    {
        internal uint struct_size;
        internal uint reserved;
        internal IntPtr user;
        /// <summary>called on the thread that steps</summary>
        internal IntPtr bytes;
        /// <summary>called when a session takes the source; NULL (and so release): the host keeps `user` alive</summary>
        internal IntPtr hold;
        /// <summary>called once for it when the session and its forks have let go, on whatever thread</summary>
        internal IntPtr release;
    }

    /// <summary>
    /// What may come next: a grammar (aerie_grammar_constraint of text.h), or a matcher of the host's own. The session keeps a
    /// state for its text, and copies it to look ahead: in a cycle some hundreds of candidates of a large tree are tried by copy and
    /// accept, and a mask is made for each token that comes. Functions return AERIE_OK or the code that the step ends with. They are
    /// called on the thread that steps (destroy: on whatever one lets a state go), never two at a time for one session; a fork's
    /// states are its own.
    /// </summary>
    [StructLayout(LayoutKind.Sequential)]
    internal unsafe struct aerie_constraint
    {
        internal uint struct_size;
        internal uint reserved;
        internal IntPtr user;
        /// <summary>before the first token</summary>
        internal IntPtr begin;
        internal IntPtr copy;
        /// <summary>
        /// Token t may come next: bit t % 32 of mask[t / 32], of n_words words that are all 0 before. What is beyond the model's
        /// vocabulary is ignored. None may: the text ends (AERIE_FINISH_CONSTRAINT). The model's end-of-text ids are allowed where
        /// the text may end.
        /// </summary>
        internal IntPtr allowed;
        /// <summary>
        /// it came next. AERIE_E_MISMATCH: it may not (asked of drafted
        /// tokens); the state is only destroyed then
        /// </summary>
        internal IntPtr accept;
        internal IntPtr destroy;
        /// <summary>as in aerie_token_source</summary>
        internal IntPtr hold;
        internal IntPtr release;
        /// <summary>
        /// May be NULL. Tokens that very likely come next, one behind the other, since the constraint leaves no other text: at most
        /// `capacity`, *n of them. They are drafts, which cost a row of a pass each; a wrong one is no error. The state stays where it
        /// is. An answer other than AERIE_OK, and one of copy or accept for a text that has not come yet, means: nothing is foreseen.
        /// </summary>
        internal IntPtr forced;
    }

    /// <summary>struct aerie_fork_options</summary>
    [StructLayout(LayoutKind.Sequential)]
    internal unsafe struct aerie_fork_options
    {
        internal uint struct_size;
        /// <summary>
        /// noise stream of the fork; 0: a number of its own, from 2^31 up and the same ones at every run that
        /// forks in the same order, so that equal seeds do not make equal twins
        /// </summary>
        internal uint stream;
    }

    /// <summary>frozen</summary>
    [StructLayout(LayoutKind.Sequential)]
    internal unsafe struct aerie_token
    {
        internal int id;
        /// <summary>log-softmax of the target's raw logits</summary>
        internal float logprob;
        /// <summary>1: it had been guessed, by a drafter or because of a constraint</summary>
        internal byte drafted;
        internal fixed byte reserved[7];
    }

    /// <summary>struct aerie_step_options</summary>
    [StructLayout(LayoutKind.Sequential)]
    internal unsafe struct aerie_step_options
    {
        internal uint struct_size;
        /// <summary>most tokens this step may emit; 0: whatever one cycle gives</summary>
        internal int max_tokens;
        /// <summary>0: no limit. At least one slice of work is done</summary>
        internal long budget_us;
    }

    /// <summary>struct aerie_step_result</summary>
    [StructLayout(LayoutKind.Sequential)]
    internal unsafe struct aerie_step_result
    {
        internal uint struct_size;
        /// <summary>AERIE_STEP_*</summary>
        internal int state;
        /// <summary>borrowed until the next call on this session</summary>
        internal aerie_token* tokens;
        internal int n_tokens;
        /// <summary>AERIE_FINISH_*</summary>
        internal int finish;
        /// <summary>STOP_STRING: bytes at the end of the text, from the stop string on, to cut</summary>
        internal int stop_bytes;
        internal int reserved;
    }

    /// <summary>struct aerie_statistics</summary>
    [StructLayout(LayoutKind.Sequential)]
    internal unsafe struct aerie_statistics
    {
        internal uint struct_size;
        /// <summary>1: a drafter is out: it has failed too often, or found no memory or KV too often in this session</summary>
        internal int quarantined;
        /// <summary>tokens generated</summary>
        internal ulong emitted;
        /// <summary>verify passes that emitted</summary>
        internal ulong cycles;
        /// <summary>of these, not cut short by a limit, stop or end of text</summary>
        internal ulong full_cycles;
        /// <summary>tokens of the full cycles: tau = full_emitted / full_cycles</summary>
        internal ulong full_emitted;
        /// <summary>nodes the drafter offered</summary>
        internal ulong proposed;
        /// <summary>nodes that went through a verify pass (root not counted)</summary>
        internal ulong verified;
        /// <summary>of these, emitted</summary>
        internal ulong accepted;
        /// <summary>steps that fell back to plain decode</summary>
        internal ulong drafter_failures;
        /// <summary>wall-clock in this session's steps</summary>
        internal ulong prefill_ns;
        /// <summary>wall-clock in this session's steps</summary>
        internal ulong draft_ns;
        /// <summary>wall-clock in this session's steps</summary>
        internal ulong verify_ns;
        /// <summary>wall-clock in this session's steps</summary>
        internal ulong other_ns;
        internal ulong prefill_tokens;
        /// <summary>propose calls</summary>
        internal ulong draft_passes;
        /// <summary>by depth d: cycles whose walk came to depth d and found children there</summary>
        internal fixed ulong tried[16];
        /// <summary>of these, went on to one of them; taken / tried on chains is the papers' n-alpha</summary>
        internal fixed ulong taken[16];
        /// <summary>prompt tokens whose keys and values were there already (not in prefill_tokens)</summary>
        internal ulong reused_tokens;
        /// <summary>of the last cycle: 0 `drafter`, 1.. `more_drafters`; -1 none (plain decode)</summary>
        internal int chosen_drafter;
        /// <summary>nodes that it verified, the root not counted</summary>
        internal int chosen_nodes;
        /// <summary>of the deepest of them</summary>
        internal int chosen_depth;
        internal int reserved0;
        /// <summary>cycles that no drafter was asked in</summary>
        internal ulong plain_cycles;
        /// <summary>cycles that asked drafter 0, 1, ...; the last one counts all further drafters</summary>
        internal fixed ulong chosen_cycles[8];
        /// <summary>of `verified`: what a constraint forces, or has usually come there, and no drafter had guessed</summary>
        internal ulong foreseen_verified;
        /// <summary>of these, emitted</summary>
        internal ulong foreseen_accepted;
    }

    /// <summary>
    /// Sessions of one model stepped together: one pass of the target serves all of them. They may differ in everything
    /// (prompt, length, sampling, drafter or none, tree), and each one's text is bit for bit what it is alone. Sessions
    /// join and leave between steps; what one of them does (append, rewind, ...) needs no leave.
    ///
    ///   aerie_batch_step(batch, NULL, NULL, &amp;err);
    ///   for each session: code = aerie_session_result(session, &amp;result, &amp;err), then as after aerie_session_step
    /// </summary>
    [StructLayout(LayoutKind.Sequential)]
    internal unsafe struct aerie_batch_options
    {
        internal uint struct_size;
        /// <summary>
        /// rows of one target pass; 0: no limit. More are wanted: prompts are read in smaller chunks, and of
        /// all drafted nodes those of highest confidence are verified, whosever they are. Each session has a
        /// row at least, and keeps its whole tree under the sampled rule.
        /// </summary>
        internal int max_rows;
    }

    /// <summary>struct aerie_batch_result</summary>
    [StructLayout(LayoutKind.Sequential)]
    internal unsafe struct aerie_batch_result
    {
        internal uint struct_size;
        /// <summary>in the batch</summary>
        internal int n_sessions;
        /// <summary>emitted in this step, all sessions together</summary>
        internal int n_tokens;
        /// <summary>sessions with tokens</summary>
        internal int n_emitting;
        /// <summary>sessions whose text has ended, in this step or before</summary>
        internal int n_ended;
        /// <summary>sessions whose result is an error code</summary>
        internal int n_failed;
    }

    /// <summary>struct aerie_profile_options</summary>
    [StructLayout(LayoutKind.Sequential)]
    internal unsafe struct aerie_profile_options
    {
        internal uint struct_size;
        /// <summary>nonzero: about a second for the target and one for each drafter; fewer points and samples</summary>
        internal int quick;
        /// <summary>0: batch 1</summary>
        internal int n_batches;
        /// <summary>0: 32, 128, 512, ... and the model's longest, as far as the KV budget goes</summary>
        internal int n_contexts;
        /// <summary>sequences in a target pass, 1 .. 64</summary>
        internal int* batches;
        /// <summary>tokens behind each sequence, 1 .. the model's context</summary>
        internal int* contexts;
        /// <summary>0: the target alone</summary>
        internal int n_drafters;
        internal int reserved;
        /// <summary>opened for this model; each has a free session (max_sessions)</summary>
        internal IntPtr* drafters;
        /// <summary>called between passes on the measuring thread, counting points; 0 cancels. NULL: none</summary>
        internal IntPtr progress;
        internal IntPtr progress_user;
    }

    /// <summary>struct aerie_grammar_options</summary>
    [StructLayout(LayoutKind.Sequential)]
    internal unsafe struct aerie_grammar_options
    {
        internal uint struct_size;
        internal int n_end_tokens;
        /// <summary>
        /// allowed where the text is complete: aerie_model_info.eos_ids. Without any it ends there once
        /// nothing can follow (AERIE_FINISH_CONSTRAINT)
        /// </summary>
        internal int* end_tokens;
        /// <summary>
        /// AERIE_JSON_*, of aerie_grammar_create_json alone. What it leaves no choice about is not drafted by anyone,
        /// but verified at once: the less choice, the faster
        /// </summary>
        internal int json_layout;
        internal int reserved;
    }

    /// <summary>frozen</summary>
    [StructLayout(LayoutKind.Sequential)]
    internal unsafe struct aerie_chat_message
    {
        /// <summary>"system", "user", "assistant", ...</summary>
        internal byte* role;
        internal byte* content;
    }

    /// <summary>A conversation: messages, or messages_json. Texts are UTF-8 and end with a zero byte; all are read during the call alone.</summary>
    [StructLayout(LayoutKind.Sequential)]
    internal unsafe struct aerie_chat_options
    {
        internal uint struct_size;
        /// <summary>nonzero: the text ends with what begins the model's answer, which comes next</summary>
        internal int add_generation_prompt;
        internal aerie_chat_message* messages;
        internal int n_messages;
        internal int reserved;
        /// <summary>
        /// a list of objects, for what else messages have: tool_calls, reasoning_content, parts of a content.
        /// Members that are null are left out
        /// </summary>
        internal byte* messages_json;
        /// <summary>a list of the tools' descriptions; NULL: none</summary>
        internal byte* tools_json;
        /// <summary>an object: further variables, such as {"enable_thinking": false}; NULL: none</summary>
        internal byte* variables_json;
    }

    /// <summary>struct aerie_convert_options</summary>
    [StructLayout(LayoutKind.Sequential)]
    internal unsafe struct aerie_convert_options
    {
        internal uint struct_size;
        /// <summary>AERIE_WEIGHTS_*</summary>
        internal int dtype;
        /// <summary>Hugging Face directory, GGUF, llama2.c .bin, head directory, or .aerie</summary>
        internal byte* source;
        /// <summary>written under a temporary name, renamed when whole</summary>
        internal byte* output;
        /// <summary>drafters: the target package</summary>
        internal byte* drafter_for;
        /// <summary>llama2.c's tokenizer.bin, a tokenizer.json or tokenizer.model, or "none"; NULL: the source's own</summary>
        internal byte* tokenizer;
        /// <summary>nonzero: zstd chunks (smaller file, unpacked at load)</summary>
        internal int compress;
        /// <summary>targets: the longest text they will read; 0: as long as they can (LongRoPE: the shorter of two)</summary>
        internal int context;
        /// <summary>NULL: none</summary>
        internal IntPtr progress;
        internal IntPtr progress_user;
        /// <summary>what a user should know though it went well (level 1); NULL: silence</summary>
        internal IntPtr log;
        internal IntPtr log_user;
        /// <summary>targets: rank of a candidate head to add; 0: as the source; -1: none</summary>
        internal int candidate_rank;
        /// <summary>AERIE_WEIGHTS_* of the embedding and the LM head; 0: dtype's</summary>
        internal int head_dtype;
    }
}

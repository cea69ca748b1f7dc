// Generated from capi/include/aerie/*.h by bindings/generate.py: do not edit.
#if NET8_0_OR_GREATER
using System;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

namespace Aerie.Native
{
    internal static unsafe partial class Methods
    {
        /// <summary>The library's version, (major &lt;&lt; 16 | minor &lt;&lt; 8 | patch). [any]</summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial uint aerie_version();

        /// <summary>"invalid argument", "not found", ...; static. [any]</summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial byte* aerie_code_name(int code);

        /// <summary>
        /// options may be NULL. AERIE_E_UNSUPPORTED: no such device or instruction set here, or one that is too old;
        /// AERIE_E_NOT_FOUND: no such number; AERIE_E_DEVICE: no driver, or the device fails. [any]
        /// </summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_runtime_create(aerie_runtime_options* options, IntPtr* @out, aerie_error* err);

        /// <summary>void aerie_runtime_release(aerie_runtime *runtime)</summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial void aerie_runtime_release(IntPtr runtime);

        /// <summary>"cpu AVX3_DL, 2 threads"; alive as long as the runtime. [any]</summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial byte* aerie_runtime_description(IntPtr runtime);

        /// <summary>
        /// Load one drafter plugin from an absolute path. Nothing is searched; the bytes that were checked are
        /// the bytes that run; a plugin stays loaded until the process ends. Loading it again does nothing. AERIE_E_NOT_FOUND,
        /// AERIE_E_IO: the file; AERIE_E_PLUGIN: not a plugin for this host; AERIE_E_MISMATCH: another plugin has its id. [any]
        /// </summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_runtime_load_plugin(IntPtr runtime, byte* absolute_path, aerie_error* err);

        /// <summary>
        /// Load every plugin in an absolute directory; NULL: the drafters installed with this library
        /// (aerie/drafters beside it; those inside it where it was built as libaerie.a). The first error ends it; what was loaded
        /// before stays. [any]
        /// </summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_runtime_load_plugin_directory(IntPtr runtime, byte* absolute_path, aerie_error* err);

        /// <summary>
        /// Register a drafter plugin that is linked into the program, where nothing can be loaded: AERIE_DRAFTER_STATIC (drafter.h)
        /// gives its entry a name of its own. `name` is for errors. [any]
        /// </summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_runtime_add_plugin(IntPtr runtime, byte* name, IntPtr entry, aerie_error* err);

        /// <summary>The index-th loaded drafter kind; AERIE_E_NOT_FOUND past the last. [any]</summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_runtime_plugin_info(IntPtr runtime, uint index, aerie_plugin_info* @out, aerie_error* err);

        /// <summary>
        /// Open a target package. Immutable and shared: any number of sessions on any threads. options may be NULL.
        /// AERIE_E_NOT_FOUND, AERIE_E_IO: the file; AERIE_E_BAD_FORMAT; AERIE_E_UNSUPPORTED: a newer format, or a prefill that the
        /// device has not; AERIE_E_MISMATCH: a drafter's package; AERIE_E_CANCELLED. [any]
        /// </summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_model_open(IntPtr runtime, byte* path, aerie_model_options* options, IntPtr* @out, aerie_error* err);

        /// <summary>One more aerie_model_release is due. [any]</summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial void aerie_model_retain(IntPtr model);

        /// <summary>void aerie_model_release(aerie_model *model)</summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial void aerie_model_release(IntPtr model);

        /// <summary>[any]</summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_model_info_get(IntPtr model, aerie_model_info* @out, aerie_error* err);

        /// <summary>
        /// A byte blob of the package ("tokenizer", "chat_template"); *size is 0 when absent. Borrowed from
        /// the model. [any]
        /// </summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_model_blob(IntPtr model, byte* name, IntPtr* data, UIntPtr* size, aerie_error* err);

        /// <summary>
        /// Run the target over a text from its beginning. The rows are those of a session that reads its prompt exactly, bit for
        /// bit. Takes KV for n tokens while it runs. AERIE_E_LIMIT: longer than the context, or no KV left; AERIE_E_CANCELLED. [any]
        /// </summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_model_evaluate(IntPtr model, int* tokens, UIntPtr n, aerie_evaluate_options* options, aerie_error* err);

        /// <summary>
        /// Bind a loaded plugin, and its weights, to a target. AERIE_E_MISMATCH: made for another one, or the plugin refuses it;
        /// AERIE_E_NOT_FOUND: no such file, or the plugin is not loaded; AERIE_E_PLUGIN: the plugin is broken; others as
        /// aerie_model_open. [any]
        /// </summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_drafter_open(IntPtr model, aerie_drafter_options* options, IntPtr* @out, aerie_error* err);

        /// <summary>void aerie_drafter_release(aerie_drafter_handle *drafter)</summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial void aerie_drafter_release(IntPtr drafter);

        /// <summary>
        /// options may be NULL. AERIE_E_LIMIT: a drafter's max_sessions are taken; AERIE_E_MISMATCH: a drafter of another model;
        /// AERIE_E_UNSUPPORTED: a tree or drafter that the sampled rule cannot have; AERIE_E_PLUGIN: a drafter did not begin. [any]
        /// </summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_session_create(IntPtr model, aerie_session_options* options, IntPtr* @out, aerie_error* err);

        /// <summary>Waits for a step in flight on another thread to stop; leaves its batch. [any]</summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial void aerie_session_release(IntPtr session);

        /// <summary>
        /// Texts that end the generation, at most 256, none empty; one may have begun in what was generated before. NULL, 0, NULL
        /// clears. [session]
        /// </summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_session_set_stop_strings(IntPtr session, byte** strings, int n, aerie_token_source* source, aerie_error* err);

        /// <summary>
        /// From the next token on. It begins with what is generated now, and after every append anew; a rewind leads it back, one to
        /// before the last append to its beginning. NULL: none. An unfinished cycle is discarded. It is not saved with the session.
        /// AERIE_E_MISMATCH: no token of the model may come to begin with, it allows none or biases forbid those. [session]
        /// </summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_session_set_constraint(IntPtr session, aerie_constraint* constraint, aerie_error* err);

        /// <summary>
        /// Append prompt tokens; any chunking gives the same text. Also after generation, to go on. AERIE_E_LIMIT: longer than the
        /// context; nothing is appended then. [session]
        /// </summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_session_append(IntPtr session, int* tokens, UIntPtr n, aerie_error* err);

        /// <summary>Keep the first `length` tokens; an unfinished cycle is discarded. [session]</summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_session_rewind(IntPtr session, UIntPtr length, aerie_error* err);

        /// <summary>From the next token on. An unfinished cycle is discarded. [session]</summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_session_set_sampling(IntPtr session, aerie_sampling* sampling, aerie_error* err);

        /// <summary>From the next cycle on. An unfinished one is discarded. AERIE_E_UNSUPPORTED as at aerie_session_create. [session]</summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_session_set_tree(IntPtr session, aerie_tree_options* tree, aerie_error* err);

        /// <summary>
        /// A second session with the same text, settings, drafters, stop strings and constraint; keys and values are shared until one of
        /// them writes. It is in no batch, its statistics begin at zero, and it counts as one of the drafter's max_sessions. An
        /// unfinished cycle is discarded, never a committed token. options may be NULL. AERIE_E_LIMIT: max_sessions are taken. A
        /// drafter that does not begin is no error here (aerie_statistics). [session]
        /// </summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_session_fork(IntPtr session, aerie_fork_options* options, IntPtr* @out, aerie_error* err);

        /// <summary>
        /// Stop the step that is running, or else the next one, at the next slice; it returns AERIE_E_CANCELLED,
        /// nothing committed is lost, and stepping again goes on. [any]
        /// </summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial void aerie_session_cancel(IntPtr session);

        /// <summary>
        /// Forget a cancel that no step has taken: one that was meant for a step which has ended by itself meanwhile, and would
        /// stop the next. A host that has made sure that nobody cancels any more knows then that nothing is left of it. [any]
        /// </summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial void aerie_session_clear_cancel(IntPtr session);

        /// <summary>
        /// One cycle: draft, verify, commit; or as much of it as the budget allows. options may be NULL. AERIE_E_CANCELLED;
        /// AERIE_E_LIMIT: no KV left (aerie_kv_full_fn); AERIE_E_DEVICE: the device is lost, or logits are not finite. The text so far
        /// stays. A drafter that fails is no error (aerie_statistics). [session]
        /// </summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_session_step(IntPtr session, aerie_step_options* options, aerie_step_result* @out, aerie_error* err);

        /// <summary>
        /// What the session's last step gave, its own or its batch's: returns and fills what aerie_session_step would have.
        /// Before the first step: AERIE_STEP_PENDING. [session]
        /// </summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_session_result(IntPtr session, aerie_step_result* @out, aerie_error* err);

        /// <summary>All committed tokens, prompt included; borrowed until the next call on this session. [session]</summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_session_tokens(IntPtr session, int** tokens, UIntPtr* n, aerie_error* err);

        /// <summary>
        /// Save and restore: a text with what has been computed for it, so that going on costs no prompt reading. The text that
        /// follows is the one that would have followed (docs/session-format.md). An unfinished cycle is discarded; a session in
        /// a batch may be saved.
        /// *size is set to what is needed; buffer NULL, capacity 0: only that. Too small: AERIE_E_LIMIT. Versioned, checksummed.
        /// [session]
        /// </summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_session_save(IntPtr session, IntPtr buffer, UIntPtr capacity, UIntPtr* size, aerie_error* err);

        /// <summary>The same to a file, which appears whole or not at all. [session]</summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_session_save_file(IntPtr session, byte* path, aerie_error* err);

        /// <summary>
        /// A session as aerie_session_create(model, options) makes it, whose text, keys and values, and drafter state (if the
        /// same drafter is in options) are the saved ones; settings are those of options, stop strings are to be set again,
        /// statistics begin at 0. Another drafter, or none, gives the same text. What a saved session holds is believed for this
        /// session and its forks alone: no other session of the model shares its keys and values (keep_prefixes).
        /// Damaged: AERIE_E_BAD_FORMAT. Of another model, dtype of weights or keys and values, device, ISA level or build:
        /// AERIE_E_MISMATCH. Of another format version: AERIE_E_UNSUPPORTED. No room in context or KV budget: AERIE_E_LIMIT. Others
        /// as aerie_session_create, but that a drafter which does not begin is no error. The message names the field; *out is
        /// untouched. [any]
        /// </summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_session_restore(IntPtr model, aerie_session_options* options, IntPtr data, UIntPtr size, IntPtr* @out, aerie_error* err);

        /// <summary>The same from a file. [any]</summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_session_restore_file(IntPtr model, aerie_session_options* options, byte* path, IntPtr* @out, aerie_error* err);

        /// <summary>Since the session was made; what has a time is in nanoseconds. [session]</summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_session_statistics(IntPtr session, aerie_statistics* @out, aerie_error* err);

        /// <summary>options may be NULL. [any]</summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_batch_create(IntPtr model, aerie_batch_options* options, IntPtr* @out, aerie_error* err);

        /// <summary>Its sessions go on alone. Waits for a step in flight on another thread to stop. [any]</summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial void aerie_batch_release(IntPtr batch);

        /// <summary>
        /// A session is in one batch at most (AERIE_E_BUSY), of its own model (AERIE_E_MISMATCH). While it is in, its own
        /// aerie_session_step gives AERIE_E_BUSY. A cycle that it has begun is given up. [batch]
        /// </summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_batch_add(IntPtr batch, IntPtr session, aerie_error* err);

        /// <summary>Its cycle is given up, nobody else's. AERIE_E_NOT_FOUND: it is not in this batch. [batch]</summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_batch_remove(IntPtr batch, IntPtr session, aerie_error* err);

        /// <summary>
        /// Stop the step that is running, or else the next one, as aerie_session_cancel does. That function works on a session in
        /// a batch too: the step stops, the session's result is AERIE_E_CANCELLED, the others' are what they are. [any]
        /// </summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial void aerie_batch_cancel(IntPtr batch);

        /// <summary>Forget one that no step has taken, as aerie_session_clear_cancel does. [any]</summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial void aerie_batch_clear_cancel(IntPtr batch);

        /// <summary>
        /// One cycle of the sessions that are ready to decode and a chunk of prompt of those that are not; or as much of it as
        /// the budget allows. Returns when any session has tokens, has ended or is cancelled. max_tokens holds for each session.
        /// A session that fails does not stop the others and stays in; one whose text has ended costs nothing. options and out
        /// may be NULL. AERIE_E_CANCELLED: by aerie_batch_cancel. [batch]
        /// </summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_batch_step(IntPtr batch, aerie_step_options* options, aerie_batch_result* @out, aerie_error* err);

        /// <summary>An empty profile, to measure into. [any]</summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_profile_create(IntPtr* @out, aerie_error* err);

        /// <summary>
        /// A profile from a file. AERIE_E_NOT_FOUND, AERIE_E_IO: the file; AERIE_E_BAD_FORMAT: damaged; AERIE_E_UNSUPPORTED: an older
        /// or newer format. The error names file and field. [any]
        /// </summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_profile_load(byte* path, IntPtr* @out, aerie_error* err);

        /// <summary>Waits for a measurement on another thread to stop. What it is attached to keeps the costs. [any]</summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial void aerie_profile_release(IntPtr profile);

        /// <summary>
        /// Measure, in place of what the profile held. Takes KV of the model while it runs (AERIE_E_LIMIT when there is none), and is
        /// only as good as the machine is quiet. On failure the profile holds what it held before. options may be NULL. [profile]
        /// </summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_profile_measure(IntPtr profile, IntPtr model, aerie_profile_options* options, aerie_error* err);

        /// <summary>Stop the measurement that is running, or else the next one, within milliseconds; it returns AERIE_E_CANCELLED. [any]</summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial void aerie_profile_cancel(IntPtr profile);

        /// <summary>Forget one that no measurement has taken, as aerie_session_clear_cancel does. [any]</summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial void aerie_profile_clear_cancel(IntPtr profile);

        /// <summary>
        /// Written under a temporary name, renamed when whole. AERIE_E_INVALID_ARGUMENT: the path is there and no cost table, and stays
        /// as it is; AERIE_E_IO. [profile]
        /// </summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_profile_save(IntPtr profile, byte* path, aerie_error* err);

        /// <summary>The tables as one JSON object; borrowed until the next call on this profile. [profile]</summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_profile_json(IntPtr profile, byte** text, UIntPtr* size, aerie_error* err);

        /// <summary>
        /// Sessions created on this model (with this drafter) from now on use the costs. AERIE_E_MISMATCH, naming the field, when
        /// they were measured with another model, device, instruction set, thread count, dtype or library version, or hold no such
        /// drafter. A drafter without costs is learned from its first passes. [profile]
        /// </summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_profile_attach(IntPtr profile, IntPtr model, aerie_error* err);

        /// <summary>The same for one drafter's passes. [profile]</summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_profile_attach_drafter(IntPtr profile, IntPtr drafter, aerie_error* err);

        /// <summary>
        /// Expected milliseconds of a target pass over `rows` rows for each of `batch` sequences of `context` tokens; never falls with
        /// any of the three. [profile]
        /// </summary>
        [LibraryImport(Library.Core)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_profile_target_ms(IntPtr profile, int batch, int context, int rows, double* ms, aerie_error* err);

        /// <summary>
        /// From a package's "tokenizer" blob (aerie_model_blob). The bytes are copied. AERIE_E_NOT_FOUND: size 0, the package has
        /// none; AERIE_E_BAD_FORMAT; AERIE_E_UNSUPPORTED: of a newer version. [any]
        /// </summary>
        [LibraryImport(Library.Text)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_tokenizer_create(IntPtr blob, UIntPtr size, IntPtr* @out, aerie_error* err);

        /// <summary>void aerie_tokenizer_release(aerie_tokenizer *tokenizer)</summary>
        [LibraryImport(Library.Text)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial void aerie_tokenizer_release(IntPtr tokenizer);

        /// <summary>
        /// Fill a source for aerie_session_set_stop_strings. A session that has taken it holds the tokenizer, which may be released
        /// then. [any]
        /// </summary>
        [LibraryImport(Library.Text)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_tokenizer_source(IntPtr tokenizer, aerie_token_source* @out, aerie_error* err);

        /// <summary>
        /// Encode UTF-8. Writes at most `capacity` ids and sets *n to the number needed; AERIE_E_LIMIT when
        /// that is more than capacity (ids may be NULL with capacity 0 to ask), AERIE_E_INVALID_ARGUMENT when the vocabulary has no
        /// token for a byte of it (SmolLM's lacks some that text hardly has). [any]
        /// </summary>
        [LibraryImport(Library.Text)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_tokenizer_encode(IntPtr tokenizer, byte* text, UIntPtr size, uint flags, int* ids, UIntPtr capacity, UIntPtr* n, aerie_error* err);

        /// <summary>Token ids are below it. [any]</summary>
        [LibraryImport(Library.Text)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_tokenizer_vocab_size(IntPtr tokenizer);

        /// <summary>Bytes of a token, as aerie_token_bytes_fn has them, and their number, not a code; alive as long as the tokenizer. [any]</summary>
        [LibraryImport(Library.Text)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_tokenizer_token_bytes(IntPtr tokenizer, int token, int previous, byte** bytes);

        /// <summary>Tokens to text without splitting a UTF-8 character. Retains the tokenizer. [any]</summary>
        [LibraryImport(Library.Text)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_decoder_create(IntPtr tokenizer, IntPtr* @out, aerie_error* err);

        /// <summary>void aerie_decoder_release(aerie_decoder *decoder)</summary>
        [LibraryImport(Library.Text)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial void aerie_decoder_release(IntPtr decoder);

        /// <summary>Push a token; *text (complete characters, may be empty) is borrowed until the next call. [decoder]</summary>
        [LibraryImport(Library.Text)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_decoder_push(IntPtr decoder, int token, byte** text, UIntPtr* size, aerie_error* err);

        /// <summary>What was held back, as U+FFFD; borrowed as above. The decoder is then fresh. [decoder]</summary>
        [LibraryImport(Library.Text)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_decoder_finish(IntPtr decoder, byte** text, UIntPtr* size, aerie_error* err);

        /// <summary>
        /// From GBNF, llama.cpp's notation, whose start is the rule "root". Immutable, may be shared by sessions on many threads; retains the
        /// tokenizer. options may be NULL. AERIE_E_BAD_FORMAT: no grammar, with the line; AERIE_E_UNSUPPORTED: left recursion;
        /// AERIE_E_LIMIT: it grows too large. [any]
        /// </summary>
        [LibraryImport(Library.Text)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_grammar_create(IntPtr tokenizer, byte* gbnf, aerie_grammar_options* options, IntPtr* @out, aerie_error* err);

        /// <summary>
        /// JSON that a JSON Schema describes; "{}" is any JSON. AERIE_E_BAD_FORMAT: no JSON or no schema; AERIE_E_UNSUPPORTED: a keyword that
        /// is not known, by its path; AERIE_E_LIMIT as above. [any]
        /// </summary>
        [LibraryImport(Library.Text)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_grammar_create_json(IntPtr tokenizer, byte* schema, aerie_grammar_options* options, IntPtr* @out, aerie_error* err);

        /// <summary>void aerie_grammar_release(aerie_grammar *grammar)</summary>
        [LibraryImport(Library.Text)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial void aerie_grammar_release(IntPtr grammar);

        /// <summary>
        /// Fill a constraint for aerie_session_set_constraint. A session that has taken it holds the grammar, which may be released
        /// then. [any]
        /// </summary>
        [LibraryImport(Library.Text)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_grammar_constraint(IntPtr grammar, aerie_constraint* @out, aerie_error* err);

        /// <summary>
        /// From a package's "chat_template" blob (aerie_model_blob), a Jinja template as transformers runs them. The model's tokenizer and
        /// info say what its bos_token and eos_token are; either may be NULL, and the template does without. Nothing is retained. Immutable,
        /// may be shared by threads. AERIE_E_NOT_FOUND: size 0, the package has none; AERIE_E_BAD_FORMAT: no template, with the line;
        /// AERIE_E_UNSUPPORTED: it uses what is not supported, by name and line; AERIE_E_LIMIT: longer than 1 MiB, or nested too deep. [any]
        /// </summary>
        [LibraryImport(Library.Text)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_chat_template_create(byte* text, UIntPtr size, IntPtr tokenizer, aerie_model_info* info, IntPtr* @out, aerie_error* err);

        /// <summary>void aerie_chat_template_release(aerie_chat_template *chat_template)</summary>
        [LibraryImport(Library.Text)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial void aerie_chat_template_release(IntPtr chat_template);

        /// <summary>
        /// Writes the text, at most `capacity` bytes without a zero byte at the end, and sets *size to the number needed; AERIE_E_LIMIT when
        /// that is more than capacity (out may be NULL with capacity 0 to ask). Encode it with AERIE_ENCODE_SPECIAL | AERIE_ENCODE_NO_BOS: the
        /// template writes the model's markers, a BOS among them. AERIE_E_INVALID_ARGUMENT: the template refuses the conversation, in its
        /// own words (roles must alternate), or wants what is not there; AERIE_E_BAD_FORMAT: no JSON; AERIE_E_UNSUPPORTED as at create;
        /// AERIE_E_LIMIT, *size untouched: it takes too many steps, too much memory, or writes more than 64 MiB. [any]
        /// </summary>
        [LibraryImport(Library.Text)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_chat_template_render(IntPtr chat_template, aerie_chat_options* options, byte* @out, UIntPtr capacity, UIntPtr* size, aerie_error* err);

        /// <summary>
        /// Reads all of the source and writes one package (docs/package-format.md). Hooks are called on this thread. AERIE_E_NOT_FOUND,
        /// AERIE_E_IO: a file; AERIE_E_BAD_FORMAT; AERIE_E_UNSUPPORTED: no checkpoint that is known, or a setting that would be another
        /// model; AERIE_E_MISMATCH: source and drafter_for do not go together; AERIE_E_CANCELLED. Nothing is left behind then.
        /// </summary>
        [LibraryImport(Library.Text)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_convert(aerie_convert_options* options, aerie_error* err);

        /// <summary>A description of a package. *text is malloc-owned by the library: free it with aerie_string_free.</summary>
        [LibraryImport(Library.Text)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial int aerie_inspect(byte* path, int format, byte** text, aerie_error* err);

        /// <summary>void aerie_string_free(char *text)</summary>
        [LibraryImport(Library.Text)]
        [UnmanagedCallConv(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static partial void aerie_string_free(byte* text);
    }
}
#endif

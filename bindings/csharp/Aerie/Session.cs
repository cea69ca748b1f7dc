using System;
using System.Runtime.InteropServices;
using System.Threading;
using System.Threading.Tasks;
using Aerie.Native;

namespace Aerie
{
    /// <summary>
    /// One text: its tokens, keys and values, sampler and drafter state. One thread at a time, a second one gets
    /// ErrorCode.Busy; Cancel and Dispose from any.
    /// </summary>
    public sealed unsafe partial class Session : IDisposable
    {
        internal readonly SessionHandle Handle;
        private readonly Turn alone = new Turn();
        private readonly Interrupter interrupter = new Interrupter(Methods.aerie_session_cancel, Methods.aerie_session_clear_cancel);
        private volatile Turn turn;
        private string[] stops = Array.Empty<string>();
        private Exception thrown; // by KVFull in the last step, the session's own or its batch's

        private delegate int Call(IntPtr session, aerie_error* error);

        internal Session(SessionHandle handle)
        {
            Handle = handle;
            turn = alone;
        }

        internal delegate int Maker(IntPtr model, aerie_session_options* options, IntPtr* made, aerie_error* error);

        /// <summary>A session by one of the functions that make them, with these options.</summary>
        internal static Session Make(Model on, SessionOptions options, Maker maker)
        {
            IntPtr p = IntPtr.Zero;
            using (var model = on.Handle.Use())
            {
                IntPtr m = model.Pointer;
                (options ?? new SessionOptions()).With((o, e) =>
                {
                    IntPtr made = IntPtr.Zero;
                    int code = maker(m, o, &made, e);
                    p = made;
                    return code;
                });
                return new Session(new SessionHandle(p, on.Handle.Hooks.Keep()));
            }
        }

        /// <summary>What KVFull threw in a step of the batch, whose turn it is; null: nothing.</summary>
        internal void Threw(Exception inStep)
        {
            thrown = inStep;
        }

        /// <summary>In a batch, its turn; null: alone again.</summary>
        internal void ShareTurn(Turn with)
        {
            turn = with ?? alone;
        }

        internal Turn.Taken TakeTurn()
        {
            for (;;)
            {
                Turn mine = turn;
                Turn.Taken taken = mine.Take();
                if (mine == turn) return taken; // else it has joined or left a batch meanwhile
                taken.Dispose();
            }
        }

        private void Do(Call call)
        {
            aerie_error e = AerieException.NewError();
            using (var session = Handle.Use())
            using (TakeTurn())
                AerieException.Check(call(session.Pointer, &e), ref e);
        }

        /// <summary>Add prompt tokens, before generation or after some of it. Any chunking gives the same text.</summary>
        public void Append(params int[] tokens)
        {
            if (tokens == null) throw new ArgumentNullException("tokens");
            Do((p, e) =>
            {
                fixed (int* ids = tokens) return Methods.aerie_session_append(p, ids, (UIntPtr)tokens.Length, e);
            });
        }

        /// <summary>Keep the first tokens; an unfinished cycle is discarded.</summary>
        public void Rewind(int length)
        {
            if (length < 0) throw new ArgumentOutOfRangeException("length");
            Do((p, e) => Methods.aerie_session_rewind(p, (UIntPtr)length, e));
        }

        /// <summary>From the next token on; an unfinished cycle is discarded.</summary>
        public void SetSampling(Sampling sampling)
        {
            if (sampling == null) throw new ArgumentNullException("sampling");
            aerie_logit_bias[] bias = sampling.Biases();
            Do((p, e) =>
            {
                fixed (aerie_logit_bias* biases = bias)
                {
                    aerie_sampling s = sampling.ToNative(biases, bias == null ? 0 : bias.Length);
                    return Methods.aerie_session_set_sampling(p, &s, e);
                }
            });
        }

        public void SetTree(Tree tree)
        {
            if (tree == null) throw new ArgumentNullException("tree");
            Do((p, e) =>
            {
                fixed (int* paths = tree.FlatPaths())
                {
                    aerie_tree_options t = tree.ToNative(paths);
                    return Methods.aerie_session_set_tree(p, &t, e);
                }
            });
        }

        /// <summary>Texts that end the generation, found across token borders; none clears them.</summary>
        public void SetStopStrings(Tokenizer tokenizer, params string[] texts)
        {
            if (texts == null) throw new ArgumentNullException("texts");
            GCHandle[] pins = new GCHandle[texts.Length];
            try
            {
                IntPtr[] list = new IntPtr[texts.Length + 1];
                for (int i = 0; i < texts.Length; ++i)
                {
                    pins[i] = GCHandle.Alloc(Utf8.ToNative(texts[i], "texts"), GCHandleType.Pinned);
                    list[i] = pins[i].AddrOfPinnedObject();
                }
                Do((p, e) =>
                {
                    var source = new aerie_token_source { struct_size = (uint)sizeof(aerie_token_source) };
                    int code = Constants.AERIE_OK;
                    using (var reader = texts.Length > 0 ? tokenizer.Handle.Use() : default(NativeHandle.Using))
                    {
                        if (texts.Length > 0) code = Methods.aerie_tokenizer_source(reader.Pointer, &source, e);
                        fixed (IntPtr* strings = list) // the session holds the tokenizer from then on
                            if (code == Constants.AERIE_OK)
                                code = Methods.aerie_session_set_stop_strings(p, (byte**)strings, texts.Length, &source, e);
                    }
                    if (code == Constants.AERIE_OK) stops = (string[])texts.Clone();
                    return code;
                });
            }
            finally
            {
                foreach (GCHandle pin in pins)
                    if (pin.IsAllocated) pin.Free();
            }
        }

        /// <summary>
        /// Let only what the grammar allows come, from the next token on; null: anything. It begins with what is generated
        /// now, and after every Append anew; a Rewind leads it back. It is not saved with the session. An unfinished cycle is
        /// discarded. ErrorCode.Mismatch: it allows nothing to begin with, and the one before stays.
        /// </summary>
        public void SetGrammar(Grammar grammar)
        {
            Do((p, e) =>
            {
                if (grammar == null) return Methods.aerie_session_set_constraint(p, null, e);
                var constraint = new aerie_constraint { struct_size = (uint)sizeof(aerie_constraint) };
                using (var held = grammar.Handle.Use()) // the session holds it from then on
                {
                    int code = Methods.aerie_grammar_constraint(held.Pointer, &constraint, e);
                    return code != Constants.AERIE_OK ? code : Methods.aerie_session_set_constraint(p, &constraint, e);
                }
            });
        }

        internal string[] StopStrings { get { return stops; } }

        /// <summary>
        /// A second session with the same text, settings, drafters, stop strings and grammar, in no batch; keys and values are
        /// shared until one of them writes. stream: the fork's noise stream; 0: one of its own, so that the two go different ways at
        /// a temperature above 0. An unfinished cycle is discarded, never a committed token.
        /// </summary>
        public Session Fork(uint stream = 0)
        {
            var o = new aerie_fork_options { struct_size = (uint)sizeof(aerie_fork_options), stream = stream };
            IntPtr p = IntPtr.Zero;
            aerie_error e = AerieException.NewError();
            using (var session = Handle.Use())
            using (TakeTurn())
            {
                AerieException.Check(Methods.aerie_session_fork(session.Pointer, &o, &p, &e), ref e);
                return new Session(new SessionHandle(p, Handle.Hooks.Keep())) { stops = stops };
            }
        }

        /// <summary>
        /// Stop the step that is running, or the next one: it throws AerieException with ErrorCode.Cancelled, nothing
        /// committed is lost, and stepping again goes on. Any thread.
        /// </summary>
        public void Cancel()
        {
            using (var session = Handle.Use()) interrupter.Ask(session.Pointer);
        }

        /// <summary>
        /// Forget a Cancel that no step has taken: one that was meant for a step which has ended by itself meanwhile. Any
        /// thread.
        /// </summary>
        public void ClearCancel()
        {
            using (var session = Handle.Use()) interrupter.Forget(session.Pointer);
        }

        /// <summary>
        /// One cycle: draft, verify, commit; or as much of it as the budget allows. OperationCanceledException when the
        /// token is cancelled first; stepping again goes on.
        /// </summary>
        public StepResult Step(StepOptions options = default(StepOptions), CancellationToken cancel = default(CancellationToken))
        {
            using (var session = Handle.Use())
            using (TakeTurn())
            {
                if (cancel.CanBeCanceled) return StepInterruptibly(session.Pointer, options, cancel);
                try
                {
                    return StepOnce(session.Pointer, options); // nothing is allocated for frames that come out empty
                }
                catch (AerieException e) when (interrupter.Told(e))
                {
                    throw;
                }
            }
        }

        private StepResult StepInterruptibly(IntPtr p, StepOptions options, CancellationToken cancel)
        {
            StepResult result = default(StepResult);
            interrupter.Run(cancel, p, () => result = StepOnce(p, options));
            return result;
        }

        private StepResult StepOnce(IntPtr p, StepOptions options)
        {
            aerie_step_options o = options.ToNative();
            var r = new aerie_step_result { struct_size = (uint)sizeof(aerie_step_result) };
            aerie_error e = AerieException.NewError();
            Exception around = Callbacks.SwapThrown(null);
            int code = Methods.aerie_session_step(p, &o, &r, &e);
            thrown = Callbacks.SwapThrown(around);
            AerieException.Check(code, ref e, thrown);
            return new StepResult(&r);
        }

        /// <summary>Step on a thread of the pool.</summary>
        public Task<StepResult> StepAsync(StepOptions options = default(StepOptions), CancellationToken cancel = default(CancellationToken))
        {
            return Task.Run(() => Step(options, cancel), cancel);
        }

        /// <summary>What the last step gave, the session's own or its batch's; throws if it failed.</summary>
        public StepResult Result
        {
            get
            {
                var r = new aerie_step_result { struct_size = (uint)sizeof(aerie_step_result) };
                aerie_error e = AerieException.NewError();
                using (var session = Handle.Use())
                using (TakeTurn())
                {
                    try
                    {
                        AerieException.Check(Methods.aerie_session_result(session.Pointer, &r, &e), ref e, thrown);
                    }
                    catch (AerieException failed) when (interrupter.Told(failed))
                    {
                        throw;
                    }
                    return new StepResult(&r);
                }
            }
        }

        /// <summary>All committed tokens, prompt included.</summary>
        public int[] Tokens
        {
            get
            {
                int* ids = null;
                UIntPtr n = UIntPtr.Zero;
                aerie_error e = AerieException.NewError();
                using (var session = Handle.Use())
                using (TakeTurn())
                {
                    AerieException.Check(Methods.aerie_session_tokens(session.Pointer, &ids, &n, &e), ref e);
                    return Copy.Ints(ids, checked((int)n));
                }
            }
        }

        public Statistics Statistics
        {
            get
            {
                var s = new aerie_statistics { struct_size = (uint)sizeof(aerie_statistics) };
                aerie_error e = AerieException.NewError();
                using (var session = Handle.Use())
                using (TakeTurn())
                    AerieException.Check(Methods.aerie_session_statistics(session.Pointer, &s, &e), ref e);
                return new Statistics(s);
            }
        }

        /// <summary>
        /// The text with what has been computed for it, so that going on after Model.RestoreSession costs no reading of the
        /// prompt. An unfinished cycle is discarded; a session in a batch may be saved.
        /// </summary>
        public byte[] Save()
        {
            aerie_error e = AerieException.NewError();
            using (var session = Handle.Use())
            using (TakeTurn())
            {
                UIntPtr size = UIntPtr.Zero;
                int code = Methods.aerie_session_save(session.Pointer, IntPtr.Zero, UIntPtr.Zero, &size, &e);
                if (code != Constants.AERIE_E_LIMIT) AerieException.Check(code, ref e);
                byte[] data = new byte[checked((int)size)];
                fixed (byte* d = data)
                    AerieException.Check(Methods.aerie_session_save(session.Pointer, (IntPtr)d, size, &size, &e), ref e);
                Array.Resize(ref data, checked((int)size)); // less, if a drafter has become unusable since
                return data;
            }
        }

        /// <summary>The same to a file, which appears whole or not at all.</summary>
        public void SaveFile(string path)
        {
            if (path == null) throw new ArgumentNullException("path");
            Do((p, e) =>
            {
                fixed (byte* file = Utf8.ToNative(path, "path")) return Methods.aerie_session_save_file(p, file, e);
            });
        }

        /// <summary>Stops a running step. Memory comes back when no call is using it any more.</summary>
        public void Dispose()
        {
            if (Handle.IsClosed) return;
            try
            {
                using (var session = Handle.Use()) Methods.aerie_session_cancel(session.Pointer);
            }
            catch (ObjectDisposedException)
            {
            }
            Handle.Dispose();
        }
    }
}

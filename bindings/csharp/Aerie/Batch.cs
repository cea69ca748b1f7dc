using System;
using System.Collections.Generic;
using System.Threading;
using Aerie.Native;

namespace Aerie
{
    /// <summary>What one step of a batch came to.</summary>
    public struct BatchResult
    {
        internal BatchResult(aerie_batch_result r)
        {
            Sessions = r.n_sessions; Tokens = r.n_tokens; Emitting = r.n_emitting; Ended = r.n_ended; Failed = r.n_failed;
        }

        /// <summary>In the batch.</summary>
        public int Sessions { get; }
        /// <summary>Emitted in this step, all sessions together.</summary>
        public int Tokens { get; }
        /// <summary>Sessions with tokens.</summary>
        public int Emitting { get; }
        /// <summary>Sessions whose text has ended, in this step or before.</summary>
        public int Ended { get; }
        /// <summary>Sessions whose Result throws.</summary>
        public int Failed { get; }
    }

    /// <summary>
    /// Sessions of one model stepped together: one pass of the target serves all of them, and each one's text is what it is
    /// alone. After Step, ask each session for its Result. The batch and its sessions are one thing: one thread at a time.
    /// </summary>
    public sealed unsafe class Batch : IDisposable
    {
        private readonly BatchHandle handle;
        private readonly Turn turn = new Turn();
        private readonly Interrupter interrupter = new Interrupter(Methods.aerie_batch_cancel, Methods.aerie_batch_clear_cancel);
        private readonly HashSet<Session> sessions = new HashSet<Session>(); // kept from the finalizer, which would take them out

        private Batch(BatchHandle handle)
        {
            this.handle = handle;
        }

        internal static Batch Create(Model on, int maxRows)
        {
            var o = new aerie_batch_options { struct_size = (uint)sizeof(aerie_batch_options), max_rows = maxRows };
            IntPtr p = IntPtr.Zero;
            aerie_error e = AerieException.NewError();
            using (var model = on.Handle.Use())
            {
                AerieException.Check(Methods.aerie_batch_create(model.Pointer, &o, &p, &e), ref e);
                return new Batch(new BatchHandle(p, on.Handle.Hooks.Keep()));
            }
        }

        /// <summary>A session is in one batch at most, of its own model. A cycle that it has begun is given up.</summary>
        public void Add(Session session)
        {
            aerie_error e = AerieException.NewError();
            using (var batch = handle.Use())
            using (turn.Take())
            using (var added = session.Handle.Use())
            using (session.TakeTurn()) // this thread's already if it is in: turns nest
            {
                AerieException.Check(Methods.aerie_batch_add(batch.Pointer, added.Pointer, &e), ref e);
                sessions.Add(session);
                session.ShareTurn(turn);
            }
        }

        /// <summary>Its cycle is given up, nobody else's.</summary>
        public void Remove(Session session)
        {
            aerie_error e = AerieException.NewError();
            using (var batch = handle.Use())
            using (turn.Take())
            using (var removed = session.Handle.Use())
            {
                AerieException.Check(Methods.aerie_batch_remove(batch.Pointer, removed.Pointer, &e), ref e);
                sessions.Remove(session);
                session.ShareTurn(null);
            }
        }

        /// <summary>Stop the step that is running, or the next one, as Session.Cancel does. Any thread.</summary>
        public void Cancel()
        {
            using (var batch = handle.Use()) interrupter.Ask(batch.Pointer);
        }

        /// <summary>Forget a Cancel that no step has taken, as Session.ClearCancel does. Any thread.</summary>
        public void ClearCancel()
        {
            using (var batch = handle.Use()) interrupter.Forget(batch.Pointer);
        }

        /// <summary>
        /// One cycle of the sessions that are ready to decode and a chunk of prompt of those that are not, or as much of it as
        /// the budget allows. A session that fails does not stop the others and stays in.
        /// </summary>
        public BatchResult Step(StepOptions options = default(StepOptions), CancellationToken cancel = default(CancellationToken))
        {
            using (var batch = handle.Use())
            using (turn.Take())
            {
                sessions.RemoveWhere(session => session.Handle.IsClosed);
                IntPtr p = batch.Pointer;
                BatchResult result = default(BatchResult);
                interrupter.Run(cancel, p, () => result = StepOnce(p, options));
                return result;
            }
        }

        private BatchResult StepOnce(IntPtr p, StepOptions options)
        {
            aerie_step_options o = options.ToNative();
            var r = new aerie_batch_result { struct_size = (uint)sizeof(aerie_batch_result) };
            aerie_error e = AerieException.NewError();
            Exception around = Callbacks.SwapThrown(null);
            int code = Methods.aerie_batch_step(p, &o, &r, &e);
            Exception thrown = Callbacks.SwapThrown(around);
            foreach (Session session in sessions) session.Threw(thrown); // for their Result, which any thread may ask for
            AerieException.Check(code, ref e);
            return new BatchResult(r);
        }

        /// <summary>Stops a running step; the sessions go on alone.</summary>
        public void Dispose()
        {
            if (handle.IsClosed) return;
            try
            {
                using (var batch = handle.Use()) Methods.aerie_batch_cancel(batch.Pointer);
            }
            catch (ObjectDisposedException)
            {
            }
            handle.Dispose();
            lock (turn)
            {
                foreach (Session session in sessions) session.ShareTurn(null);
                sessions.Clear();
            }
        }
    }
}

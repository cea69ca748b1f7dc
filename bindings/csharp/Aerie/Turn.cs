using System;
using System.Threading;

namespace Aerie
{
    /// <summary>
    /// Whose turn it is on a session or a batch: one thread's; others are refused (ErrorCode.Busy). The library refuses a
    /// second thread too, but what it hands out is borrowed until the next call, so the turn must last until it is copied.
    /// A session in a batch takes the batch's turn.
    /// </summary>
    internal sealed class Turn
    {
        internal Taken Take()
        {
            if (!Monitor.TryEnter(this)) throw new AerieException(ErrorCode.Busy, "in use by another thread");
            return new Taken(this);
        }

        internal struct Taken : IDisposable
        {
            private readonly Turn turn;
            internal Taken(Turn turn) { this.turn = turn; }
            public void Dispose() { Monitor.Exit(turn); }
        }
    }

    /// <summary>
    /// Ends steps when their CancellationToken says so. The library's cancel stops the running step or else the next one,
    /// so one of a token that fired just after its step is cleared away.
    /// </summary>
    internal sealed class Interrupter
    {
        private readonly Action<IntPtr> cancel, clear; // the library's
        private volatile bool asked; // Cancel() was called, which is meant for the next step too

        internal Interrupter(Action<IntPtr> cancel, Action<IntPtr> clear)
        {
            this.cancel = cancel;
            this.clear = clear;
        }

        internal void Ask(IntPtr p)
        {
            asked = true;
            cancel(p);
        }

        internal void Forget(IntPtr p)
        {
            asked = false;
            clear(p);
        }

        /// <summary>Take notice of how a step failed: catch (AerieException e) when (Told(e)), which catches nothing.</summary>
        internal bool Told(AerieException e)
        {
            if (e.Code == ErrorCode.Cancelled) asked = false;
            return false;
        }

        /// <summary>Run step, whose turn it is.</summary>
        internal void Run(CancellationToken token, IntPtr p, Action step)
        {
            token.ThrowIfCancellationRequested();
            bool fired = false;
            try
            {
                using (token.Register(() => { Volatile.Write(ref fired, true); cancel(p); })) // Dispose waits for it
                    step();
            }
            catch (AerieException e) when (!Told(e) && e.Code == ErrorCode.Cancelled)
            {
                token.ThrowIfCancellationRequested();
                throw;
            }
            finally
            {
                if (Volatile.Read(ref fired))
                {
                    clear(p);
                    if (asked) cancel(p); // by somebody else, whose cancel was perhaps cleared too
                }
            }
        }
    }
}

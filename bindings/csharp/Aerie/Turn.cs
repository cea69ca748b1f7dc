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
    /// so a token that fires just after a step would hit a later step that has nothing to do with it: that one is run again.
    /// </summary>
    internal sealed class Interrupter
    {
        private bool late;
        private volatile bool asked;

        /// <summary>Cancel() was called, which is meant for the next step too.</summary>
        internal void Ask()
        {
            asked = true;
        }

        /// <summary>Nothing is left over from before.</summary>
        internal bool Quiet { get { return !late && !asked; } }

        /// <summary>Run step, whose turn it is; cancel is the library's.</summary>
        internal void Run(CancellationToken token, Action cancel, Action step)
        {
            token.ThrowIfCancellationRequested();
            bool fired = false;
            try
            {
                if (!token.CanBeCanceled) Again(token, step);
                else
                    using (token.Register(() => { Volatile.Write(ref fired, true); cancel(); })) // Dispose waits for it
                        Again(token, step);
                late = Volatile.Read(ref fired);
            }
            catch (AerieException e) when (e.Code == ErrorCode.Cancelled)
            {
                late = asked = false;
                token.ThrowIfCancellationRequested();
                throw;
            }
        }

        private void Again(CancellationToken token, Action step)
        {
            try
            {
                step();
            }
            catch (AerieException e) when (e.Code == ErrorCode.Cancelled && late && !asked && !token.IsCancellationRequested)
            {
                late = false;
                step();
            }
        }
    }
}

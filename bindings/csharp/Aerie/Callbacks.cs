using System;
using System.Runtime.InteropServices;
using System.Threading;
using Aerie.Native;

namespace Aerie
{
    /// <summary>Marks what native code calls, for ahead-of-time compilers (Unity's IL2CPP looks for this name).</summary>
    [AttributeUsage(AttributeTargets.Method)]
    internal sealed class MonoPInvokeCallbackAttribute : Attribute
    {
        public MonoPInvokeCallbackAttribute(Type type) { }
    }

    /// <summary>
    /// The functions that the library calls. Their delegates are static, so nothing can collect them; what they work on
    /// comes through the user pointer, as a GCHandle. No exception leaves them.
    /// </summary>
    internal static unsafe class Callbacks
    {
        private static readonly aerie_log_fn log = OnLog;
        private static readonly aerie_progress_fn progress = OnProgress;
        private static readonly aerie_kv_full_fn kvFull = OnKVFull;

        internal static readonly IntPtr Log = Marshal.GetFunctionPointerForDelegate(log);
        internal static readonly IntPtr Progress = Marshal.GetFunctionPointerForDelegate(progress);
        internal static readonly IntPtr KVFull = Marshal.GetFunctionPointerForDelegate(kvFull);

        /// <summary>A model being opened, or another long call: how far, until when, and what went wrong in C#.</summary>
        internal sealed class Loading
        {
            internal Action<long, long> Progress;
            internal CancellationToken Cancel;
            internal Exception Failure;

            internal delegate int Call(IntPtr user, aerie_error* error);

            /// <summary>Make the call; the user pointer is for its progress hook.</summary>
            internal void Run(Call call)
            {
                aerie_error e = AerieException.NewError();
                GCHandle root = GCHandle.Alloc(this);
                try
                {
                    int code = call(GCHandle.ToIntPtr(root), &e);
                    if (code == Constants.AERIE_E_CANCELLED && Failure == null) Cancel.ThrowIfCancellationRequested();
                    if (code != Constants.AERIE_OK && Failure != null) throw AerieException.Of(code, ref e, Failure);
                    AerieException.Check(code, ref e);
                }
                finally
                {
                    root.Free();
                }
            }
        }

        [MonoPInvokeCallback(typeof(aerie_log_fn))]
        private static void OnLog(IntPtr user, int level, byte* message)
        {
            try
            {
                ((Action<LogLevel, string>)GCHandle.FromIntPtr(user).Target)((LogLevel)level, Utf8.FromNative(message));
            }
            catch (Exception)
            {
                // Nobody to tell: the log itself is what broke.
            }
        }

        /// <summary>What KVFull threw in the step that this thread is in.</summary>
        [ThreadStatic] private static Exception inStep;

        /// <summary>
        /// Before a step with null, after it with what came out before: KVFull may step other sessions, so steps nest.
        /// </summary>
        internal static Exception SwapThrown(Exception e)
        {
            Exception before = inStep;
            inStep = e;
            return before;
        }

        [MonoPInvokeCallback(typeof(aerie_kv_full_fn))]
        private static int OnKVFull(IntPtr user, int positions)
        {
            try
            {
                return ((Func<int, bool>)GCHandle.FromIntPtr(user).Target)(positions) ? 1 : 0;
            }
            catch (Exception e)
            {
                inStep = e;
                return 0;
            }
        }

        [MonoPInvokeCallback(typeof(aerie_progress_fn))]
        private static int OnProgress(IntPtr user, ulong done, ulong total)
        {
            Loading loading = null;
            try
            {
                loading = (Loading)GCHandle.FromIntPtr(user).Target;
                if (loading.Cancel.IsCancellationRequested) return 0;
                if (loading.Progress != null) loading.Progress((long)done, (long)total);
                return 1;
            }
            catch (Exception e)
            {
                if (loading != null) loading.Failure = e;
                return 0;
            }
        }
    }
}

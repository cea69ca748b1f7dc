// Generated from capi/include/aerie/*.h by bindings/generate.py: do not edit.
using System;
using System.Runtime.InteropServices;

namespace Aerie.Native
{
    /// <summary>
    /// level: 0 error, 1 warning, 2 info, 3 debug. Called on whatever thread noticed; must not call back
    /// into the library.
    /// </summary>
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    internal unsafe delegate void aerie_log_fn(IntPtr user, int level, byte* message);

    /// <summary>NULL: none left</summary>
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    internal unsafe delegate IntPtr aerie_alloc_fn(IntPtr user, UIntPtr bytes, UIntPtr alignment);

    /// <summary>void (*aerie_free_fn)(void *user, void *memory)</summary>
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    internal unsafe delegate void aerie_free_fn(IntPtr user, IntPtr memory);

    /// <summary>
    /// Run fn(context, i) for every i in [0, n) and return when all are done. Tasks never wait for each
    /// other: running them one by one is fine. Called on the thread that steps, in its own floating-point mode, and returns there: a
    /// job system of fibers must not let the one that waits go on on another thread, or the text may be another.
    /// </summary>
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    internal unsafe delegate void aerie_parallel_for_fn(IntPtr user, IntPtr fn, IntPtr context, int n);

    /// <summary>const struct aerie_drafter_plugin_table *(*aerie_plugin_entry_fn)(void)</summary>
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    internal unsafe delegate IntPtr aerie_plugin_entry_fn();

    /// <summary>Return 0 to cancel the load (AERIE_E_CANCELLED). Called on the loading thread.</summary>
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    internal unsafe delegate int aerie_progress_fn(IntPtr user, ulong done_bytes, ulong total_bytes);

    /// <summary>
    /// The KV budget is spent, and no kept prefix is left to drop. Called on the stepping thread, which holds no lock; may
    /// release, rewind or otherwise call on OTHER sessions of the model than the one that wants room (its release, its batch's,
    /// or that of one which another thread is stepping from its own callback waits for ever). In a batch's step every member but
    /// that one may be called on too: any call on that one, and a step of any member, gives AERIE_E_BUSY, so that
    /// aerie_session_statistics tells which it is; a member with nothing left to continue fails in that step with
    /// AERIE_E_INVALID_ARGUMENT. Return nonzero to try again, as often as it does, until the step is cancelled. 0: the step fails with
    /// AERIE_E_LIMIT, nothing is lost, and the session may be stepped again when there is room.
    /// </summary>
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    internal unsafe delegate int aerie_kv_full_fn(IntPtr user, int positions_wanted);

    /// <summary>
    /// Bytes of a token in running text (previous: the token before it, -1 none). Return the byte count
    /// and point *bytes at memory that stays valid as long as the source is held; -1: no such token.
    /// </summary>
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    internal unsafe delegate int aerie_token_bytes_fn(IntPtr user, int token, int previous, byte** bytes);

    /// <summary>void (*aerie_hold_fn)(void *user)</summary>
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    internal unsafe delegate void aerie_hold_fn(IntPtr user);
}

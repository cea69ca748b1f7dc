using System;
using Aerie.Native;

namespace Aerie
{
    /// <summary>What kind of failure an AerieException is.</summary>
    public enum ErrorCode
    {
        InvalidArgument = Constants.AERIE_E_INVALID_ARGUMENT,
        NotFound = Constants.AERIE_E_NOT_FOUND,
        IO = Constants.AERIE_E_IO,
        /// <summary>A damaged or hostile file.</summary>
        BadFormat = Constants.AERIE_E_BAD_FORMAT,
        /// <summary>Things that do not belong together.</summary>
        Mismatch = Constants.AERIE_E_MISMATCH,
        Unsupported = Constants.AERIE_E_UNSUPPORTED,
        OutOfMemory = Constants.AERIE_E_OUT_OF_MEMORY,
        Cancelled = Constants.AERIE_E_CANCELLED,
        /// <summary>A stated limit is reached.</summary>
        Limit = Constants.AERIE_E_LIMIT,
        Plugin = Constants.AERIE_E_PLUGIN,
        Device = Constants.AERIE_E_DEVICE,
        /// <summary>In use by another thread, or the session by a batch.</summary>
        Busy = Constants.AERIE_E_BUSY,
        Internal = Constants.AERIE_E_INTERNAL,
    }

    /// <summary>A failure of the library: its kind, and what it says about it.</summary>
    public sealed class AerieException : Exception
    {
        public AerieException(ErrorCode code, string message, Exception inner = null) : base(message, inner)
        {
            Code = code;
        }

        public ErrorCode Code { get; }

        internal static unsafe aerie_error NewError()
        {
            return new aerie_error { struct_size = (uint)sizeof(aerie_error) };
        }

        /// <summary>thrown: by KVFull in the step that is checked, which is then why there is no room.</summary>
        internal static unsafe void Check(int code, ref aerie_error error, Exception thrown = null)
        {
            if (code != Constants.AERIE_OK) throw Of(code, ref error, code == Constants.AERIE_E_LIMIT ? thrown : null);
        }

        internal static unsafe AerieException Of(int code, ref aerie_error error, Exception inner)
        {
            fixed (byte* message = error.message)
            {
                string text = Utf8.FromNative(message);
                return new AerieException((ErrorCode)code, text.Length > 0 ? text : Utf8.FromNative(Methods.aerie_code_name(code)), inner);
            }
        }
    }
}

using System;
using System.Text;

namespace Aerie
{
    /// <summary>The library speaks UTF-8; .NET's own marshalling to it came only after .NET Standard 2.0.</summary>
    internal static unsafe class Utf8
    {
        private static readonly UTF8Encoding Encoding = new UTF8Encoding(false);

        /// <summary>NUL-terminated; null stays null, which is the default everywhere.</summary>
        internal static byte[] ToNative(string text, string what)
        {
            if (text == null) return null;
            // It would end at its first NUL and mean something else.
            if (text.IndexOf('\0') >= 0) throw new ArgumentException("has a NUL character", what);
            byte[] bytes = new byte[Encoding.GetByteCount(text) + 1];
            Encoding.GetBytes(text, 0, text.Length, bytes, 0);
            return bytes;
        }

        internal static byte[] ToBytes(string text)
        {
            return Encoding.GetBytes(text);
        }

        internal static string FromBytes(byte[] bytes)
        {
            return Encoding.GetString(bytes);
        }

        internal static string FromNative(byte* text)
        {
            if (text == null) return "";
            int n = 0;
            while (text[n] != 0) ++n;
            return FromNative(text, n);
        }

        internal static string FromNative(byte* text, int bytes)
        {
            return bytes == 0 ? "" : Encoding.GetString(text, bytes);
        }
    }
}

using System;
using Aerie.Native;

namespace Aerie
{
    /// <summary>How JSON is laid out. The less it leaves open, the faster the text comes.</summary>
    public enum JsonLayout
    {
        /// <summary>As the model likes: a space or a line break with its indentation, or nothing, between tokens of JSON.</summary>
        Free = Constants.AERIE_JSON_FREE,
        /// <summary>In one line, with a space behind : and ,.</summary>
        OneLine = Constants.AERIE_JSON_ONE_LINE,
        /// <summary>Without white space.</summary>
        Compact = Constants.AERIE_JSON_COMPACT,
    }

    /// <summary>
    /// A form that text is to have, for Session.SetGrammar; immutable, any thread, any number of sessions, which hold it by
    /// themselves. Made by Tokenizer.CreateGrammar and CreateJsonGrammar.
    /// </summary>
    public sealed unsafe class Grammar : IDisposable
    {
        internal readonly GrammarHandle Handle;

        internal delegate int Maker(IntPtr tokenizer, byte* text, aerie_grammar_options* options, IntPtr* made, aerie_error* error);

        internal Grammar(Tokenizer on, byte[] text, int[] endTokens, Maker maker, JsonLayout layout = JsonLayout.Free)
        {
            IntPtr p = IntPtr.Zero;
            aerie_error e = AerieException.NewError();
            using (var tokenizer = on.Handle.Use())
                fixed (byte* t = text)
                fixed (int* ends = endTokens)
                {
                    var o = new aerie_grammar_options { struct_size = (uint)sizeof(aerie_grammar_options) };
                    o.n_end_tokens = endTokens == null ? 0 : endTokens.Length;
                    o.end_tokens = ends;
                    o.json_layout = (int)layout;
                    AerieException.Check(maker(tokenizer.Pointer, t, &o, &p, &e), ref e);
                }
            Handle = new GrammarHandle(p);
        }

        public void Dispose()
        {
            Handle.Dispose();
        }
    }
}

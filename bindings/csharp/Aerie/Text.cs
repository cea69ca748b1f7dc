using System;
using System.Runtime.InteropServices;
using System.Threading;
using Aerie.Native;

namespace Aerie
{
    /// <summary>Text to tokens and back; immutable, any thread.</summary>
    public sealed unsafe class Tokenizer : IDisposable
    {
        internal readonly TokenizerHandle Handle;

        /// <summary>From a package's "tokenizer" blob; Model.OpenTokenizer is the short way.</summary>
        public Tokenizer(byte[] blob)
        {
            if (blob == null) throw new ArgumentNullException("blob");
            IntPtr p = IntPtr.Zero;
            aerie_error e = AerieException.NewError();
            fixed (byte* data = blob)
                AerieException.Check(Methods.aerie_tokenizer_create((IntPtr)data, (UIntPtr)blob.Length, &p, &e), ref e);
            Handle = new TokenizerHandle(p);
        }

        public int VocabSize
        {
            get
            {
                using (var tokenizer = Handle.Use()) return Methods.aerie_tokenizer_vocab_size(tokenizer.Pointer);
            }
        }

        /// <summary>special: "&lt;|endoftext|&gt;" in the text is that token.</summary>
        public int[] Encode(string text, bool bos = true, bool special = false)
        {
            if (text == null) throw new ArgumentNullException("text");
            byte[] bytes = Utf8.ToBytes(text);
            int[] ids = new int[bytes.Length + 8]; // a token a byte, and a few in front: nearly always enough
            uint flags = (bos ? 0 : Constants.AERIE_ENCODE_NO_BOS) | (special ? Constants.AERIE_ENCODE_SPECIAL : 0);
            aerie_error e = AerieException.NewError();
            using (var tokenizer = Handle.Use())
                for (;;)
                {
                    UIntPtr n = UIntPtr.Zero;
                    int code;
                    fixed (byte* b = bytes)
                    fixed (int* i = ids)
                        code = Methods.aerie_tokenizer_encode(tokenizer.Pointer, b, (UIntPtr)bytes.Length, flags, i, (UIntPtr)ids.Length, &n, &e);
                    if (code != Constants.AERIE_E_LIMIT || (ulong)n <= (ulong)ids.Length)
                    {
                        AerieException.Check(code, ref e);
                        Array.Resize(ref ids, (int)n);
                        return ids;
                    }
                    ids = new int[checked((int)n)];
                }
        }

        /// <summary>A token's bytes in running text after the token previous (-1: none); null: no such token.</summary>
        public byte[] TokenBytes(int token, int previous = -1)
        {
            using (var tokenizer = Handle.Use())
            {
                byte* bytes = null;
                int n = Methods.aerie_tokenizer_token_bytes(tokenizer.Pointer, token, previous, &bytes);
                if (n < 0) return null;
                byte[] copy = new byte[n];
                for (int i = 0; i < n; ++i) copy[i] = bytes[i];
                return copy;
            }
        }

        public TextDecoder CreateDecoder()
        {
            return new TextDecoder(this);
        }

        /// <summary>
        /// From GBNF, llama.cpp's notation, whose start is the rule "root". endTokens are allowed where the text is complete:
        /// ModelInfo.Eos. Without any it ends once nothing can follow (FinishReason.Constraint).
        /// </summary>
        public Grammar CreateGrammar(string gbnf, params int[] endTokens)
        {
            if (gbnf == null) throw new ArgumentNullException("gbnf");
            return new Grammar(this, Utf8.ToNative(gbnf, "gbnf"), endTokens, Methods.aerie_grammar_create);
        }

        /// <summary>
        /// JSON that a JSON Schema describes; "{}" is any JSON. ErrorCode.Unsupported names a keyword that is not known.
        /// endTokens are those of CreateGrammar.
        /// </summary>
        public Grammar CreateJsonGrammar(string schema, params int[] endTokens)
        {
            return CreateJsonGrammar(schema, JsonLayout.Free, endTokens);
        }

        /// <summary>The same, laid out in a certain way.</summary>
        public Grammar CreateJsonGrammar(string schema, JsonLayout layout, params int[] endTokens)
        {
            if (schema == null) throw new ArgumentNullException("schema");
            return new Grammar(this, Utf8.ToNative(schema, "schema"), endTokens, Methods.aerie_grammar_create_json, layout);
        }

        public void Dispose()
        {
            Handle.Dispose();
        }
    }

    /// <summary>Tokens to text without splitting a character. One thread at a time; may outlive the tokenizer.</summary>
    public sealed unsafe class TextDecoder : IDisposable
    {
        private readonly DecoderHandle handle;
        private readonly Turn turn = new Turn();

        internal TextDecoder(Tokenizer on)
        {
            IntPtr p = IntPtr.Zero;
            aerie_error e = AerieException.NewError();
            using (var tokenizer = on.Handle.Use())
                AerieException.Check(Methods.aerie_decoder_create(tokenizer.Pointer, &p, &e), ref e);
            handle = new DecoderHandle(p);
        }

        /// <summary>The characters that are complete now, perhaps none.</summary>
        public string Push(int token)
        {
            byte* text = null;
            UIntPtr size = UIntPtr.Zero;
            aerie_error e = AerieException.NewError();
            using (var decoder = handle.Use())
            using (turn.Take())
            {
                AerieException.Check(Methods.aerie_decoder_push(decoder.Pointer, token, &text, &size, &e), ref e);
                return Utf8.FromNative(text, (int)size);
            }
        }

        /// <summary>What was held back, as U+FFFD; the decoder is then fresh.</summary>
        public string Finish()
        {
            byte* text = null;
            UIntPtr size = UIntPtr.Zero;
            aerie_error e = AerieException.NewError();
            using (var decoder = handle.Use())
            using (turn.Take())
            {
                AerieException.Check(Methods.aerie_decoder_finish(decoder.Pointer, &text, &size, &e), ref e);
                return Utf8.FromNative(text, (int)size);
            }
        }

        public void Dispose()
        {
            handle.Dispose();
        }
    }
}

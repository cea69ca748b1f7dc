using System;
using System.Text;

namespace Aerie
{
    /// <summary>
    /// A session's text from its steps, for those who poll: Push every result, show what comes back, Finish at the end. What
    /// may yet turn out to begin a stop string is held back, and the stop string is cut.
    /// </summary>
    public sealed class TextStream : IDisposable
    {
        private readonly TextDecoder decoder;
        private readonly string[] stops;
        private readonly int hold; // characters that may yet turn out to begin a stop string
        private readonly StringBuilder text = new StringBuilder(); // decoded, not yet handed out
        private bool stopped;
        private int stopBytes;

        public TextStream(Tokenizer tokenizer, Session session) : this(tokenizer, session.StopStrings)
        {
        }

        internal TextStream(Tokenizer tokenizer, string[] stops)
        {
            decoder = tokenizer.CreateDecoder();
            this.stops = stops;
            foreach (string stop in stops) hold = Math.Max(hold, stop.Length - 1);
        }

        public string Push(StepResult step)
        {
            if (step.Tokens.Length == 0) return "";
            foreach (Token token in step.Tokens) text.Append(decoder.Push(token.Id));
            if (step.Finish == FinishReason.StopString)
            {
                stopped = true;
                stopBytes = step.StopBytes;
            }
            if (stopped) return ""; // the stop string lies somewhere in it: Finish cuts
            int ready = Math.Max(0, text.Length - hold);
            if (ready > 0 && ready < text.Length && char.IsLowSurrogate(text[ready])) --ready;
            return Take(ready);
        }

        /// <summary>
        /// The rest. The library counts the bytes to cut from the end of the raw text, but the decoder may have more of them,
        /// in U+FFFD for what is no UTF-8, so the place is looked for; a stop string that is not here whole began in text that
        /// was handed out before.
        /// </summary>
        public string Finish()
        {
            text.Append(decoder.Finish());
            string all = Take(text.Length);
            if (!stopped) return all;
            int first = -1;
            foreach (string stop in stops)
            {
                int at = all.IndexOf(stop, StringComparison.Ordinal);
                if (at >= 0 && (first < 0 || at < first)) first = at;
            }
            if (first >= 0) return all.Substring(0, first);
            byte[] raw = Utf8.ToBytes(all);
            return Encoding.UTF8.GetString(raw, 0, Math.Max(0, raw.Length - stopBytes));
        }

        private string Take(int n)
        {
            if (n == 0) return "";
            string piece = text.ToString(0, n);
            text.Remove(0, n);
            return piece;
        }

        public void Dispose()
        {
            decoder.Dispose();
        }
    }
}

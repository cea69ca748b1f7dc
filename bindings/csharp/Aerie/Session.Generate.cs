using System.Collections.Generic;
using System.Threading;

namespace Aerie
{
    // Iterators, apart from the unsafe code.
    public sealed partial class Session
    {
        /// <summary>Tokens one by one, up to a count (0: until the text ends). What a step emits beyond the last one taken stays in the session.</summary>
        public IEnumerable<Token> Generate(int maxTokens = 0, CancellationToken cancel = default(CancellationToken))
        {
            int left = maxTokens;
            for (;;)
            {
                StepResult step = Step(new StepOptions { MaxTokens = left }, cancel);
                foreach (Token token in step.Tokens) yield return token;
                if (step.State == StepState.Done || maxTokens > 0 && (left -= step.Tokens.Length) <= 0) yield break;
            }
        }

        /// <summary>Text as it comes: whole characters, up to a count of tokens (0: until the text ends), without the stop string.</summary>
        public IEnumerable<string> GenerateText(Tokenizer tokenizer, int maxTokens = 0, CancellationToken cancel = default(CancellationToken))
        {
            using (TextStream text = new TextStream(tokenizer, stops))
            {
                int left = maxTokens;
                for (bool more = true; more;)
                {
                    StepResult step = Step(new StepOptions { MaxTokens = left }, cancel);
                    more = step.State != StepState.Done && (maxTokens == 0 || (left -= step.Tokens.Length) > 0);
                    string piece = text.Push(step) + (more ? "" : text.Finish());
                    if (piece.Length > 0) yield return piece;
                }
            }
        }
    }
}

#if NET8_0_OR_GREATER
using System.Collections.Generic;
using System.Runtime.CompilerServices;
using System.Threading;

namespace Aerie
{
    public sealed partial class Session
    {
        /// <summary>Generate, with each step on a thread of the pool.</summary>
        public async IAsyncEnumerable<Token> GenerateAsync(int maxTokens = 0, [EnumeratorCancellation] CancellationToken cancel = default)
        {
            int left = maxTokens;
            for (;;)
            {
                StepResult step = await StepAsync(new StepOptions { MaxTokens = left }, cancel).ConfigureAwait(false);
                foreach (Token token in step.Tokens) yield return token;
                if (step.State == StepState.Done || maxTokens > 0 && (left -= step.Tokens.Length) <= 0) yield break;
            }
        }

        /// <summary>GenerateText, with each step on a thread of the pool.</summary>
        public async IAsyncEnumerable<string> GenerateTextAsync(Tokenizer tokenizer, int maxTokens = 0,
                                                                [EnumeratorCancellation] CancellationToken cancel = default)
        {
            using var text = new TextStream(tokenizer, this);
            int left = maxTokens;
            for (bool more = true; more;)
            {
                StepResult step = await StepAsync(new StepOptions { MaxTokens = left }, cancel).ConfigureAwait(false);
                more = step.State != StepState.Done && (maxTokens == 0 || (left -= step.Tokens.Length) > 0);
                string piece = text.Push(step) + (more ? "" : text.Finish());
                if (piece.Length > 0) yield return piece;
            }
        }
    }
}
#endif

using System;
using Aerie.Native;

namespace Aerie
{
    /// <summary>One token of the text.</summary>
    public struct Token
    {
        internal Token(int id, float logprob, bool drafted)
        {
            Id = id; Logprob = logprob; Drafted = drafted;
        }

        public int Id { get; }
        /// <summary>Log-softmax of the target's raw logits.</summary>
        public float Logprob { get; }
        /// <summary>It had been guessed, by a drafter or because of a grammar.</summary>
        public bool Drafted { get; }
    }

    public enum StepState
    {
        /// <summary>The budget is spent; step again.</summary>
        Pending = Constants.AERIE_STEP_PENDING,
        /// <summary>Tokens came out; step again for more.</summary>
        Tokens = Constants.AERIE_STEP_TOKENS,
        /// <summary>Tokens may have come out; the text has ended.</summary>
        Done = Constants.AERIE_STEP_DONE,
    }

    /// <summary>Why a text has ended.</summary>
    public enum FinishReason
    {
        None = Constants.AERIE_FINISH_NONE,
        Eos = Constants.AERIE_FINISH_EOS,
        StopToken = Constants.AERIE_FINISH_STOP_TOKEN,
        StopString = Constants.AERIE_FINISH_STOP_STRING,
        Context = Constants.AERIE_FINISH_CONTEXT,
        /// <summary>The grammar lets no token come next.</summary>
        Constraint = Constants.AERIE_FINISH_CONSTRAINT,
    }

    /// <summary>Bounds of a step; the default is one whole cycle.</summary>
    public struct StepOptions
    {
        /// <summary>Most tokens to emit; 0: whatever one cycle gives.</summary>
        public int MaxTokens { get; set; }
        /// <summary>Zero: no limit; less, as of a frame that is over: the least. At least one slice of work is done. Counted in microseconds.</summary>
        public TimeSpan Budget { get; set; }

        internal unsafe aerie_step_options ToNative()
        {
            const long ticks = TimeSpan.TicksPerMillisecond / 1000;
            return new aerie_step_options
            {
                struct_size = (uint)sizeof(aerie_step_options), max_tokens = MaxTokens,
                // Less than a microsecond is not "no limit".
                budget_us = Budget == TimeSpan.Zero ? 0 : Budget < TimeSpan.Zero ? 1 : (Budget.Ticks - 1) / ticks + 1,
            };
        }
    }

    /// <summary>What one step gave.</summary>
    public struct StepResult
    {
        internal unsafe StepResult(aerie_step_result* r)
        {
            State = (StepState)r->state;
            Finish = (FinishReason)r->finish;
            StopBytes = r->stop_bytes;
            Tokens = r->n_tokens == 0 ? Array.Empty<Token>() : new Token[r->n_tokens];
            for (int i = 0; i < r->n_tokens; ++i)
                Tokens[i] = new Token(r->tokens[i].id, r->tokens[i].logprob, r->tokens[i].drafted != 0);
        }

        public StepState State { get; }
        public Token[] Tokens { get; }
        public FinishReason Finish { get; }
        /// <summary>StopString: bytes at the end of the UTF-8 text, from the stop string on, to cut.</summary>
        public int StopBytes { get; }
    }
}

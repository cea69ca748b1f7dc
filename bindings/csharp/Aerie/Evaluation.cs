namespace Aerie
{
    /// <summary>A text as the target sees it; rows are those of a session, bit for bit.</summary>
    public sealed class Evaluation
    {
        /// <summary>The tap of the hidden state after the final norm; others are layers, whose input is taken.</summary>
        public const int FinalHidden = -1;

        internal Evaluation(float[] features, float[] logits)
        {
            Features = features;
            Logits = logits;
        }

        /// <summary>[tokens][taps * HiddenSize]</summary>
        public float[] Features { get; }
        /// <summary>[tokens][VocabSize]; null: not asked for.</summary>
        public float[] Logits { get; }
    }
}

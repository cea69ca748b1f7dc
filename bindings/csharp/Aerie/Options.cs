using System;
using System.Collections.Generic;
using Aerie.Native;

namespace Aerie
{
    /// <summary>
    /// How tokens are drawn; the defaults are greedy. Biases come first, then penalties, the session's grammar, Temperature,
    /// TopK, TopP, MinP and the draw; a drafter changes none of it.
    /// </summary>
    public sealed class Sampling
    {
        /// <summary>0: greedy, ties to the lowest id.</summary>
        public float Temperature { get; set; }
        public int TopK { get; set; }
        public float TopP { get; set; }
        public float MinP { get; set; }
        public ulong Seed { get; set; }
        /// <summary>Noise stream: sessions with equal seeds but different streams differ.</summary>
        public uint Stream { get; set; }
        /// <summary>
        /// Of each token in the text, prompt included: a logit above 0 is divided by it, any other multiplied. 0 or 1: off.
        /// </summary>
        public float RepetitionPenalty { get; set; }
        /// <summary>Taken from the logit of each token that was generated since the last Append. 0: off.</summary>
        public float PresencePenalty { get; set; }
        /// <summary>The same, as often as it was generated. 0: off.</summary>
        public float FrequencyPenalty { get; set; }
        /// <summary>Penalties look at this many tokens, the newest; 0: all.</summary>
        public int PenaltyWindow { get; set; }
        /// <summary>What is added to tokens' logits; float.NegativeInfinity: it never comes. null: nothing.</summary>
        public IDictionary<int, float> LogitBias { get; set; }

        internal aerie_logit_bias[] Biases()
        {
            if (LogitBias == null || LogitBias.Count == 0) return null;
            List<aerie_logit_bias> list = new List<aerie_logit_bias>();
            foreach (KeyValuePair<int, float> one in LogitBias) list.Add(new aerie_logit_bias { token = one.Key, bias = one.Value });
            return list.ToArray();
        }

        internal unsafe aerie_sampling ToNative(aerie_logit_bias* biases, int n)
        {
            return new aerie_sampling
            {
                struct_size = (uint)sizeof(aerie_sampling), temperature = Temperature, top_k = TopK, top_p = TopP, min_p = MinP,
                seed = Seed, stream = Stream, repetition_penalty = RepetitionPenalty, presence_penalty = PresencePenalty,
                frequency_penalty = FrequencyPenalty, penalty_window = PenaltyWindow, logit_bias = biases, n_logit_bias = n,
            };
        }
    }

    /// <summary>Which guesses are verified together.</summary>
    public enum TreePolicy
    {
        /// <summary>Auto; static under the sampled rule.</summary>
        Default = Constants.AERIE_TREE_DEFAULT,
        Chain = Constants.AERIE_TREE_CHAIN,
        Static = Constants.AERIE_TREE_STATIC,
        Eagle2 = Constants.AERIE_TREE_EAGLE2,
        Backbone = Constants.AERIE_TREE_BACKBONE,
        Cast = Constants.AERIE_TREE_CAST,
        Auto = Constants.AERIE_TREE_AUTO,
    }

    /// <summary>The shape of draft trees; aerie.h says what the numbers mean to each policy. Zeros are the defaults.</summary>
    public sealed class Tree
    {
        public TreePolicy Policy { get; set; }
        public int Nodes { get; set; }
        public int Depth { get; set; }
        public int TopK { get; set; }
        /// <summary>Static: rank paths; null: EAGLE's 25-node tree.</summary>
        public int[][] Paths { get; set; }
        /// <summary>Cast.</summary>
        public float Threshold { get; set; }

        internal int[] FlatPaths()
        {
            if (Paths == null || Paths.Length == 0) return null;
            List<int> flat = new List<int>();
            foreach (int[] path in Paths)
            {
                flat.AddRange(path);
                flat.Add(-1);
            }
            return flat.ToArray();
        }

        internal unsafe aerie_tree_options ToNative(int* paths)
        {
            return new aerie_tree_options
            {
                struct_size = (uint)sizeof(aerie_tree_options), policy = (int)Policy, nodes = Nodes, depth = Depth, top_k = TopK,
                n_paths = Paths == null ? 0 : Paths.Length, paths = paths, threshold = Threshold,
            };
        }
    }

    /// <summary>What drafters rank their guesses with at a temperature above 0.</summary>
    public enum DraftNoise { Shared = Constants.AERIE_NOISE_SHARED, None = Constants.AERIE_NOISE_NONE }

    /// <summary>The rule by which guesses are accepted. Exact: same seed, same text, bit for bit; sampled: in distribution only.</summary>
    public enum VerifyRule { Exact = Constants.AERIE_VERIFY_EXACT, Sampled = Constants.AERIE_VERIFY_SAMPLED }

    /// <summary>How a session is made; the defaults decode greedily without a drafter.</summary>
    public sealed class SessionOptions
    {
        /// <summary>0: the model's.</summary>
        public int MaxContext { get; set; }
        public Drafter Drafter { get; set; }
        /// <summary>Beside Drafter: TreePolicy.Auto chooses between all of them for every cycle.</summary>
        public Drafter[] MoreDrafters { get; set; }
        public Sampling Sampling { get; set; }
        public Tree Tree { get; set; }
        public DraftNoise DraftNoise { get; set; }
        public VerifyRule Verify { get; set; }
        /// <summary>The model's end-of-text ids are ordinary tokens.</summary>
        public bool IgnoreEos { get; set; }
        /// <summary>Further tokens that end the text; emitted, then stop.</summary>
        public int[] StopTokens { get; set; }
        /// <summary>
        /// What a grammar forces, or has usually come there, is left to the drafter, or to plain decode; to measure what
        /// foresight brings. The text is the same.
        /// </summary>
        public bool NoForesight { get; set; }

        internal unsafe delegate int Call(aerie_session_options* options, aerie_error* error);

        /// <summary>Fill the C struct and call with it, while everything it points at is held.</summary>
        internal unsafe void With(Call call)
        {
            Tree tree = Tree ?? new Tree();
            var o = new aerie_session_options { struct_size = (uint)sizeof(aerie_session_options) };
            o.max_context = MaxContext;
            Sampling draw = Sampling ?? new Sampling();
            aerie_logit_bias[] bias = draw.Biases();
            o.draft_noise = (int)DraftNoise;
            o.verify = (int)Verify;
            o.ignore_eos = IgnoreEos ? 1 : 0;
            o.no_foresight = NoForesight ? 1 : 0;
            o.n_stop_tokens = StopTokens == null ? 0 : StopTokens.Length;
            aerie_error e = AerieException.NewError();
            Drafter[] more = MoreDrafters ?? Array.Empty<Drafter>();
            var used = new List<NativeHandle.Using>();
            try
            {
                var list = new IntPtr[more.Length];
                for (int i = 0; i < more.Length; ++i)
                {
                    used.Add(more[i].Handle.Use());
                    list[i] = used[i].Pointer;
                }
                using (var drafter = Drafter == null ? default(NativeHandle.Using) : Drafter.Handle.Use())
                    fixed (int* paths = tree.FlatPaths(), stops = StopTokens)
                    fixed (IntPtr* further = list)
                    fixed (aerie_logit_bias* biases = bias)
                    {
                        aerie_sampling sampling = draw.ToNative(biases, bias == null ? 0 : bias.Length);
                        o.sampling = &sampling;
                        o.drafter = drafter.Pointer;
                        o.n_more_drafters = more.Length;
                        o.more_drafters = further;
                        aerie_tree_options shape = tree.ToNative(paths);
                        o.tree = &shape;
                        o.stop_tokens = stops;
                        AerieException.Check(call(&o, &e), ref e);
                    }
            }
            finally
            {
                foreach (NativeHandle.Using one in used) one.Dispose();
            }
        }
    }
}

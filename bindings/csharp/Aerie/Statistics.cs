using System;
using Aerie.Native;

namespace Aerie
{
    /// <summary>What a session has done so far.</summary>
    public sealed class Statistics
    {
        internal unsafe Statistics(aerie_statistics s)
        {
            Quarantined = s.quarantined != 0;
            Emitted = (long)s.emitted;
            Cycles = (long)s.cycles;
            FullCycles = (long)s.full_cycles;
            FullEmitted = (long)s.full_emitted;
            Proposed = (long)s.proposed;
            Verified = (long)s.verified;
            Accepted = (long)s.accepted;
            DrafterFailures = (long)s.drafter_failures;
            Prefill = Time(s.prefill_ns);
            Draft = Time(s.draft_ns);
            Verify = Time(s.verify_ns);
            Other = Time(s.other_ns);
            PrefillTokens = (long)s.prefill_tokens;
            ReusedTokens = (long)s.reused_tokens;
            ChosenDrafter = s.chosen_drafter;
            ChosenNodes = s.chosen_nodes;
            ChosenDepth = s.chosen_depth;
            PlainCycles = (long)s.plain_cycles;
            for (int i = 0; i < ChosenCycles.Length; ++i) ChosenCycles[i] = (long)s.chosen_cycles[i];
            ForeseenVerified = (long)s.foreseen_verified;
            ForeseenAccepted = (long)s.foreseen_accepted;
            DraftPasses = (long)s.draft_passes;
            for (int i = 0; i < Tried.Length; ++i)
            {
                Tried[i] = (long)s.tried[i];
                Taken[i] = (long)s.taken[i];
            }
        }

        private static TimeSpan Time(ulong ns) { return TimeSpan.FromTicks((long)(ns / 100)); }

        /// <summary>The drafter has failed too often and is out.</summary>
        public bool Quarantined { get; }
        /// <summary>Tokens generated.</summary>
        public long Emitted { get; }
        /// <summary>Verify passes that emitted.</summary>
        public long Cycles { get; }
        /// <summary>Of these, not cut short by a limit, stop or end of text.</summary>
        public long FullCycles { get; }
        public long FullEmitted { get; }
        /// <summary>Nodes the drafter offered.</summary>
        public long Proposed { get; }
        /// <summary>Nodes that went through a verify pass (root not counted).</summary>
        public long Verified { get; }
        /// <summary>Of these, emitted.</summary>
        public long Accepted { get; }
        /// <summary>Steps that fell back to plain decode.</summary>
        public long DrafterFailures { get; }
        public TimeSpan Prefill { get; }
        public TimeSpan Draft { get; }
        public TimeSpan Verify { get; }
        public TimeSpan Other { get; }
        public long PrefillTokens { get; }
        /// <summary>Prompt tokens whose keys and values were there already (not in PrefillTokens).</summary>
        public long ReusedTokens { get; }
        public long DraftPasses { get; }
        /// <summary>By depth: cycles whose walk found children there.</summary>
        public long[] Tried { get; } = new long[16];
        /// <summary>Of these, went on to one of them.</summary>
        public long[] Taken { get; } = new long[16];
        /// <summary>Of the last cycle: 0 Drafter, 1.. MoreDrafters; -1: none (plain decode).</summary>
        public int ChosenDrafter { get; }
        /// <summary>Nodes that it verified, the root not counted.</summary>
        public int ChosenNodes { get; }
        /// <summary>Of the deepest of them.</summary>
        public int ChosenDepth { get; }
        /// <summary>Cycles that no drafter was asked in.</summary>
        public long PlainCycles { get; }
        /// <summary>Cycles that asked drafter 0, 1, ...; the last counts all further ones.</summary>
        public long[] ChosenCycles { get; } = new long[8];
        /// <summary>Of Verified: what a grammar forces, or has usually come there, and no drafter had guessed.</summary>
        public long ForeseenVerified { get; }
        /// <summary>Of these, emitted.</summary>
        public long ForeseenAccepted { get; }
        /// <summary>Tokens emitted per full cycle.</summary>
        public double Tau { get { return FullCycles == 0 ? 0 : (double)FullEmitted / FullCycles; } }
    }
}

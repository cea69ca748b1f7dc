//! What a session counts.
use aerie_sys as sys;
use std::time::Duration;

/// What a session did so far.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Statistics {
    /// A drafter is out: it has failed too often, or found no memory or KV too often in this session.
    pub quarantined: bool,
    /// Tokens generated.
    pub emitted: u64,
    /// Verify passes that emitted.
    pub cycles: u64,
    /// Of these, not cut short by a limit, stop or end of text.
    pub full_cycles: u64,
    /// Tokens of the full cycles.
    pub full_emitted: u64,
    /// Nodes the drafter offered.
    pub proposed: u64,
    /// Nodes that went through a verify pass, roots not counted.
    pub verified: u64,
    /// Of these, emitted.
    pub accepted: u64,
    /// Steps that fell back to plain decode.
    pub drafter_failures: u64,
    /// Time spent reading prompts.
    pub prefill: Duration,
    /// Time spent drafting.
    pub draft: Duration,
    /// Time spent verifying.
    pub verify: Duration,
    /// The rest of the steps' time.
    pub other: Duration,
    /// Tokens of prompt read.
    pub prefill_tokens: u64,
    /// Calls of the drafter.
    pub draft_passes: u64,
    /// By depth: cycles whose walk came there and found children.
    pub tried: [u64; 16],
    /// Of these, went on to one of them.
    pub taken: [u64; 16],
    /// Tokens of prompt whose keys and values were there already.
    pub reused_tokens: u64,
    /// Who guessed in the last cycle: 0 the session's drafter, 1 and up its further ones; none: plain decode.
    pub chosen_drafter: Option<usize>,
    /// Nodes verified in the last cycle, the root not counted.
    pub chosen_nodes: u32,
    /// The depth of the deepest of them.
    pub chosen_depth: u32,
    /// Cycles that no drafter was asked in.
    pub plain_cycles: u64,
    /// Cycles that asked each drafter; the last place counts all further ones.
    pub chosen_cycles: [u64; 8],
    /// Of the verified nodes: what a constraint forces, or has usually come there, and no drafter had guessed.
    pub foreseen_verified: u64,
    /// Of these, emitted.
    pub foreseen_accepted: u64,
}

impl Statistics {
    pub(crate) fn from_raw(s: &sys::aerie_statistics) -> Self {
        Statistics {
            quarantined: s.quarantined != 0,
            emitted: s.emitted,
            cycles: s.cycles,
            full_cycles: s.full_cycles,
            full_emitted: s.full_emitted,
            proposed: s.proposed,
            verified: s.verified,
            accepted: s.accepted,
            drafter_failures: s.drafter_failures,
            prefill: Duration::from_nanos(s.prefill_ns),
            draft: Duration::from_nanos(s.draft_ns),
            verify: Duration::from_nanos(s.verify_ns),
            other: Duration::from_nanos(s.other_ns),
            prefill_tokens: s.prefill_tokens,
            draft_passes: s.draft_passes,
            tried: s.tried,
            taken: s.taken,
            reused_tokens: s.reused_tokens,
            chosen_drafter: usize::try_from(s.chosen_drafter).ok(),
            chosen_nodes: s.chosen_nodes as u32,
            chosen_depth: s.chosen_depth as u32,
            plain_cycles: s.plain_cycles,
            chosen_cycles: s.chosen_cycles,
            foreseen_verified: s.foreseen_verified,
            foreseen_accepted: s.foreseen_accepted,
        }
    }

    /// τ: tokens emitted per full cycle; 0 before the first.
    pub fn tau(&self) -> f64 {
        if self.full_cycles == 0 {
            0.0
        } else {
            self.full_emitted as f64 / self.full_cycles as f64
        }
    }
}

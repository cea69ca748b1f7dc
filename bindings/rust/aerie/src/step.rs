//! One step: its bounds and what came out.
use std::time::Duration;

use aerie_sys as sys;

use crate::error::{sized, slice};

/// A token that came out.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Token(sys::aerie_token);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut token = f.debug_struct("Token");
        token.field("id", &self.id()).field("logprob", &self.logprob()).field("drafted", &self.drafted()).finish()
    }
}

impl Token {
    /// Which one.
    pub fn id(&self) -> i32 {
        self.0.id
    }

    /// Log-softmax of the target's raw logits.
    pub fn logprob(&self) -> f32 {
        self.0.logprob
    }

    /// It had been guessed, by a drafter or because of a constraint.
    pub fn drafted(&self) -> bool {
        self.0.drafted != 0
    }
}

/// Bounds of one step.
#[derive(Clone, Copy, Debug, Default)]
pub struct StepOptions {
    /// Most tokens it may emit; 0: whatever one cycle gives.
    pub max_tokens: usize,
    /// How long it may take; none: no limit. At least one slice of work is done.
    pub budget: Option<Duration>,
}

impl StepOptions {
    pub(crate) fn to_raw(self) -> sys::aerie_step_options {
        let micros = |d: Duration| d.as_micros().clamp(1, i64::MAX as u128) as i64;
        sized!(aerie_step_options {
            max_tokens: self.max_tokens.min(i32::MAX as usize) as i32,
            budget_us: self.budget.map_or(0, micros),
        })
    }
}

/// Why a text ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finish {
    /// The model said so.
    Eos,
    /// A stop token came out.
    StopToken,
    /// A stop string came out.
    StopString,
    /// The context is full.
    Context,
    /// Nothing may come next: the grammar or constraint says so.
    Constraint,
}

/// Where a step left the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum State {
    /// The budget is spent; step again.
    Pending,
    /// Tokens came out; step again for more.
    Tokens,
    /// Tokens may have come out, and the text has ended.
    Done(Finish),
}

/// What a step gave.
#[derive(Clone, Copy, Debug)]
pub struct Step<'s> {
    /// What came out, often several.
    pub tokens: &'s [Token],
    /// Step again, or not.
    pub state: State,
    /// With [`Finish::StopString`]: bytes at the end of the text, from the stop string on, to cut.
    pub stop_bytes: usize,
}

impl Step<'_> {
    /// `raw` as filled by the library; its tokens live until the next call on the session.
    pub(crate) unsafe fn from_raw(raw: &sys::aerie_step_result) -> Self {
        let state = match (raw.state, raw.finish) {
            (sys::AERIE_STEP_DONE, sys::AERIE_FINISH_EOS) => State::Done(Finish::Eos),
            (sys::AERIE_STEP_DONE, sys::AERIE_FINISH_STOP_TOKEN) => State::Done(Finish::StopToken),
            (sys::AERIE_STEP_DONE, sys::AERIE_FINISH_STOP_STRING) => State::Done(Finish::StopString),
            (sys::AERIE_STEP_DONE, sys::AERIE_FINISH_CONSTRAINT) => State::Done(Finish::Constraint),
            (sys::AERIE_STEP_DONE, _) => State::Done(Finish::Context),
            (sys::AERIE_STEP_TOKENS, _) => State::Tokens,
            _ => State::Pending,
        };
        let tokens = slice(raw.tokens as *const Token, raw.n_tokens as usize);
        Step { tokens, state, stop_bytes: raw.stop_bytes as usize }
    }
}

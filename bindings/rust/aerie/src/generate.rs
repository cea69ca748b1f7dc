//! A session as an iterator.
use std::collections::VecDeque;

use crate::error::Result;
use crate::session::Session;
use crate::step::{Finish, State, StepOptions, Token};

/// Tokens of a session, a step at a time; made by [`Session::generate`].
///
/// Ends after `max_tokens`, at the end of the text, or after a failure. No more than that is committed to the session;
/// a cancelled one may be asked for again with a new iterator. Leaving early leaves at most the tokens of one step in
/// the session that the iterator did not hand out.
pub struct Generate<'s> {
    session: &'s mut Session,
    left: usize,
    step: VecDeque<Token>,
    finish: Option<Finish>,
    over: bool,
}

impl Session {
    /// At most `max_tokens` tokens, stepping as they are asked for.
    pub fn generate(&mut self, max_tokens: usize) -> Generate<'_> {
        Generate { session: self, left: max_tokens, step: VecDeque::new(), finish: None, over: false }
    }
}

impl Generate<'_> {
    /// Why the text ended, once it has.
    pub fn finish(&self) -> Option<Finish> {
        self.finish
    }
}

impl Iterator for Generate<'_> {
    type Item = Result<Token>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(token) = self.step.pop_front() {
                return Some(Ok(token));
            }
            if self.over || self.left == 0 {
                return None;
            }
            match self.session.step(StepOptions { max_tokens: self.left, budget: None }) {
                Ok(step) => {
                    if let State::Done(finish) = step.state {
                        self.finish = Some(finish);
                        self.over = true;
                    }
                    self.left = self.left.saturating_sub(step.tokens.len());
                    self.step.extend(step.tokens);
                }
                Err(error) => {
                    self.over = true;
                    return Some(Err(error));
                }
            }
        }
    }
}

//! Sessions of one model stepped together.
use std::ops::Deref;
use std::path::Path;
use std::ptr::null_mut;

use aerie_sys as sys;

use crate::constraint::{failures_of, Constraint};
use crate::error::{check, sized, Code, Error, Result};
use crate::grammar::Grammar;
use crate::model::Model;
use crate::options::{Sampling, Tree};
use crate::session::{CancelHandle, Session, Target};
use crate::step::{Step, StepOptions};
use crate::text::Tokenizer;

/// Sessions of one model stepped together: one pass of the target serves all of them. They may differ in everything,
/// and each one's text is bit for bit what it is alone.
///
/// The batch owns its sessions until they are removed, so that nobody steps or reads one while the batch does.
pub struct Batch {
    raw: *mut sys::aerie_batch,
    cancel: CancelHandle,
    members: Vec<(SessionId, Session)>,
    next: u64,
    _model: Model,
}

unsafe impl Send for Batch {}

impl Drop for Batch {
    fn drop(&mut self) {
        self.cancel.forget();
        unsafe { sys::aerie_batch_release(self.raw) }
    }
}

/// A session of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SessionId(u64);

/// What a step of a batch gave, all sessions together.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct BatchStep {
    /// In the batch.
    pub sessions: usize,
    /// Tokens emitted in this step.
    pub tokens: usize,
    /// Sessions with tokens.
    pub emitting: usize,
    /// Sessions whose text has ended, in this step or before.
    pub ended: usize,
    /// Sessions whose result is an error.
    pub failed: usize,
}

impl Model {
    /// An empty batch. `max_rows` bounds the rows of one target pass; 0: no limit.
    pub fn batch(&self, max_rows: i32) -> Result<Batch> {
        let options = sized!(aerie_batch_options { max_rows: max_rows });
        let mut raw = null_mut();
        check(|e| unsafe { sys::aerie_batch_create(self.raw(), &options, &mut raw, e) })?;
        let cancel = CancelHandle::new(Target::Batch(raw));
        Ok(Batch { raw, cancel, members: Vec::new(), next: 0, _model: self.clone() })
    }
}

impl Batch {
    /// Take a session in. One that cannot be is handed back with the reason.
    #[allow(clippy::result_large_err)]
    pub fn add(&mut self, session: Session) -> std::result::Result<SessionId, (Session, Error)> {
        if let Err(error) = check(|e| unsafe { sys::aerie_batch_add(self.raw, session.raw, e) }) {
            return Err((session, error));
        }
        let id = SessionId(self.next);
        self.next += 1;
        self.members.push((id, session));
        Ok(id)
    }

    /// Let a session go; its unfinished cycle is given up, nobody else's.
    pub fn remove(&mut self, id: SessionId) -> Result<Session> {
        let at = self.members.iter().position(|m| m.0 == id);
        let at = at.ok_or_else(|| Error::new(Code::NotFound, "this session is not in the batch"))?;
        let session = self.members[at].1.raw;
        check(|e| unsafe { sys::aerie_batch_remove(self.raw, session, e) })?;
        Ok(self.members.remove(at).1)
    }

    /// One cycle of those that decode, a chunk of prompt of those that do not. Then ask the members for their
    /// [`result`](Member::result): one that fails does not stop the others.
    pub fn step(&mut self, options: StepOptions) -> Result<BatchStep> {
        let mut out = sized!(aerie_batch_result {});
        let options = options.to_raw();
        let step = || check(|e| unsafe { sys::aerie_batch_step(self.raw, &options, &mut out, e) });
        let (outcome, failures) = failures_of(step);
        self.members.iter_mut().for_each(|m| m.1.heard(&failures));
        outcome?;
        Ok(BatchStep {
            sessions: out.n_sessions as usize,
            tokens: out.n_tokens as usize,
            emitting: out.n_emitting as usize,
            ended: out.n_ended as usize,
            failed: out.n_failed as usize,
        })
    }

    /// One of its sessions.
    pub fn get(&mut self, id: SessionId) -> Option<Member<'_>> {
        self.members.iter_mut().find(|m| m.0 == id).map(|m| Member(&mut m.1))
    }

    /// All of its sessions.
    pub fn members(&mut self) -> impl Iterator<Item = (SessionId, Member<'_>)> {
        self.members.iter_mut().map(|m| (m.0, Member(&mut m.1)))
    }

    /// [`Session::clear_cancel`], for the batch's own.
    pub fn clear_cancel(&mut self) {
        unsafe { sys::aerie_batch_clear_cancel(self.raw) }
    }

    /// What other threads stop the batch's steps with.
    pub fn cancel_handle(&self) -> CancelHandle {
        self.cancel.clone()
    }
}

/// A session while it is in a batch: all that a session can do but step. (It is not a `&mut Session`, with which the
/// session could be swapped out of its batch.)
pub struct Member<'b>(&'b mut Session);

impl Deref for Member<'_> {
    type Target = Session;
    fn deref(&self) -> &Session {
        self.0
    }
}

impl Member<'_> {
    /// What the batch's last step gave this session: [`Session::result`].
    pub fn result(&mut self) -> Result<Step<'_>> {
        self.0.result()
    }

    /// [`Session::tokens`].
    pub fn tokens(&mut self) -> Result<&[i32]> {
        self.0.tokens()
    }

    /// [`Session::append`].
    pub fn append(&mut self, tokens: &[i32]) -> Result<()> {
        self.0.append(tokens)
    }

    /// [`Session::rewind`].
    pub fn rewind(&mut self, length: usize) -> Result<()> {
        self.0.rewind(length)
    }

    /// [`Session::fork`]; the fork is in no batch.
    pub fn fork(&mut self, stream: u32) -> Result<Session> {
        self.0.fork(stream)
    }

    /// [`Session::clear_cancel`].
    pub fn clear_cancel(&mut self) {
        self.0.clear_cancel()
    }

    /// [`Session::save`].
    pub fn save(&mut self) -> Result<Vec<u8>> {
        self.0.save()
    }

    /// [`Session::save_file`].
    pub fn save_file(&mut self, path: impl AsRef<Path>) -> Result<()> {
        self.0.save_file(path)
    }

    /// [`Session::set_stop_strings`].
    pub fn set_stop_strings(&mut self, strings: &[&str], tokenizer: &Tokenizer) -> Result<()> {
        self.0.set_stop_strings(strings, tokenizer)
    }

    /// [`Session::set_grammar`].
    pub fn set_grammar(&mut self, grammar: &Grammar) -> Result<()> {
        self.0.set_grammar(grammar)
    }

    /// [`Session::set_constraint`].
    pub fn set_constraint(&mut self, constraint: impl Constraint) -> Result<()> {
        self.0.set_constraint(constraint)
    }

    /// [`Session::clear_constraint`].
    pub fn clear_constraint(&mut self) -> Result<()> {
        self.0.clear_constraint()
    }

    /// [`Session::set_sampling`].
    pub fn set_sampling(&mut self, sampling: Sampling) -> Result<()> {
        self.0.set_sampling(sampling)
    }

    /// [`Session::set_tree`].
    pub fn set_tree(&mut self, tree: &Tree) -> Result<()> {
        self.0.set_tree(tree)
    }
}

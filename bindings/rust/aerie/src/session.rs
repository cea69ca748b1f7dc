//! One text, and its steps.
use std::path::Path;
use std::ptr::{null, null_mut};
use std::sync::{Arc, Mutex};

use aerie_sys as sys;

use crate::constraint::{failures_of, Constraint, Failures, Held};
use crate::error::{c_path, c_string, check, sized, slice, Code, Error, Result};
use crate::grammar::Grammar;
use crate::model::Model;
use crate::options::{Sampling, SessionOptions, Tree};
use crate::statistics::Statistics;
use crate::step::{Step, StepOptions};
use crate::text::Tokenizer;

/// One text: tokens in, tokens out. It may move to another thread, but one thread uses it at a time.
///
/// ```compile_fail
/// fn is_sync<T: Sync>() {}
/// is_sync::<aerie::Session>();
/// ```
pub struct Session {
    pub(crate) raw: *mut sys::aerie_session,
    cancel: CancelHandle,
    model: Model,                    // its runtime's hooks must outlive the session
    constraint: usize,               // the program's own, as `Failures` knows it; 0: none
    constraint_fails: Option<Error>, // in the last step, its own or its batch's
}

// Nothing in it belongs to a thread; that it is not Sync follows from the pointer.
unsafe impl Send for Session {}

impl Drop for Session {
    fn drop(&mut self) {
        self.cancel.forget();
        unsafe { sys::aerie_session_release(self.raw) }
    }
}

/// Stops a session's or a batch's step, or a profile's measurement, from any thread and for as long as one likes.
#[derive(Clone)]
pub struct CancelHandle(Arc<Mutex<Target>>);

pub(crate) enum Target {
    Session(*mut sys::aerie_session),
    Batch(*mut sys::aerie_batch),
    Profile(*mut sys::aerie_profile),
    Gone,
}

// The pointers are used under the lock and only until `forget`; cancelling is for any thread.
unsafe impl Send for Target {}

impl CancelHandle {
    pub(crate) fn new(target: Target) -> Self {
        CancelHandle(Arc::new(Mutex::new(target)))
    }

    /// The step (measurement) that is running, or the next one, returns [`Code::Cancelled`]. Nothing committed is lost; stepping
    /// again goes on. Nothing happens when the object is gone.
    pub fn cancel(&self) {
        match *self.lock() {
            Target::Session(raw) => unsafe { sys::aerie_session_cancel(raw) },
            Target::Batch(raw) => unsafe { sys::aerie_batch_cancel(raw) },
            Target::Profile(raw) => unsafe { sys::aerie_profile_cancel(raw) },
            Target::Gone => {}
        }
    }

    pub(crate) fn forget(&self) {
        *self.lock() = Target::Gone;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Target> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }
}

impl Model {
    /// A session: an empty text.
    pub fn session(&self, options: &SessionOptions) -> Result<Session> {
        let mut raw = null_mut();
        options.with_raw(|o| check(|e| unsafe { sys::aerie_session_create(self.raw(), o, &mut raw, e) }))?;
        Ok(Session::from_raw(raw, self.clone()))
    }

    /// A session whose text, keys and values, and drafter state, are those of [`Session::save`]; its settings are
    /// `options`, and stop strings are to be set again.
    pub fn restore(&self, options: &SessionOptions, saved: &[u8]) -> Result<Session> {
        let mut raw = null_mut();
        let (data, size) = (saved.as_ptr().cast(), saved.len());
        options.with_raw(|o| check(|e| unsafe { sys::aerie_session_restore(self.raw(), o, data, size, &mut raw, e) }))?;
        Ok(Session::from_raw(raw, self.clone()))
    }

    /// The same from the file of [`Session::save_file`].
    pub fn restore_file(&self, options: &SessionOptions, path: impl AsRef<Path>) -> Result<Session> {
        let path = c_path(path.as_ref())?;
        let mut raw = null_mut();
        options.with_raw(|o| check(|e| unsafe { sys::aerie_session_restore_file(self.raw(), o, path.as_ptr(), &mut raw, e) }))?;
        Ok(Session::from_raw(raw, self.clone()))
    }
}

impl Session {
    fn from_raw(raw: *mut sys::aerie_session, model: Model) -> Self {
        Session { raw, cancel: CancelHandle::new(Target::Session(raw)), model, constraint: 0, constraint_fails: None }
    }

    /// Append tokens of prompt, in any pieces. Also after generation, to go on.
    pub fn append(&mut self, tokens: &[i32]) -> Result<()> {
        check(|e| unsafe { sys::aerie_session_append(self.raw, tokens.as_ptr(), tokens.len(), e) })
    }

    /// One cycle: draft, verify, commit; or as much of it as the budget allows.
    pub fn step(&mut self, options: StepOptions) -> Result<Step<'_>> {
        let mut out = sized!(aerie_step_result {});
        let options = options.to_raw();
        let step = || check(|e| unsafe { sys::aerie_session_step(self.raw, &options, &mut out, e) });
        let (outcome, failures) = failures_of(step);
        self.heard(&failures);
        outcome.map_err(|e| self.explain(e))?;
        Ok(unsafe { Step::from_raw(&out) })
    }

    /// What the last step gave, the session's own or its batch's; before the first one, [`State::Pending`](crate::State::Pending).
    pub fn result(&mut self) -> Result<Step<'_>> {
        let mut out = sized!(aerie_step_result {});
        check(|e| unsafe { sys::aerie_session_result(self.raw, &mut out, e) }).map_err(|e| self.explain(e))?;
        Ok(unsafe { Step::from_raw(&out) })
    }

    /// What its constraint failed with in a step.
    pub(crate) fn heard(&mut self, failures: &Failures) {
        self.constraint_fails = failures.of(self.constraint);
    }

    /// The library has a code alone of what a constraint failed with.
    fn explain(&self, error: Error) -> Error {
        match &self.constraint_fails {
            Some(failure) if failure.code() == error.code() => failure.clone(),
            _ => error,
        }
    }

    /// All tokens of the text, the prompt's included.
    pub fn tokens(&mut self) -> Result<&[i32]> {
        let (mut tokens, mut n) = (null(), 0);
        check(|e| unsafe { sys::aerie_session_tokens(self.raw, &mut tokens, &mut n, e) })?;
        Ok(unsafe { slice(tokens, n) })
    }

    /// Keep the first `length` tokens. An unfinished cycle is discarded.
    pub fn rewind(&mut self, length: usize) -> Result<()> {
        check(|e| unsafe { sys::aerie_session_rewind(self.raw, length, e) })
    }

    /// From the next token on. An unfinished cycle is discarded.
    pub fn set_sampling(&mut self, sampling: Sampling) -> Result<()> {
        sampling.with_raw(|raw| check(|e| unsafe { sys::aerie_session_set_sampling(self.raw, raw, e) }))
    }

    /// From the next cycle on. An unfinished one is discarded.
    pub fn set_tree(&mut self, tree: &Tree) -> Result<()> {
        tree.with_raw(|raw| check(|e| unsafe { sys::aerie_session_set_tree(self.raw, &raw, e) }))
    }

    /// Texts that end the generation, as the tokenizer spells tokens. An empty list: none.
    pub fn set_stop_strings(&mut self, strings: &[&str], tokenizer: &Tokenizer) -> Result<()> {
        let strings = strings.iter().map(|s| c_string(*s)).collect::<Result<Vec<_>>>()?;
        let pointers: Vec<_> = strings.iter().map(|s| s.as_ptr()).collect();
        let n = i32::try_from(pointers.len()).map_err(|_| Error::new(Code::InvalidArgument, "too many stop strings"))?;
        let source = tokenizer.source()?;
        check(|e| unsafe { sys::aerie_session_set_stop_strings(self.raw, pointers.as_ptr(), n, &source, e) })
    }

    /// From the next token on the text has the form of this grammar, which begins with what is generated now, and after
    /// every append anew; a rewind leads it back. It takes the place of the one before, or of a constraint. The session holds
    /// it. An unfinished cycle is discarded.
    pub fn set_grammar(&mut self, grammar: &Grammar) -> Result<()> {
        let constraint = grammar.constraint()?;
        check(|e| unsafe { sys::aerie_session_set_constraint(self.raw, &constraint, e) })?;
        self.constraint = 0;
        Ok(())
    }

    /// The same, by code of the program's own.
    pub fn set_constraint(&mut self, constraint: impl Constraint) -> Result<()> {
        let held = Held::new(constraint);
        let raw = held.to_raw();
        let set = || check(|e| unsafe { sys::aerie_session_set_constraint(self.raw, &raw, e) });
        let (outcome, failures) = failures_of(set);
        outcome.map_err(|e| failures.of(held.key()).unwrap_or(e))?;
        self.constraint = held.key();
        Ok(())
    }

    /// Any token may come, whatever grammar or constraint was set. An unfinished cycle is discarded.
    pub fn clear_constraint(&mut self) -> Result<()> {
        check(|e| unsafe { sys::aerie_session_set_constraint(self.raw, null(), e) })?;
        self.constraint = 0;
        Ok(())
    }

    /// A second session with the same text, settings, drafters, stop strings and constraint; keys and values are shared until one
    /// of them writes. `stream` is its noise stream; 0: one of its own, so that equal seeds do not make equal twins. An
    /// unfinished cycle is discarded.
    pub fn fork(&mut self, stream: u32) -> Result<Session> {
        let options = sized!(aerie_fork_options { stream: stream });
        let mut raw = null_mut();
        let fork = || check(|e| unsafe { sys::aerie_session_fork(self.raw, &options, &mut raw, e) });
        let (outcome, failures) = failures_of(fork);
        outcome.map_err(|e| failures.of(self.constraint).unwrap_or(e))?;
        let mut twin = Session::from_raw(raw, self.model.clone());
        twin.constraint = self.constraint;
        Ok(twin)
    }

    /// The text with what has been computed for it, so that going on costs no reading of the prompt. An unfinished
    /// cycle is discarded.
    pub fn save(&mut self) -> Result<Vec<u8>> {
        let mut size = 0;
        check(|e| unsafe { sys::aerie_session_save(self.raw, null_mut(), 0, &mut size, e) })?;
        let mut saved = vec![0; size];
        check(|e| unsafe { sys::aerie_session_save(self.raw, saved.as_mut_ptr().cast(), saved.len(), &mut size, e) })?;
        saved.truncate(size);
        Ok(saved)
    }

    /// The same to a file, which appears whole or not at all.
    pub fn save_file(&mut self, path: impl AsRef<Path>) -> Result<()> {
        let path = c_path(path.as_ref())?;
        check(|e| unsafe { sys::aerie_session_save_file(self.raw, path.as_ptr(), e) })
    }

    /// What happened so far.
    pub fn statistics(&self) -> Result<Statistics> {
        let mut out = sized!(aerie_statistics {});
        check(|e| unsafe { sys::aerie_session_statistics(self.raw, &mut out, e) })?;
        Ok(Statistics::from_raw(&out))
    }

    /// Forget a cancel that no step has taken: one that was meant for a step which has ended by itself meanwhile, and
    /// would stop the next. Join first whoever cancels.
    pub fn clear_cancel(&mut self) {
        unsafe { sys::aerie_session_clear_cancel(self.raw) }
    }

    /// What other threads stop this session's steps with.
    pub fn cancel_handle(&self) -> CancelHandle {
        self.cancel.clone()
    }
}

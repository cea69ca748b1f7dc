//! What may come next, decided by the program.
use std::any::Any;
use std::cell::RefCell;
use std::ffi::c_void;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Arc, Mutex};

use aerie_sys as sys;

use crate::error::{sized, Code, Error, Result};

/// What the program's constraint fails with.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What may come next in a text, for [`Session::set_constraint`](crate::Session::set_constraint): a matcher of the
/// program's own, which stands behind some tokens. The session clones the one it is given before the first token, and its
/// clones to look ahead.
///
/// Called on the thread that steps, for one session never two at a time; dropped on any. What a function fails with, or a
/// panic in it, ends the step with [`Code::Plugin`](crate::Code::Plugin) and its message; nothing committed is lost. Where a
/// step looks ahead for drafts alone there are none then, and it goes on.
pub trait Constraint: Clone + Send + 'static {
    /// Say which tokens may come here. None: the text ends ([`Finish::Constraint`](crate::Finish::Constraint)). The
    /// model's end-of-text ids are for where the text may end.
    fn allowed(&mut self, tokens: &mut Allowed<'_>) -> Result<(), Failure>;

    /// `token` came next. `false`: it may not, which is asked of drafted tokens; this clone is dropped then.
    fn accept(&mut self, token: i32) -> Result<bool, Failure>;

    /// Tokens that very likely come here, one behind the other, since no other text is left; at most `most` are used.
    /// They are drafts: right ones save time, wrong ones cost it, and the text is the same. Where it panics there
    /// are none.
    fn forced(&mut self, most: usize) -> Vec<i32> {
        let _ = most;
        Vec::new()
    }
}

/// The tokens that may come: at first none. Those beyond the model's vocabulary are ignored.
pub struct Allowed<'a>(&'a mut [u32]);

impl Allowed<'_> {
    /// It may come.
    pub fn allow(&mut self, token: i32) {
        if let Some((word, bit)) = self.bit(token) {
            *word |= bit;
        }
    }

    /// All of them may, but those that are forbidden afterwards.
    pub fn allow_all(&mut self) {
        self.0.fill(u32::MAX);
    }

    /// It may not, after all.
    pub fn forbid(&mut self, token: i32) {
        if let Some((word, bit)) = self.bit(token) {
            *word &= !bit;
        }
    }

    /// Bit `t % 32` of word `t / 32` is token `t`.
    pub fn words(&mut self) -> &mut [u32] {
        self.0
    }

    fn bit(&mut self, token: i32) -> Option<(&mut u32, u32)> {
        let token = usize::try_from(token).ok()?;
        Some((self.0.get_mut(token / 32)?, 1 << (token % 32)))
    }
}

/// A constraint as the library holds it, which has its address.
pub(crate) struct Held<C>(Mutex<C>);

impl<C: Constraint> Held<C> {
    pub(crate) fn new(constraint: C) -> Arc<Self> {
        Arc::new(Held(Mutex::new(constraint)))
    }

    /// What `Failures` know it by.
    pub(crate) fn key(self: &Arc<Self>) -> usize {
        Arc::as_ptr(self) as usize
    }

    /// For the library, which holds it for itself.
    pub(crate) fn to_raw(self: &Arc<Self>) -> sys::aerie_constraint {
        sized!(aerie_constraint {
            user: Arc::as_ptr(self) as *mut c_void,
            begin: Some(begin::<C>),
            copy: Some(copy::<C>),
            allowed: Some(allowed::<C>),
            accept: Some(accept::<C>),
            destroy: Some(destroy::<C>),
            hold: Some(hold::<C>),
            release: Some(release::<C>),
            forced: Some(forced::<C>),
        })
    }
}

thread_local! {
    static FAILED: RefCell<Vec<(usize, Error)>> = RefCell::default();
}

/// What constraints failed with during a call on this thread.
pub(crate) struct Failures(Vec<(usize, Error)>);

impl Failures {
    /// The last one's is what the call, or the session in a batch, ended with.
    pub(crate) fn of(&self, key: usize) -> Option<Error> {
        self.0.iter().rev().find(|failure| failure.0 == key).map(|failure| failure.1.clone())
    }
}

/// Those of `call`, which may itself be made in a constraint.
pub(crate) fn failures_of(call: impl FnOnce() -> Result<()>) -> (Result<()>, Failures) {
    let outer = FAILED.with(|failed| failed.take());
    let outcome = call();
    (outcome, Failures(FAILED.with(|failed| failed.replace(outer))))
}

fn words_of(thrown: Box<dyn Any + Send>) -> String {
    let words = match (thrown.downcast_ref::<&str>(), thrown.downcast_ref::<String>()) {
        (Some(words), _) => format!("panicked: {words}"),
        (_, Some(words)) => format!("panicked: {words}"),
        _ => "panicked".to_owned(),
    };
    std::mem::forget(thrown); // dropping it may panic again
    words
}

/// The code of a function's outcome; what it failed with waits for whoever made the call.
fn answer(user: *mut c_void, function: &str, run: impl FnOnce() -> Result<bool, Failure>) -> i32 {
    // The failure is the program's too, and may panic when it is printed or dropped.
    let outcome = catch_unwind(AssertUnwindSafe(|| run().map_err(|failure| failure.to_string())));
    let words = match outcome {
        Ok(Ok(true)) => return sys::AERIE_OK,
        Ok(Ok(false)) => return sys::AERIE_E_MISMATCH,
        Ok(Err(words)) => words,
        Err(thrown) => words_of(thrown),
    };
    let error = Error::new(Code::Plugin, format!("constraint: {function}: {words}"));
    let _ = FAILED.try_with(|failed| failed.borrow_mut().push((user as usize, error)));
    sys::AERIE_E_PLUGIN
}

unsafe extern "C" fn begin<C: Constraint>(user: *mut c_void, state: *mut *mut c_void) -> i32 {
    answer(user, "clone", || {
        let held = &*(user as *const Held<C>);
        let first = held.0.lock().unwrap_or_else(|e| e.into_inner()).clone();
        *state = Box::into_raw(Box::new(first)).cast();
        Ok(true)
    })
}

unsafe extern "C" fn copy<C: Constraint>(user: *mut c_void, state: *const c_void, twin: *mut *mut c_void) -> i32 {
    answer(user, "clone", || {
        *twin = Box::into_raw(Box::new((*(state as *const C)).clone())).cast();
        Ok(true)
    })
}

unsafe extern "C" fn allowed<C: Constraint>(user: *mut c_void, state: *mut c_void, mask: *mut u32, n_words: usize) -> i32 {
    answer(user, "allowed", || {
        let words = if n_words == 0 { &mut [] } else { std::slice::from_raw_parts_mut(mask, n_words) };
        (*(state as *mut C)).allowed(&mut Allowed(words)).map(|_| true)
    })
}

unsafe extern "C" fn accept<C: Constraint>(user: *mut c_void, state: *mut c_void, token: i32) -> i32 {
    answer(user, "accept", || (*(state as *mut C)).accept(token))
}

unsafe extern "C" fn forced<C: Constraint>(
    _user: *mut c_void,
    state: *mut c_void,
    tokens: *mut i32,
    capacity: usize,
    n: *mut usize,
) -> i32 {
    match catch_unwind(AssertUnwindSafe(|| (*(state as *mut C)).forced(capacity))) {
        Ok(drafts) => {
            *n = drafts.len().min(capacity);
            std::ptr::copy_nonoverlapping(drafts.as_ptr(), tokens, *n);
            sys::AERIE_OK
        }
        Err(thrown) => {
            std::mem::forget(thrown); // dropping it may panic again
            sys::AERIE_E_PLUGIN
        }
    }
}

/// What panics when it is dropped does so in vain.
fn dropped<T>(value: T) {
    if let Err(thrown) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        std::mem::forget(thrown);
    }
}

unsafe extern "C" fn destroy<C: Constraint>(_user: *mut c_void, state: *mut c_void) {
    dropped(Box::from_raw(state as *mut C));
}

unsafe extern "C" fn hold<C: Constraint>(user: *mut c_void) {
    Arc::increment_strong_count(user as *const Held<C>);
}

unsafe extern "C" fn release<C: Constraint>(user: *mut c_void) {
    dropped(Arc::from_raw(user as *const Held<C>));
}

//! A session that another thread steps, polled as an async stream is.
use std::collections::VecDeque;
use std::mem::swap;
use std::panic::resume_unwind;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::error::{Code, Error, Result};
use crate::session::Session;
use crate::step::{State as StepState, StepOptions, Token};

/// Tokens waiting to be polled; the thread rests when there are as many.
const ROOM: usize = 256;
/// Time between two looks at whether anybody still wants tokens.
const SLICE: Duration = Duration::from_millis(5);

/// A session stepped by a thread of its own, for async code.
///
/// [`poll_next`](TokenStream::poll_next) has the shape of `futures::Stream::poll_next` and needs no executor of a
/// certain kind. With the `futures` crate it is a stream in one line:
///
/// ```ignore
/// let stream = futures::stream::poll_fn(move |cx| tokens.poll_next(cx));
/// ```
///
/// Dropping it, or taking the session back, stops the thread after at most a few milliseconds. Wakers are woken on that
/// thread, and one may poll, drop the stream or take the session back right there.
pub struct TokenStream {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    room: Condvar,
}

#[derive(Default)]
struct State {
    tokens: VecDeque<Token>,
    waker: Option<Waker>,
    end: Option<Result<()>>,  // no more tokens come; an error is handed out once
    closed: bool,             // nobody wants tokens any more
    session: Option<Session>, // none: in a step, so never while a waker is woken; or taken back
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn tell(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        change(&mut state);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Wait for room; the session for a step, or none when nobody wants tokens.
    fn wanted(&self) -> Option<Session> {
        let mut state = self.lock();
        while state.tokens.len() >= ROOM && !state.closed {
            state = self.room.wait(state).unwrap_or_else(|e| e.into_inner());
        }
        if state.closed {
            return None;
        }
        state.session.take()
    }
}

/// Whatever happens to the thread, the stream ends.
struct End<'a>(&'a Shared, Option<Result<()>>);

impl Drop for End<'_> {
    fn drop(&mut self) {
        let end = self.1.take().unwrap_or_else(|| Err(Error::new(Code::Internal, "the stepping thread panicked")));
        self.0.tell(|state| state.end = Some(end));
    }
}

fn work(mut left: usize, shared: &Shared) {
    let mut end = End(shared, None);
    while left > 0 {
        let mut session = match shared.wanted() {
            Some(session) => session,
            None => break,
        };
        let step = session.step(StepOptions { max_tokens: left, budget: Some(SLICE) });
        let step = step.map(|step| (step.tokens.to_vec(), matches!(step.state, StepState::Done(_))));
        shared.lock().session = Some(session);
        match step {
            Ok((tokens, done)) => {
                left = left.saturating_sub(tokens.len());
                if !tokens.is_empty() {
                    shared.tell(|state| state.tokens.extend(tokens));
                }
                if done {
                    break;
                }
            }
            Err(error) => {
                end.1 = Some(Err(error));
                return;
            }
        }
    }
    end.1 = Some(Ok(()));
}

impl Session {
    /// Step on a new thread, for async code. Ends after `max_tokens` or at the end of the text.
    pub fn into_stream(self, max_tokens: usize) -> TokenStream {
        let state = State { session: Some(self), ..Default::default() };
        let shared = Arc::new(Shared { state: Mutex::new(state), room: Condvar::new() });
        let theirs = shared.clone();
        let thread = thread::spawn(move || work(max_tokens, &theirs));
        TokenStream { shared, thread: Some(thread) }
    }
}

impl TokenStream {
    /// The next token; pending, and the task is woken when there is one; or none, when the stream has ended.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Token>>> {
        // Here, so that it and the one that it replaces are dropped after the lock: who knows what goes with them.
        let mut waker = Some(cx.waker().clone());
        let mut state = self.shared.lock();
        if let Some(token) = state.tokens.pop_front() {
            self.shared.room.notify_one();
            return Poll::Ready(Some(Ok(token)));
        }
        match state.end.take() {
            Some(end) => {
                state.end = Some(Ok(()));
                Poll::Ready(end.err().map(Err))
            }
            None => {
                swap(&mut state.waker, &mut waker);
                Poll::Pending
            }
        }
    }

    /// Stop, and have the session back. Tokens that were not polled are in it all the same. A panic of the thread, which
    /// is one of a waker, goes on here.
    ///
    /// # Panics
    /// In a hook of the session's own step, which has the session.
    pub fn into_session(mut self) -> Session {
        if let Err(thrown) = self.stop() {
            resume_unwind(thrown);
        }
        let session = self.shared.lock().session.take();
        session.expect("into_session in a hook of the session's own step")
    }

    fn stop(&mut self) -> thread::Result<()> {
        self.shared.lock().closed = true;
        self.shared.room.notify_one();
        match self.thread.take() {
            // A thread cannot wait for itself. This one is in a waker, and ends after it without touching the session.
            Some(thread) if thread.thread().id() == thread::current().id() => Ok(()),
            Some(thread) => thread.join(),
            None => Ok(()),
        }
    }
}

impl Drop for TokenStream {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}

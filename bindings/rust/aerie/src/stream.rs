//! A session that another thread steps, polled as an async stream is.
use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;
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
/// Dropping it, or taking the session back, stops the thread after at most a few milliseconds.
pub struct TokenStream {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Session>>,
}

struct Shared {
    state: Mutex<State>,
    room: Condvar,
}

#[derive(Default)]
struct State {
    tokens: VecDeque<Token>,
    waker: Option<Waker>,
    end: Option<Result<()>>, // no more tokens come; an error is handed out once
    closed: bool,            // nobody wants tokens any more
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

    /// Wait for room; false when nobody wants tokens.
    fn wanted(&self) -> bool {
        let mut state = self.lock();
        while state.tokens.len() >= ROOM && !state.closed {
            state = self.room.wait(state).unwrap_or_else(|e| e.into_inner());
        }
        !state.closed
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

fn work(session: &mut Session, mut left: usize, shared: &Shared) {
    let mut end = End(shared, None);
    while left > 0 && shared.wanted() {
        match session.step(StepOptions { max_tokens: left, budget: Some(SLICE) }) {
            Ok(step) => {
                left = left.saturating_sub(step.tokens.len());
                let done = matches!(step.state, StepState::Done(_));
                if !step.tokens.is_empty() {
                    shared.tell(|state| state.tokens.extend(step.tokens));
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
        let shared = Arc::new(Shared { state: Mutex::default(), room: Condvar::new() });
        let theirs = shared.clone();
        let mut session = self;
        let thread = std::thread::spawn(move || {
            work(&mut session, max_tokens, &theirs);
            session
        });
        TokenStream { shared, thread: Some(thread) }
    }
}

impl TokenStream {
    /// The next token; pending, and the task is woken when there is one; or none, when the stream has ended.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Token>>> {
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
                state.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Stop, and have the session back. Tokens that were not polled are in it all the same.
    pub fn into_session(mut self) -> Session {
        match self.stop() {
            Some(Ok(session)) => session,
            Some(Err(thrown)) => resume_unwind(thrown),
            None => unreachable!("the thread is taken here and in drop only"),
        }
    }

    fn stop(&mut self) -> Option<std::thread::Result<Session>> {
        self.shared.lock().closed = true;
        self.shared.room.notify_one();
        self.thread.take().map(JoinHandle::join)
    }
}

impl Drop for TokenStream {
    fn drop(&mut self) {
        self.stop();
    }
}

//! What comes out.
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, sync_channel, Receiver, SyncSender};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, ThreadId};
use std::time::Duration;

use crate::*;

#[test]
fn tokens_equal_c_api() {
    let model = demo();
    let ngram = || model.open_drafter(DrafterOptions::plugin("ngram")).unwrap();
    for (temperature, seed) in [(0.0, 5), (0.8, 5)] {
        let want = the_text(temperature, seed, 64);
        assert_eq!(generate(&mut prompted(&model, temperature, seed, None), 64), want);
        assert_eq!(generate(&mut prompted(&model, temperature, seed, Some(ngram())), 64), want);
        let mut session = prompted(&model, temperature, seed, Some(head(&model)));
        assert_eq!(generate(&mut session, 64), want);
        assert!(session.statistics().unwrap().accepted > 0);
    }
}

#[test]
fn two_sessions() {
    let model = demo();
    let say = |seed| generate(&mut prompted(&model, 0.8, seed, None), 64);
    thread::scope(|scope| {
        let (a, b) = (scope.spawn(|| say(5)), scope.spawn(|| say(6)));
        assert_eq!(a.join().unwrap(), the_text(0.8, 5, 64));
        assert_eq!(b.join().unwrap(), the_text(0.8, 6, 64));
    });
}

#[test]
fn batch() {
    let model = demo();
    let mut batch = model.batch(0).unwrap();
    let mut said = Vec::new();
    for seed in [5, 6, 7] {
        let session = prompted(&model, 0.8, seed, (seed == 6).then(|| head(&model)));
        said.push((seed, batch.add(session).map_err(|e| e.1).unwrap(), Vec::new()));
    }
    let mut left = None;
    while said.iter().any(|(seed, _, tokens)| tokens.len() < if *seed == 7 { 32 } else { 64 }) {
        let step = batch.step(StepOptions::default()).unwrap();
        assert_eq!(step.failed, 0);
        for (_, id, tokens) in &mut said {
            if let Some(mut member) = batch.get(*id) {
                tokens.extend(member.result().unwrap().tokens.iter().map(Token::id));
            }
        }
        if left.is_none() && said[2].2.len() >= 32 {
            left = Some(batch.remove(said[2].1).unwrap());
        }
    }
    let mut left = left.unwrap();
    let rest = generate(&mut left, 64 - said[2].2.len());
    said[2].2.extend(rest);
    for (seed, _, tokens) in said {
        assert_eq!(tokens[..64], the_text(0.8, seed, 64));
    }
}

#[test]
fn member() {
    let model = demo();
    let tokenizer = Tokenizer::of(&model).unwrap();
    let mut session = prompted(&model, 0.8, 5, None);
    let whole: String = tokenizer.decode(session.generate(64)).unwrap().map(Result::unwrap).collect();
    let middle = whole.char_indices().nth(whole.chars().count() / 2).unwrap().0;
    let stop: String = whole[middle..].chars().take(6).collect();
    let mut batch = model.batch(0).unwrap();
    let id = batch.add(prompted(&model, 0.8, 5, None)).map_err(|e| e.1).unwrap();
    let mut member = batch.get(id).unwrap();
    member.set_stop_strings(&[&stop], &tokenizer).unwrap();
    batch.step(StepOptions::default()).unwrap();
    let mut member = batch.get(id).unwrap();
    let n = member.tokens().unwrap().len() - PROMPT.len();
    let file = std::env::temp_dir().join(format!("aerie-rust-member-{}.session", std::process::id()));
    member.save_file(&file).unwrap();
    let restored = model.restore_file(&options(0.8, 5, None), &file);
    std::fs::remove_file(&file).unwrap();
    assert_eq!(generate(&mut restored.unwrap(), 64 - n), the_text(0.8, 5, 64)[n..]);
    let finish = loop {
        batch.step(StepOptions::default()).unwrap();
        if let State::Done(finish) = batch.get(id).unwrap().result().unwrap().state {
            break finish;
        }
    };
    assert_eq!(finish, Finish::StopString);
}

#[test]
fn batch_hands_back_what_it_cannot_take() {
    let model = demo();
    let other = runtime().open_model(model_path("demo-small.aerie"), ModelOptions::default()).unwrap();
    let mut batch = other.batch(0).unwrap();
    let (mut session, error) = batch.add(prompted(&model, 0.0, 0, None)).err().unwrap();
    assert_eq!(error.code(), Code::Mismatch);
    assert_eq!(generate(&mut session, 8).len(), 8);
}

#[test]
fn rewind() {
    let mut session = prompted(&demo(), 0.8, 5, None);
    let first = generate(&mut session, 32);
    session.rewind(PROMPT.len() + 22).unwrap();
    let rest = generate(&mut session, 32);
    assert_eq!([&first[..22], &rest].concat(), the_text(0.8, 5, 54));
    assert_eq!(session.tokens().unwrap().len(), PROMPT.len() + 54);
}

#[test]
fn statistics() {
    let model = demo();
    let mut session = prompted(&model, 0.8, 5, Some(head(&model)));
    generate(&mut session, 64);
    let s = session.statistics().unwrap();
    assert_eq!(s.emitted, 64);
    assert!(s.cycles <= s.emitted && s.cycles > 0);
    assert!(s.tau() > 1.0 && s.verify > Duration::ZERO);
}

#[test]
fn longest_budget() {
    let mut session = prompted(&demo(), 0.8, 5, None);
    let longest = StepOptions { budget: Some(Duration::MAX), ..Default::default() };
    assert_eq!(session.step(longest).unwrap().state, State::Tokens);
}

#[test]
fn cancel_in_prefill() {
    let model = demo();
    let prompt: Vec<i32> = (0..400).map(|i| i * 7 % 4000).collect();
    let say = |cancel: bool| {
        let mut session = model.session(&options(0.0, 0, None)).unwrap();
        session.append(&prompt).unwrap();
        if cancel {
            let slice = StepOptions { budget: Some(Duration::from_micros(1)), ..Default::default() };
            assert_eq!(session.step(slice).unwrap().state, State::Pending);
            let handle = session.cancel_handle();
            thread::spawn(move || handle.cancel()).join().unwrap();
            assert_eq!(session.step(StepOptions::default()).unwrap_err().code(), Code::Cancelled);
        }
        generate(&mut session, 16)
    };
    assert_eq!(say(true), say(false));
}

#[test]
fn cancel_while_stepping() {
    let mut session = prompted(&demo(), 0.8, 5, None);
    let handle = session.cancel_handle();
    let told = Arc::new(AtomicBool::new(false));
    let telling = told.clone();
    let other = thread::spawn(move || {
        thread::sleep(Duration::from_millis(20));
        handle.cancel();
        telling.store(true, Ordering::SeqCst);
    });
    let code = loop {
        if session.tokens().unwrap().len() > 400 {
            session.rewind(PROMPT.len()).unwrap();
        }
        let before = told.load(Ordering::SeqCst);
        match session.step(StepOptions::default()) {
            Ok(_) => assert!(!before, "a step that began after the cancel went through"),
            Err(error) => break error.code(),
        }
    };
    assert_eq!(code, Code::Cancelled);
    other.join().unwrap();
    let handle = session.cancel_handle();
    drop(session);
    handle.cancel(); // of nothing
}

#[test]
fn late_cancel() {
    let model = demo();
    let want = the_text(0.8, 5, 16);
    let mut session = prompted(&model, 0.8, 5, None);
    let one = StepOptions { max_tokens: 1, ..Default::default() };
    session.cancel_handle().cancel();
    session.clear_cancel();
    session.step(one).unwrap();
    session.cancel_handle().cancel();
    assert_eq!(session.step(one).unwrap_err().code(), Code::Cancelled);
    // The same of a batch.
    let mut batch = model.batch(0).unwrap();
    let id = batch.add(session).map_err(|e| e.1).unwrap();
    batch.cancel_handle().cancel();
    batch.clear_cancel();
    assert_eq!(batch.step(one).unwrap().failed, 0);
    batch.cancel_handle().cancel();
    assert_eq!(batch.step(one).unwrap_err().code(), Code::Cancelled);
    let mut session = batch.remove(id).unwrap();
    let said = session.tokens().unwrap()[PROMPT.len()..].to_vec();
    let rest = generate(&mut session, 16 - said.len());
    assert_eq!([said, rest].concat(), want);
}

/// Unparks the thread that polls.
struct Unpark(thread::Thread);

impl Wake for Unpark {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.unpark();
    }
}

pub fn next(stream: &mut TokenStream) -> Option<Result<Token>> {
    let waker = Waker::from(std::sync::Arc::new(Unpark(thread::current())));
    loop {
        match stream.poll_next(&mut Context::from_waker(&waker)) {
            Poll::Ready(token) => return token,
            Poll::Pending => thread::park(),
        }
    }
}

#[test]
fn stream() {
    let model = demo();
    let mut stream = prompted(&model, 0.8, 5, Some(head(&model))).into_stream(64);
    let mut said = Vec::new();
    while let Some(token) = next(&mut stream) {
        said.push(token.unwrap().id());
    }
    assert_eq!(said, the_text(0.8, 5, 64));
    assert!(next(&mut stream).is_none(), "it stays ended");
    // Left early: the session is usable.
    let mut stream = prompted(&model, 0.8, 5, None).into_stream(300);
    let first = next(&mut stream).unwrap().unwrap().id();
    let mut session = stream.into_session();
    let n = session.tokens().unwrap().len() - PROMPT.len();
    assert!(n >= 1 && session.tokens().unwrap()[PROMPT.len()] == first);
    let more = generate(&mut session, 4);
    assert_eq!(more, the_text(0.8, 5, n + 4)[n..]);
    // The same of the iterator.
    let mut session = prompted(&model, 0.8, 5, None);
    assert!(session.generate(10).take(3).all(|token| token.is_ok()));
    let n = session.tokens().unwrap().len() - PROMPT.len();
    let more = generate(&mut session, 4);
    assert_eq!(more, the_text(0.8, 5, n + 4)[n..]);
}

const LONG: Duration = Duration::from_secs(20);

/// Its first token takes a while, so that who polls at once finds none; when the machine is busy one may be there all the
/// same, so tests try again then.
fn slow_stream() -> TokenStream {
    let mut session = demo().session(&options(0.0, 0, None)).unwrap();
    session.append(&(0..400).map(|i| i * 7 % 4000).collect::<Vec<i32>>()).unwrap();
    session.into_stream(64)
}

/// An executor that polls where it is woken, so on the stepping thread.
struct Inline(Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>);

impl Wake for Inline {
    fn wake(self: Arc<Self>) {
        let waker = self.clone().into();
        let mut slot = self.0.lock().unwrap();
        if let Some(mut task) = slot.take() {
            if task.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
                *slot = Some(task);
            }
        }
    }
}

struct Next<'s>(&'s mut TokenStream);

impl Future for Next<'_> {
    type Output = Option<Result<Token>>;
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll_next(cx)
    }
}

/// Takes up to `n` tokens on the stepping thread: them, and what `then` makes of the stream there.
fn inline<T: Send + 'static>(n: usize, then: fn(TokenStream) -> T) -> (Vec<i32>, T) {
    loop {
        let mut stream = slow_stream();
        let (tell, told) = channel();
        let task = async move {
            let mut said = Vec::new();
            while said.len() < n {
                match Next(&mut stream).await {
                    Some(token) => said.push(token.unwrap().id()),
                    None => break,
                }
            }
            tell.send((thread::current().id(), said, then(stream))).unwrap();
        };
        Arc::new(Inline(Mutex::new(Some(Box::pin(task))))).wake();
        let (on, said, made) = told.recv_timeout(LONG).expect("the stepping thread lives");
        if on != thread::current().id() {
            return (said, made);
        }
    }
}

#[test]
fn stream_polled_where_it_is_woken() {
    let mut session = slow_stream().into_session();
    session.rewind(400).unwrap();
    let want = generate(&mut session, 80);
    for n in [usize::MAX, 48] {
        assert_eq!(inline(n, drop).0, want[..n.min(64)]);
        let (said, mut session) = inline(n, TokenStream::into_session);
        assert_eq!(said, want[..n.min(64)]);
        let all = session.tokens().unwrap()[400..].to_vec();
        assert!(said.len() <= all.len() && all.len() <= 64);
        let rest = generate(&mut session, 80 - all.len());
        assert_eq!([all, rest].concat(), want);
    }
}

/// A task that nobody has but who wakes it: it goes when it is woken, and the stream with it.
struct Forgotten(Mutex<Option<TokenStream>>, SyncSender<ThreadId>);

impl Wake for Forgotten {
    fn wake(self: Arc<Self>) {}
}

impl Drop for Forgotten {
    fn drop(&mut self) {
        drop(self.0.lock().unwrap().take());
        self.1.send(thread::current().id()).unwrap();
    }
}

#[test]
fn stream_dropped_by_its_waker() {
    loop {
        let (tell, told) = sync_channel(1);
        let task = Arc::new(Forgotten(Mutex::new(Some(slow_stream())), tell));
        let waker = Waker::from(task.clone());
        let _ = task.0.lock().unwrap().as_mut().unwrap().poll_next(&mut Context::from_waker(&waker));
        drop((waker, task));
        if told.recv_timeout(LONG).expect("the stepping thread lives") != thread::current().id() {
            return;
        }
    }
}

/// A waker that waits, when it is dropped, for the stepping thread to wake another one.
struct Old(Mutex<Receiver<()>>, SyncSender<bool>);

impl Wake for Old {
    fn wake(self: Arc<Self>) {}
}

impl Drop for Old {
    fn drop(&mut self) {
        let _ = self.1.send(self.0.lock().unwrap().recv_timeout(LONG / 4).is_ok());
    }
}

struct New(SyncSender<()>);

impl Wake for New {
    fn wake(self: Arc<Self>) {
        let _ = self.0.send(());
    }
}

#[test]
fn old_waker_dropped_without_the_lock() {
    loop {
        let mut stream = slow_stream();
        let (wake, woken) = sync_channel(1);
        let (say, said) = sync_channel(1);
        let old = Waker::from(Arc::new(Old(Mutex::new(woken), say)));
        let new = Waker::from(Arc::new(New(wake)));
        let first = stream.poll_next(&mut Context::from_waker(&old));
        drop(old);
        if first.is_pending() && stream.poll_next(&mut Context::from_waker(&new)).is_pending() {
            assert!(said.recv().unwrap(), "the stepping thread waited for the lock");
            return;
        }
    }
}

#[test]
fn save_restore() {
    let model = demo();
    let want = the_text(0.8, 5, 64);
    let drafted = options(0.8, 5, Some(head(&model)));
    let mut session = prompted(&model, 0.8, 5, drafted.drafter.clone());
    assert_eq!(generate(&mut session, 20), want[..20]);
    let mut saved = session.save().unwrap();
    let file = std::env::temp_dir().join(format!("aerie-rust-{}.session", std::process::id()));
    session.save_file(&file).unwrap();
    drop(session);
    assert_eq!(generate(&mut model.restore(&drafted, &saved).unwrap(), 44), want[20..]);
    let restored = model.restore_file(&options(0.8, 5, None), &file);
    std::fs::remove_file(&file).unwrap();
    assert_eq!(generate(&mut restored.unwrap(), 44), want[20..]);
    let middle = saved.len() / 2;
    saved[middle] ^= 1;
    assert_eq!(model.restore(&drafted, &saved).err().unwrap().code(), Code::BadFormat);
    assert_eq!(model.restore(&drafted, &[]).err().unwrap().code(), Code::BadFormat);
}

#[test]
fn evaluate() {
    let model = demo();
    let info = model.info().unwrap();
    assert!(!info.fast_prefill);
    let (rows, vocab) = (PROMPT.len(), info.vocab_size as usize);
    let mut logits = vec![0.0; rows * vocab];
    let mut features = vec![0.0; rows * 2 * info.hidden_size as usize];
    let wanted = Evaluation { taps: &[2, -1], features: Some(&mut features), logits: Some(&mut logits), progress: None };
    model.evaluate(&PROMPT, wanted).unwrap();
    let last = &logits[(rows - 1) * vocab..];
    let best = (0..vocab).max_by(|a, b| last[*a].total_cmp(&last[*b])).unwrap();
    assert_eq!(best as i32, the_text(0.0, 0, 1)[0]);
    assert!(features.iter().filter(|f| **f != 0.0).count() > features.len() / 2);
    let short = Evaluation { logits: Some(&mut logits[1..]), ..Default::default() };
    assert_eq!(model.evaluate(&PROMPT, short).unwrap_err().code(), Code::InvalidArgument);
}

#[test]
fn fork() {
    let model = demo();
    let want = the_text(0.0, 5, 64);
    let mut session = prompted(&model, 0.0, 5, Some(head(&model)));
    assert_eq!(generate(&mut session, 20), want[..20]);
    let mut other = session.fork(0).unwrap();
    assert_eq!(generate(&mut session, 44), want[20..]);
    drop(session);
    assert_eq!(generate(&mut other, 44), want[20..]);
    // At a temperature: its own dice.
    let mut session = prompted(&model, 0.8, 5, None);
    generate(&mut session, 8);
    let (mut a, mut b) = (session.fork(0).unwrap(), session.fork(9).unwrap());
    let (a, b, first) = (generate(&mut a, 40), generate(&mut b, 40), generate(&mut session, 40));
    assert!(a != first && b != first && a != b);
    assert_eq!(first, the_text(0.8, 5, 48)[8..]);
}

#[test]
fn kept_prefixes() {
    let model = runtime().open_model(model_path("demo.aerie"), ModelOptions::default()).unwrap();
    let prompt: Vec<i32> = (0..300).map(|i| i * 7 % 4000).collect();
    let say = || {
        let mut session = model.session(&options(0.0, 0, None)).unwrap();
        session.append(&prompt).unwrap();
        (generate(&mut session, 16), session.statistics().unwrap().reused_tokens)
    };
    let (first, second) = (say(), say());
    assert_eq!(first.0, second.0);
    assert!(first.1 == 0 && second.1 >= 256, "{} and {} reused", first.1, second.1);
}

#[test]
fn kv_full() {
    let idle = Arc::new(Mutex::new(None::<Session>));
    let theirs = idle.clone();
    let kv_full: KvFull = Box::new(move |wanted| wanted > 0 && theirs.lock().unwrap().take().is_some());
    let options_of_model =
        ModelOptions { kv_positions: 512, forget_prefixes: true, kv_full: Some(kv_full), ..Default::default() };
    let model = runtime().open_model(model_path("demo.aerie"), options_of_model).unwrap();
    let long: Vec<i32> = (0..300).map(|i| i * 7 % 4000).collect();
    let session = || {
        let mut session = model.session(&options(0.0, 0, None)).unwrap();
        session.append(&long).unwrap();
        session
    };
    let mut first = session();
    let text = generate(&mut first, 8);
    *idle.lock().unwrap() = Some(first);
    let mut second = session();
    assert_eq!(generate(&mut second, 8), text, "the idle one made room");
    assert!(idle.lock().unwrap().is_none());
    let failed = session().step(StepOptions::default()).map(|_| ()).unwrap_err();
    assert_eq!(failed.code(), Code::Limit);
    assert_eq!(generate(&mut second, 8).len(), 8, "nothing was lost");
}

#[test]
fn several_drafters() {
    let model = demo();
    let ngram = model.open_drafter(DrafterOptions::plugin("ngram")).unwrap();
    let mut session = model
        .session(&SessionOptions {
            tree: Tree::policy(Policy::Auto),
            more_drafters: vec![ngram],
            ..options(0.8, 5, Some(head(&model)))
        })
        .unwrap();
    session.append(&PROMPT).unwrap();
    assert_eq!(generate(&mut session, 64), the_text(0.8, 5, 64));
    let statistics = session.statistics().unwrap();
    assert_eq!(statistics.chosen_cycles.iter().sum::<u64>() + statistics.plain_cycles, statistics.cycles);
}

//! Calls from the library back into the program.
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

use crate::*;

type Heard = Arc<Mutex<Vec<(ThreadId, LogLevel, String)>>>;

fn listening(heard: &Heard) -> Runtime {
    let heard = heard.clone();
    let log: LogHook = Box::new(move |level, message| {
        heard.lock().unwrap().push((thread::current().id(), level, message.to_owned()));
    });
    Runtime::with_options(RuntimeOptions { threads: 1, log: Some(log), ..Default::default() }).unwrap()
}

#[test]
fn foreign_thread_callback() {
    let heard = Heard::default();
    let runtime = listening(&heard);
    runtime.load_plugin(test_plugin("foreign_log")).unwrap();
    let model = runtime.open_model(model_path("demo.aerie"), ModelOptions::default()).unwrap();
    drop(runtime);
    model.open_drafter(DrafterOptions::plugin("foreign_log")).unwrap();
    let heard = heard.lock().unwrap();
    let (thread, level, _) = heard.iter().find(|h| h.2.contains("from a foreign thread")).expect("the hook heard it");
    assert_ne!(*thread, thread::current().id());
    assert_eq!(*level, LogLevel::Info);
}

#[test]
fn injected_failure() {
    let heard = Heard::default();
    let runtime = listening(&heard);
    runtime.load_plugin(test_plugin("hostile")).unwrap();
    let model = runtime.open_model(model_path("demo.aerie"), ModelOptions::default()).unwrap();
    let thrower = model.open_drafter(DrafterOptions::plugin("throw")).unwrap();
    let mut session = prompted(&model, 0.8, 5, Some(thrower));
    assert_eq!(generate(&mut session, 64), the_text(0.8, 5, 64));
    let s = session.statistics().unwrap();
    assert!(s.quarantined);
    assert_eq!(s.drafter_failures, 3);
    assert!(heard.lock().unwrap().iter().any(|h| h.2.contains("quarantined")));
}

#[test]
fn callback_that_fails() {
    let log: LogHook = Box::new(|_, _| panic!("log"));
    let options = RuntimeOptions { threads: 1, log: Some(log), ..Default::default() };
    let runtime = Runtime::with_options(options).unwrap();
    runtime.load_plugin(test_plugin("foreign_log")).unwrap();
    let thrown = catch_unwind(AssertUnwindSafe(|| {
        let progress: Progress<'_> = &mut |_, _| panic!("progress");
        let options = ModelOptions { progress: Some(progress), ..Default::default() };
        runtime.open_model(model_path("demo.aerie"), options).map(|_| ())
    }));
    assert_eq!(*thrown.unwrap_err().downcast::<&str>().unwrap(), "progress");
    let model = runtime.open_model(model_path("demo.aerie"), ModelOptions::default()).unwrap();
    let drafter = model.open_drafter(DrafterOptions::plugin("foreign_log")).unwrap();
    assert_eq!(generate(&mut prompted(&model, 0.8, 5, Some(drafter)), 16), the_text(0.8, 5, 16));
}

#[test]
fn load_progress() {
    let mut calls = Vec::new();
    let progress: Progress<'_> = &mut |done, total| {
        calls.push((done, total));
        true
    };
    runtime().open_model(model_path("demo.aerie"), ModelOptions { progress: Some(progress), ..Default::default() }).unwrap();
    assert!(!calls.is_empty() && calls.windows(2).all(|w| w[0].0 <= w[1].0), "{calls:?}");
    let last = calls[calls.len() - 1];
    assert!(last.0 == last.1 && last.1 > 0, "{last:?}");
}

#[test]
fn drafter_progress() {
    let model = demo();
    let options = DrafterOptions::package(model_path("demo-eagle.aerie"));
    let mut calls = Vec::new();
    let progress: Progress<'_> = &mut |done, total| {
        calls.push((done, total));
        true
    };
    let drafter = model.open_drafter(DrafterOptions { progress: Some(progress), ..options }).unwrap();
    assert!(calls.windows(2).all(|w| w[0].0 <= w[1].0), "{calls:?}");
    let last = calls[calls.len() - 1];
    assert!(last.0 == last.1 && last.1 > 0, "{last:?}");
    let progress: Progress<'_> = &mut |_, _| false;
    let options = DrafterOptions { progress: Some(progress), ..DrafterOptions::package(model_path("demo-eagle.aerie")) };
    assert_eq!(model.open_drafter(options).err().unwrap().code(), Code::Cancelled);
    assert_eq!(generate(&mut prompted(&model, 0.0, 5, Some(drafter)), 16), the_text(0.0, 5, 16));
}

#[test]
fn load_cancel() {
    let runtime = runtime();
    let progress: Progress<'_> = &mut |_, _| false;
    let options = ModelOptions { progress: Some(progress), ..Default::default() };
    assert_eq!(runtime.open_model(model_path("demo.aerie"), options).err().unwrap().code(), Code::Cancelled);
    let model = runtime.open_model(model_path("demo.aerie"), ModelOptions::default()).unwrap();
    assert_eq!(generate(&mut prompted(&model, 0.0, 0, None), 8), the_text(0.0, 0, 8));
}

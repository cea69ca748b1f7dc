//! Objects in any order.
use crate::*;

#[test]
fn parent_closed_first() {
    let runtime = runtime();
    let model = runtime.open_model(model_path("demo.aerie"), ModelOptions::default()).unwrap();
    let drafter = head(&model);
    let mut session = prompted(&model, 0.8, 5, Some(drafter.clone()));
    drop((runtime, model, drafter));
    assert_eq!(generate(&mut session, 64), the_text(0.8, 5, 64));
}

/// Rust's owners close once; a handle that outlives its object is what could come twice.
#[test]
fn double_close() {
    let model = demo();
    let mut batch = model.batch(0).unwrap();
    let id = batch.add(prompted(&model, 0.0, 0, None)).map_err(|e| e.1).unwrap();
    let cancels = [batch.cancel_handle(), batch.get(id).unwrap().cancel_handle()];
    drop(batch.remove(id).unwrap());
    assert_eq!(batch.remove(id).err().unwrap().code(), Code::NotFound);
    assert!(batch.get(id).is_none());
    drop(batch);
    cancels.iter().for_each(CancelHandle::cancel);
}

#[test]
fn batch_dropped_with_its_sessions() {
    let model = demo();
    let mut batch = model.batch(4).unwrap();
    let id = batch.add(prompted(&model, 0.8, 5, None)).map_err(|e| e.1).unwrap();
    while batch.step(StepOptions::default()).unwrap().tokens == 0 {}
    assert_eq!(batch.get(id).unwrap().result().unwrap().tokens[0].id(), the_text(0.8, 5, 1)[0]);
    assert_eq!(batch.members().count(), 1);
    drop(batch);
}

#[test]
fn handles_go_between_threads() {
    fn send<T: Send>() {}
    fn send_and_sync<T: Send + Sync>() {}
    send_and_sync::<Runtime>();
    send_and_sync::<Model>();
    send_and_sync::<Drafter>();
    send_and_sync::<Tokenizer>();
    send_and_sync::<Grammar>();
    send_and_sync::<CancelHandle>();
    send_and_sync::<TokenStream>();
    send_and_sync::<Error>();
    send::<Session>();
    send::<Batch>();
    send::<Decoder>();
}

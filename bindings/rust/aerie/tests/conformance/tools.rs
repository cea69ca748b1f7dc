//! Beyond the list: packages and cost tables.
use std::cell::RefCell;

use crate::*;

fn scratch(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("aerie-rust-{}-{name}", std::process::id()))
}

#[test]
fn convert_and_inspect() {
    let int8 = scratch("int8.aerie");
    let warnings = RefCell::new(Vec::new());
    let warning = |words: &str| warnings.borrow_mut().push(words.to_owned());
    let quantise = |source: &std::path::Path, output: &std::path::Path, weights| {
        convert(source, output, ConvertOptions { weights, warning: Some(&warning), ..Default::default() })
    };
    quantise(&model_path("demo.aerie"), &int8, Weights::Int8).unwrap();
    let fingerprint = |path| inspect(path, true).unwrap().lines().find(|l| l.contains("\"fingerprint\"")).unwrap().to_owned();
    assert_eq!(fingerprint(int8.clone()), fingerprint(model_path("demo.aerie")));
    assert!(inspect(&int8, false).unwrap().starts_with("file: "));
    assert!(warnings.borrow().is_empty());
    let int4 = scratch("int4.aerie");
    quantise(&int8, &int4, Weights::Int4).unwrap();
    assert!(warnings.borrow()[0].contains("quantised before"));
    std::fs::remove_file(&int4).unwrap();
    let stored = scratch("stored.aerie");
    quantise(&int8, &stored, Weights::Stored).unwrap();
    assert_eq!(std::fs::read(&stored).unwrap(), std::fs::read(&int8).unwrap());
    quantise(&model_path("demo.aerie"), &stored, Weights::Q4_1).unwrap();
    assert!(inspect(&stored, true).unwrap().contains("\"q4_1\""));
    std::fs::remove_file(&stored).unwrap();
    let progress: Progress<'_> = &mut |_, _| false;
    let cancelled = convert(&int8, &int4, ConvertOptions { progress: Some(progress), ..Default::default() });
    assert_eq!(cancelled.unwrap_err().code(), Code::Cancelled);
    assert!(!int4.exists());
    std::fs::remove_file(int8).unwrap();
}

#[test]
fn profile() {
    let model = runtime().open_model(model_path("demo.aerie"), ModelOptions::default()).unwrap();
    let drafters = [head(&model)];
    let mut points = 0;
    let progress: Progress<'_> = &mut |done, total| {
        points = done;
        done <= total
    };
    let options =
        ProfileOptions { quick: true, contexts: &[40], drafters: &drafters, progress: Some(progress), ..Default::default() };
    let mut profile = Profile::measure(&model, options).unwrap();
    assert!(points > 0);
    assert!(profile.json().unwrap().contains("\"target\""));
    assert!(profile.target_ms(1, 40, 64).unwrap() >= profile.target_ms(1, 40, 1).unwrap());
    let file = scratch("costs");
    profile.save(&file).unwrap();
    let loaded = Profile::load(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    loaded.attach(&model).unwrap();
    loaded.attach_drafter(&drafters[0]).unwrap();
    let auto = SessionOptions { tree: Tree::policy(Policy::Auto), ..options_with(&drafters[0]) };
    let mut session = model.session(&auto).unwrap();
    session.append(&PROMPT).unwrap();
    assert_eq!(generate(&mut session, 32), the_text(0.8, 5, 32));
    let other = runtime().open_model(model_path("demo-small.aerie"), ModelOptions::default()).unwrap();
    assert_eq!(loaded.attach(&other).unwrap_err().code(), Code::Mismatch);
}

#[test]
fn profile_cancel() {
    let model = demo();
    let mut profile = Profile::new().unwrap();
    let options = || ProfileOptions { quick: true, contexts: &[40], ..Default::default() };
    let cancel = profile.cancel_handle();
    cancel.cancel();
    assert_eq!(profile.remeasure(&model, options()).unwrap_err().code(), Code::Cancelled);
    cancel.cancel();
    profile.clear_cancel();
    profile.remeasure(&model, options()).unwrap();
    drop(profile);
    cancel.cancel(); // of nothing
}

fn options_with(drafter: &Drafter) -> SessionOptions {
    options(0.8, 5, Some(drafter.clone()))
}

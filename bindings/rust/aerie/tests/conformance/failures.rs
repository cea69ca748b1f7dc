//! What cannot be done, and how it is said.
use std::fs;

use crate::*;

#[test]
fn errors() {
    let runtime = runtime();
    let open = |path: &std::path::Path| runtime.open_model(path, ModelOptions::default()).err().unwrap();
    let e = open("/no/such/model.aerie".as_ref());
    assert_eq!(e.code(), Code::NotFound);
    assert!(e.to_string().contains("/no/such/model.aerie"));
    let cut = std::env::temp_dir().join(format!("aerie-rust-cut-{}.aerie", std::process::id()));
    fs::write(&cut, &fs::read(model_path("demo.aerie")).unwrap()[..100_000]).unwrap();
    let e = open(&cut);
    fs::remove_file(&cut).unwrap();
    assert_eq!(e.code(), Code::BadFormat);
    assert!(e.message().contains("aerie-rust-cut"), "{e}");
    let e = open(&model_path("demo-eagle.aerie"));
    assert_eq!(e.code(), Code::Mismatch);
    assert!(e.message().contains("demo-eagle.aerie"), "{e}");
    let e: Box<dyn std::error::Error + Send + Sync> = e.into();
    assert!(e.source().is_none());
    assert_eq!(runtime.open_model("a\0b", ModelOptions::default()).err().unwrap().code(), Code::InvalidArgument);
}

#[test]
fn bad_plugin() {
    let runtime = runtime();
    let refused = |path: &std::path::Path, words: &str| {
        let e = runtime.load_plugin(path).unwrap_err();
        assert!(e.message().contains(words), "{}: {e}", path.display());
    };
    let text = std::env::temp_dir().join(format!("aerie-rust-{}.so", std::process::id()));
    fs::write(&text, "not a library").unwrap();
    refused("hostile.so".as_ref(), "absolute");
    refused("/no/such/plugin.so".as_ref(), "/no/such/plugin.so");
    refused(&text, "cannot be loaded");
    refused(&test_plugin("no_entry"), "aerie_drafter_plugin_entry");
    refused(&test_plugin("wrong_major"), "drafter ABI");
    refused(&test_plugin("too_new"), "needs drafter ABI");
    fs::remove_file(&text).unwrap();
    runtime.load_plugin(test_plugin("hostile")).unwrap();
    assert!(runtime.plugins().unwrap().iter().any(|p| p.id == "open_fails"));
    let model = runtime.open_model(model_path("demo.aerie"), ModelOptions::default()).unwrap();
    let e = model.open_drafter(DrafterOptions::plugin("open_fails")).err().unwrap();
    assert!(e.message().contains("weights: not today"), "{e}");
    assert_eq!(generate(&mut prompted(&model, 0.0, 0, Some(head(&model))), 8), the_text(0.0, 0, 8));
}

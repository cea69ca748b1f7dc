//! The cases of bindings/conformance.md. `AERIE_DIR` is a build tree of the `tests` preset.
mod callbacks;
mod chat;
mod constraints;
mod failures;
mod hooks;
mod layout;
mod lifetimes;
mod sessions;
mod text;
mod tools;

use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;

use aerie::*;

pub const PROMPT: [i32; 10] = [260, 513, 1021, 88, 300, 47, 911, 1500, 12, 345];

pub fn build() -> PathBuf {
    std::env::var_os("AERIE_DIR").expect("AERIE_DIR: a build tree of the tests preset").into()
}

pub fn model_path(name: &str) -> PathBuf {
    let models = std::env::var_os("AERIE_MODELS").map(PathBuf::from);
    models.unwrap_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/../../../samples/models").into()).join(name)
}

pub fn test_plugin(name: &str) -> PathBuf {
    build().join("lib/test-plugins").join(format!("{name}.so"))
}

pub fn runtime() -> Runtime {
    let runtime = Runtime::with_options(RuntimeOptions { threads: 2, ..Default::default() }).unwrap();
    runtime.load_plugin_directory(build().join("lib/aerie/drafters")).unwrap();
    runtime
}

/// The demo model, opened once.
pub fn demo() -> Model {
    static MODEL: Mutex<Option<Model>> = Mutex::new(None);
    let mut model = MODEL.lock().unwrap();
    model.get_or_insert_with(|| runtime().open_model(model_path("demo.aerie"), ModelOptions::default()).unwrap()).clone()
}

pub fn head(model: &Model) -> Drafter {
    model.open_drafter(DrafterOptions::package(model_path("demo-eagle.aerie"))).unwrap()
}

/// A session after the prompt.
pub fn prompted(model: &Model, temperature: f32, seed: u64, drafter: Option<Drafter>) -> Session {
    let mut session = model.session(&options(temperature, seed, drafter)).unwrap();
    session.append(&PROMPT).unwrap();
    session
}

pub fn options(temperature: f32, seed: u64, drafter: Option<Drafter>) -> SessionOptions {
    SessionOptions {
        sampling: Sampling::new(temperature, seed),
        tree: Tree::policy(if drafter.is_some() { Policy::Chain } else { Policy::Default }),
        drafter,
        ignore_eos: true,
        ..Default::default()
    }
}

pub fn generate(session: &mut Session, n: usize) -> Vec<i32> {
    session.generate(n).map(|token| token.unwrap().id()).collect()
}

/// What the C API says.
pub fn the_text(temperature: f32, seed: u64, n: usize) -> Vec<i32> {
    let out = Command::new(build().join("bin/conformance_tokens"))
        .arg(model_path("demo.aerie"))
        .args([temperature.to_string(), seed.to_string(), n.to_string()])
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let tokens: Vec<i32> = String::from_utf8(out.stdout).unwrap().split_whitespace().map(|t| t.parse().unwrap()).collect();
    assert_eq!(tokens.len(), n);
    tokens
}

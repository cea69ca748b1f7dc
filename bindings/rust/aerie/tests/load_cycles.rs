//! Alone in its process, whose memory it watches.
use aerie::*;

fn resident_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn load_cycles() {
    let models = std::env::var("AERIE_MODELS").unwrap_or(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../samples/models").into());
    let mut early = 0;
    for cycle in 1..=1000 {
        let runtime = Runtime::with_options(RuntimeOptions { threads: 2, ..Default::default() }).unwrap();
        let model = runtime.open_model(format!("{models}/demo.aerie"), ModelOptions::default()).unwrap();
        let mut session = model.session(&SessionOptions::default()).unwrap();
        session.append(&[260, 513]).unwrap();
        assert!(session.step(StepOptions::default()).unwrap().tokens.len() == 1);
        if cycle == 200 {
            early = resident_kb();
        }
    }
    let late = resident_kb();
    assert!(late < early + 4096, "{early} kB after 200 loads, {late} kB after 1000");
}

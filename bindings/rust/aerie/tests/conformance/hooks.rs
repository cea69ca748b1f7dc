//! The program's own allocator and job system.
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicUsize, Ordering::SeqCst};
use std::sync::Arc;
use std::thread;

use crate::*;

/// Gives so many pieces, then none, and knows what is out.
#[derive(Default)]
struct Counts {
    gives: AtomicIsize,
    panics: AtomicBool,
    asked: AtomicUsize,
    pieces: AtomicIsize,
    bytes: AtomicIsize,
}

struct Counting(Arc<Counts>);

unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.0.asked.fetch_add(1, SeqCst);
        if self.0.gives.fetch_sub(1, SeqCst) <= 0 {
            assert!(!self.0.panics.load(SeqCst), "no memory");
            return std::ptr::null_mut();
        }
        self.0.pieces.fetch_add(1, SeqCst);
        self.0.bytes.fetch_add(layout.size() as isize, SeqCst);
        System.alloc(layout)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        self.0.pieces.fetch_sub(1, SeqCst);
        self.0.bytes.fetch_sub(layout.size() as isize, SeqCst);
        System.dealloc(memory, layout)
    }
}

fn said_with(counts: &Arc<Counts>) -> Result<Vec<i32>> {
    let allocator: Allocator = Box::new(Counting(counts.clone()));
    let runtime = Runtime::with_options(RuntimeOptions { threads: 2, allocator: Some(allocator), ..Default::default() })?;
    let model = runtime.open_model(model_path("demo.aerie"), ModelOptions::default())?;
    let mut session = model.session(&options(0.8, 5, None))?;
    session.append(&PROMPT)?;
    session.generate(16).map(|token| token.map(|t| t.id())).collect()
}

#[test]
fn allocator_that_fails() {
    let counts = Arc::new(Counts { gives: isize::MAX.into(), ..Default::default() });
    assert_eq!(said_with(&counts).unwrap(), the_text(0.8, 5, 16));
    let asked = counts.asked.load(SeqCst);
    assert!(asked > 0);
    assert_eq!((counts.pieces.load(SeqCst), counts.bytes.load(SeqCst)), (0, 0), "all of it comes back, as large as it went");
    for panics in [false, true] {
        for gives in 0..asked as isize {
            let counts = Arc::new(Counts { gives: gives.into(), panics: panics.into(), ..Default::default() });
            assert_eq!(said_with(&counts).unwrap_err().code(), Code::OutOfMemory, "after {gives}");
            assert_eq!(counts.pieces.load(SeqCst), 0);
        }
    }
    let system: Allocator = Box::new(System);
    Runtime::with_options(RuntimeOptions { allocator: Some(system), ..Default::default() }).unwrap();
}

#[test]
fn own_allocator_and_jobs() {
    let turns = Arc::new(AtomicUsize::new(0));
    let count = turns.clone();
    let jobs: JobSystem = Box::new(move |n, job| match count.fetch_add(1, SeqCst) % 8 {
        0 => thread::scope(|scope| {
            let half = scope.spawn(|| (0..n / 2).for_each(|_| job()));
            (n / 2..n).for_each(|_| job());
            half.join().unwrap();
        }),
        1 => (0..n + 3).for_each(|_| job()), // too often
        2 => {}                              // never
        3 => {
            job();
            panic!("half way")
        }
        _ => (0..n).for_each(|_| job()),
    });
    let counts = Arc::new(Counts { gives: isize::MAX.into(), ..Default::default() });
    let allocator: Allocator = Box::new(Counting(counts.clone()));
    let options_of_runtime = RuntimeOptions { threads: 2, allocator: Some(allocator), jobs: Some(jobs), ..Default::default() };
    let runtime = Runtime::with_options(options_of_runtime).unwrap();
    runtime.load_installed_plugins().unwrap();
    let model = runtime.open_model(model_path("demo.aerie"), ModelOptions::default()).unwrap();
    drop(runtime);
    let mut session = prompted(&model, 0.8, 5, Some(head(&model)));
    drop(model);
    assert_eq!(generate(&mut session, 32), the_text(0.8, 5, 32));
    assert!(counts.pieces.load(SeqCst) > 0);
    drop(session);
    assert_eq!(counts.pieces.load(SeqCst), 0, "all of it comes back");
    assert!(turns.load(SeqCst) > 50, "{turns:?}");
}

#[link(name = "dl")]
extern "C" {
    fn dlopen(path: *const std::os::raw::c_char, flags: i32) -> *mut std::ffi::c_void;
    fn dlsym(library: *mut std::ffi::c_void, name: *const std::os::raw::c_char) -> *mut std::ffi::c_void;
}

/// A plugin's entry point, as if it were linked.
fn entry(plugin: &str) -> PluginEntry {
    let path = std::ffi::CString::new(test_plugin(plugin).to_str().unwrap()).unwrap();
    unsafe {
        let address = dlsym(dlopen(path.as_ptr(), 2), b"aerie_drafter_plugin_entry\0".as_ptr().cast());
        assert!(!address.is_null());
        std::mem::transmute::<*mut std::ffi::c_void, PluginEntry>(address)
    }
}

#[test]
fn linked_plugin() {
    let runtime = Runtime::new().unwrap();
    unsafe { runtime.add_plugin("linked", entry("foreign_log")) }.unwrap();
    let plugins = runtime.plugins().unwrap();
    assert_eq!(plugins.len(), 1);
    assert_eq!((plugins[0].id.as_str(), plugins[0].path.to_str()), ("foreign_log", Some("linked")));
    let model = runtime.open_model(model_path("demo.aerie"), ModelOptions::default()).unwrap();
    let drafter = model.open_drafter(DrafterOptions::plugin("foreign_log")).unwrap();
    assert_eq!(generate(&mut prompted(&model, 0.8, 5, Some(drafter)), 16), the_text(0.8, 5, 16));
    let refused = unsafe { runtime.add_plugin("old one", entry("wrong_major")) }.unwrap_err();
    assert!(refused.message().contains("old one"), "{refused}");
}

//! The C structs as older and newer programs have them, and a host without memory: on the declarations themselves.
use std::alloc::{alloc, dealloc, Layout};
use std::collections::HashMap;
use std::mem::{size_of, MaybeUninit};
use std::os::raw::c_void;
use std::ptr::null_mut;
use std::sync::Mutex;

use aerie::sys::*;

use crate::{model_path, PROMPT};

/// Runtime, model and session of raw handles.
struct Raw(*mut aerie_runtime, *mut aerie_model, *mut aerie_session);

impl Raw {
    fn empty() -> Self {
        Raw(null_mut(), null_mut(), null_mut())
    }

    /// The first code that is not AERIE_OK.
    unsafe fn open(&mut self, runtime: *const aerie_runtime_options, session: *const aerie_session_options) -> i32 {
        let path = std::ffi::CString::new(model_path("demo.aerie").to_str().unwrap()).unwrap();
        let e = null_mut();
        let mut code = aerie_runtime_create(runtime, &mut self.0, e);
        if code == 0 {
            code = aerie_model_open(self.0, path.as_ptr(), std::ptr::null(), &mut self.1, e);
        }
        if code == 0 {
            code = aerie_session_create(self.1, session, &mut self.2, e);
        }
        if code == 0 {
            code = aerie_session_append(self.2, PROMPT.as_ptr(), PROMPT.len(), e);
        }
        code
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        unsafe {
            aerie_runtime_release(self.0);
            aerie_model_release(self.1);
            aerie_session_release(self.2);
        }
    }
}

#[test]
fn layout() {
    let table = include_str!("../../../../../tests/abi/layout.txt");
    let line = |key: &str| table.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(' ')?.parse::<usize>().ok());
    assert_eq!(line("aerie_session_options"), Some(size_of::<aerie_session_options>()));
    assert_eq!(line("aerie_step_result"), Some(size_of::<aerie_step_result>()));
    assert_eq!(line("aerie_statistics"), Some(size_of::<aerie_statistics>()));
    // Every offset: aerie-sys/tests/layout.rs.
}

#[test]
fn older_struct_size() {
    let options = aerie_session_options { struct_size: 16, ignore_eos: 7, n_stop_tokens: -1, ..Default::default() };
    let mut raw = Raw::empty();
    unsafe {
        assert_eq!(raw.open(std::ptr::null(), &options), AERIE_OK);
        let mut out = MaybeUninit::<aerie_step_result>::uninit();
        std::ptr::write_bytes(out.as_mut_ptr() as *mut u8, 0xAB, size_of::<aerie_step_result>());
        (*out.as_mut_ptr()).struct_size = 16;
        assert_eq!(aerie_session_step(raw.2, std::ptr::null(), out.as_mut_ptr(), null_mut()), AERIE_OK);
        let bytes = std::slice::from_raw_parts(out.as_ptr() as *const u8, size_of::<aerie_step_result>());
        assert!(bytes[16..].iter().all(|b| *b == 0xAB));
        assert_eq!((*out.as_ptr()).struct_size, 16);
        assert_eq!((*out.as_ptr()).state, AERIE_STEP_TOKENS);
    }
}

#[repr(C)]
struct Newer<T>(T, [u8; 64]);

#[test]
fn newer_struct_size() {
    let size = |n: usize| n as u32 + 64;
    let known = aerie_session_options { struct_size: size(size_of::<aerie_session_options>()), ..Default::default() };
    let mut options = Newer(known, [0; 64]);
    let mut raw = Raw::empty();
    unsafe {
        assert_eq!(raw.open(std::ptr::null(), &options.0), AERIE_OK);
        let known = aerie_step_result { struct_size: size(size_of::<aerie_step_result>()), ..Default::default() };
        let mut out = Newer(known, [0xAB; 64]);
        assert_eq!(aerie_session_step(raw.2, std::ptr::null(), &mut out.0, null_mut()), AERIE_OK);
        assert_eq!(out.1, [0; 64]);
        assert_eq!(out.0.n_tokens, 1);
        options.1[60] = 1;
        assert_eq!(Raw::empty().open(std::ptr::null(), &options.0), AERIE_E_UNSUPPORTED);
    }
}

#[derive(Default)]
struct Heap {
    live: HashMap<usize, Layout>,
    calls: usize,
    fail_at: usize,
}

unsafe extern "C" fn heap_alloc(user: *mut c_void, bytes: usize, alignment: usize) -> *mut c_void {
    let mut heap = (*(user as *const Mutex<Heap>)).lock().unwrap();
    heap.calls += 1;
    if heap.calls > heap.fail_at {
        return null_mut();
    }
    let layout = Layout::from_size_align(bytes.max(1), alignment).unwrap();
    let memory = alloc(layout);
    heap.live.insert(memory as usize, layout);
    memory.cast()
}

unsafe extern "C" fn heap_free(user: *mut c_void, memory: *mut c_void) {
    let layout = (*(user as *const Mutex<Heap>)).lock().unwrap().live.remove(&(memory as usize));
    dealloc(memory.cast(), layout.expect("memory of this heap"));
}

#[test]
fn no_memory() {
    for fail_at in 0.. {
        let heap = Mutex::new(Heap { fail_at, ..Default::default() });
        let options = aerie_runtime_options {
            struct_size: size_of::<aerie_runtime_options>() as u32,
            threads: 1,
            alloc: Some(heap_alloc),
            free: Some(heap_free),
            alloc_user: &heap as *const Mutex<Heap> as *mut c_void,
            ..Default::default()
        };
        let mut raw = Raw::empty();
        let code = unsafe { raw.open(&options, std::ptr::null()) };
        drop(raw);
        assert!(heap.lock().unwrap().live.is_empty(), "all of it comes back");
        if code == AERIE_OK {
            assert!(fail_at > 0, "models do need memory");
            return;
        }
        assert_eq!(code, AERIE_E_OUT_OF_MEMORY);
    }
}

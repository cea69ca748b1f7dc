//! What the library calls in the program: log, allocator and job system of a runtime.
use std::alloc::{GlobalAlloc, Layout};
use std::collections::HashMap;
use std::ffi::c_void;
use std::os::raw::c_char;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

use aerie_sys as sys;

use crate::error::string;

/// How bad a log line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Something failed.
    Error,
    /// Something a user should know.
    Warning,
    /// Progress.
    Info,
    /// Details.
    Debug,
}

/// Hears the library's log, on whatever thread noticed. Must not call the library. A panic in it is swallowed.
pub type LogHook = Box<dyn Fn(LogLevel, &str) + Send + Sync>;

/// Where device memory (keys and values, working memory) comes from, and goes back to: any of Rust's allocators, such as
/// [`System`](std::alloc::System), an arena, or one that counts. Called on several threads. One that gives null fails the
/// call that wanted memory with [`Code::OutOfMemory`](crate::Code::OutOfMemory), and nothing is lost; so does one that panics.
pub type Allocator = Box<dyn GlobalAlloc + Send + Sync>;

/// The program's job system in place of the library's threads: `run(n, job)` calls `job` `n` times, in any order, on any
/// threads, and returns when the calls have returned. Each call does the next task; tasks never wait for each other. With
/// rayon, `Box::new(|n, job| (0..n).into_par_iter().for_each(|_| job()))`.
///
/// Called on the thread that steps, for every op of a pass: it should begin within microseconds. What it leaves undone,
/// or does not do because it panics, is done on that thread. [`RuntimeOptions::threads`](crate::RuntimeOptions::threads)
/// says how many threads it has; with 1 it is not asked.
pub type JobSystem = Box<dyn Fn(usize, &(dyn Fn() + Sync)) + Send + Sync>;

/// A runtime's hooks. The library holds its address; freed after the library's last object that could call it.
pub(crate) struct Hooks {
    pub(crate) log: Option<LogHook>,
    pub(crate) memory: Option<Memory>,
    pub(crate) jobs: Option<JobSystem>,
}

/// The library frees by address alone, Rust's allocators by layout.
pub(crate) struct Memory {
    allocator: Allocator,
    layouts: Mutex<HashMap<usize, Layout>>,
}

impl Memory {
    pub(crate) fn of(allocator: Allocator) -> Self {
        Memory { allocator, layouts: Mutex::default() }
    }

    fn layouts(&self) -> MutexGuard<'_, HashMap<usize, Layout>> {
        self.layouts.lock().unwrap_or_else(|e| e.into_inner())
    }
}

impl Hooks {
    /// Set the fields of `options` whose hooks are there. They hold the address of `self`.
    pub(crate) fn fill(&self, options: &mut sys::aerie_runtime_options) {
        let user = self as *const Hooks as *mut c_void;
        if self.log.is_some() {
            options.log = Some(log);
            options.log_user = user;
        }
        if self.memory.is_some() {
            options.alloc = Some(alloc);
            options.free = Some(free);
            options.alloc_user = user;
        }
        if self.jobs.is_some() {
            options.parallel_for = Some(parallel_for);
            options.parallel_user = user;
        }
    }
}

/// Run a hook; a panic does not reach the library. What was thrown may panic again when it is dropped, so it is not.
fn caught<T>(otherwise: T, hook: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(hook)).unwrap_or_else(|thrown| {
        std::mem::forget(thrown);
        otherwise
    })
}

unsafe extern "C" fn log(user: *mut c_void, level: i32, message: *const c_char) {
    let level = match level {
        0 => LogLevel::Error,
        1 => LogLevel::Warning,
        2 => LogLevel::Info,
        _ => LogLevel::Debug,
    };
    if let Some(hook) = &(*(user as *const Hooks)).log {
        caught((), || hook(level, &string(message)));
    }
}

unsafe extern "C" fn alloc(user: *mut c_void, bytes: usize, alignment: usize) -> *mut c_void {
    let memory = (*(user as *const Hooks)).memory.as_ref();
    let (memory, layout) = match (memory, Layout::from_size_align(bytes.max(1), alignment)) {
        (Some(memory), Ok(layout)) => (memory, layout),
        _ => return null_mut(),
    };
    let given = caught(null_mut(), || memory.allocator.alloc(layout));
    if !given.is_null() {
        memory.layouts().insert(given as usize, layout);
    }
    given.cast()
}

unsafe extern "C" fn free(user: *mut c_void, given: *mut c_void) {
    if let Some(memory) = &(*(user as *const Hooks)).memory {
        let layout = memory.layouts().remove(&(given as usize));
        if let Some(layout) = layout {
            caught((), || memory.allocator.dealloc(given.cast(), layout));
        }
    }
}

/// The tasks of one call of `parallel_for`. Whoever runs one takes the next, so none is run twice or left out.
struct Tasks {
    task: unsafe extern "C" fn(*mut c_void, i32),
    context: *mut c_void,
    n: usize,
    next: AtomicUsize,
}

// The library's tasks are for any thread.
unsafe impl Sync for Tasks {}

impl Tasks {
    /// False: all are taken.
    fn run_next(&self) -> bool {
        let i = self.next.fetch_add(1, Ordering::Relaxed);
        if i < self.n {
            unsafe { (self.task)(self.context, i as i32) };
        }
        i < self.n
    }
}

unsafe extern "C" fn parallel_for(
    user: *mut c_void,
    task: Option<unsafe extern "C" fn(*mut c_void, i32)>,
    context: *mut c_void,
    n: i32,
) {
    let task = match task {
        Some(task) => task,
        None => return,
    };
    let tasks = Tasks { task, context, n: n.max(0) as usize, next: AtomicUsize::new(0) };
    if let Some(run) = &(*(user as *const Hooks)).jobs {
        caught((), || {
            run(tasks.n, &|| {
                tasks.run_next();
            })
        });
    }
    while tasks.run_next() {}
}

//! Device, threads, log and plugins.
use std::path::{Path, PathBuf};
use std::ptr::null;
use std::sync::Arc;

use aerie_sys as sys;

use crate::error::{c_path, c_string, check, ensure_loaded, sized, string, Code, Result};
use crate::hooks::{Allocator, Hooks, JobSystem, LogHook, Memory};

/// How to make a [`Runtime`]; the default is one thread for each physical core, on the CPU, in silence.
#[derive(Default)]
pub struct RuntimeOptions {
    /// Threads that compute; 0: one for each physical core this process may use.
    pub threads: i32,
    /// `"cpu"` (the default), `"cpu:AVX2"` or another instruction set, which is one text on all machines that have it,
    /// `"cuda"` or `"cuda:N"`.
    pub device: Option<String>,
    /// Who hears the log.
    pub log: Option<LogHook>,
    /// Where device memory comes from; by default the library's own way.
    pub allocator: Option<Allocator>,
    /// Who runs the work of a step, in place of `threads`.
    pub jobs: Option<JobSystem>,
}

/// The device and its threads, and the drafter plugins that are loaded. Clones are the same runtime; models keep it.
#[derive(Clone)]
pub struct Runtime(Arc<Inner>);

struct Inner {
    raw: *mut sys::aerie_runtime,
    _hooks: Arc<Hooks>, // the library's objects call them, and their owners all keep `Inner`
}

unsafe impl Send for Inner {}
unsafe impl Sync for Inner {}

impl Drop for Inner {
    fn drop(&mut self) {
        unsafe { sys::aerie_runtime_release(self.raw) }
    }
}

/// The entry point of a plugin that is linked into the program.
pub type PluginEntry = unsafe extern "C" fn() -> *const sys::aerie_drafter_plugin_table;

/// A drafter kind that is loaded.
#[derive(Clone, Debug)]
pub struct PluginInfo {
    /// What packages and [`DrafterOptions::plugin`](crate::DrafterOptions::plugin) name it by.
    pub id: String,
    /// Its name for people.
    pub title: String,
    /// Its own version.
    pub version: String,
    /// The library it came from.
    pub path: PathBuf,
    /// `AERIE_DRAFTER_*` of [`sys`](crate::sys).
    pub flags: u32,
}

impl Runtime {
    /// A runtime with the default options.
    pub fn new() -> Result<Self> {
        Self::with_options(RuntimeOptions::default())
    }

    /// A runtime.
    pub fn with_options(options: RuntimeOptions) -> Result<Self> {
        ensure_loaded()?;
        let device = options.device.map(c_string).transpose()?;
        let hooks = Arc::new(Hooks { log: options.log, memory: options.allocator.map(Memory::of), jobs: options.jobs });
        let mut raw_options =
            sized!(aerie_runtime_options { threads: options.threads, device: device.as_ref().map_or(null(), |d| d.as_ptr()) });
        hooks.fill(&mut raw_options);
        let mut raw = std::ptr::null_mut();
        check(|e| unsafe { sys::aerie_runtime_create(&raw_options, &mut raw, e) })?;
        Ok(Runtime(Arc::new(Inner { raw, _hooks: hooks })))
    }

    /// Such as `cpu AVX3_DL, 2 threads`.
    pub fn description(&self) -> String {
        unsafe { string(sys::aerie_runtime_description(self.raw())) }
    }

    /// Load the drafters that are installed with the library.
    pub fn load_installed_plugins(&self) -> Result<()> {
        check(|e| unsafe { sys::aerie_runtime_load_plugin_directory(self.raw(), null(), e) })
    }

    /// Load every plugin in a directory, named by an absolute path.
    pub fn load_plugin_directory(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = c_path(path.as_ref())?;
        check(|e| unsafe { sys::aerie_runtime_load_plugin_directory(self.raw(), path.as_ptr(), e) })
    }

    /// Load one drafter plugin from an absolute path. It stays loaded until the process ends.
    pub fn load_plugin(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = c_path(path.as_ref())?;
        check(|e| unsafe { sys::aerie_runtime_load_plugin(self.raw(), path.as_ptr(), e) })
    }

    /// Register a drafter plugin that is linked into the program. `name` is for errors.
    ///
    /// # Safety
    /// `entry` must be a plugin's entry point as `drafter.h` describes it, and keep what that promises.
    pub unsafe fn add_plugin(&self, name: &str, entry: PluginEntry) -> Result<()> {
        let name = c_string(name)?;
        check(|e| sys::aerie_runtime_add_plugin(self.raw(), name.as_ptr(), Some(entry), e))
    }

    /// The drafter kinds that are loaded.
    pub fn plugins(&self) -> Result<Vec<PluginInfo>> {
        let mut all = Vec::new();
        loop {
            let mut info = sized!(aerie_plugin_info {});
            match check(|e| unsafe { sys::aerie_runtime_plugin_info(self.raw(), all.len() as u32, &mut info, e) }) {
                Err(e) if e.code() == Code::NotFound => return Ok(all),
                other => other?,
            }
            all.push(unsafe {
                PluginInfo {
                    id: string(info.id),
                    title: string(info.title),
                    version: string(info.version),
                    path: string(info.path).into(),
                    flags: info.flags,
                }
            });
        }
    }

    pub(crate) fn raw(&self) -> *mut sys::aerie_runtime {
        self.0.raw
    }
}

//! Targets and the drafters bound to them.
use std::any::Any;
use std::ffi::c_void;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::ptr::{null, null_mut};
use std::sync::Arc;

use aerie_sys as sys;

use crate::error::{c_path, c_string, check, sized, slice, string, Result};
use crate::runtime::Runtime;

/// How keys and values are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KvDtype {
    /// Four bytes a value.
    #[default]
    F32,
    /// Two bytes.
    Bf16,
    /// One byte, and a scale for each position and head.
    Int8,
}

/// Hears the bytes done and to do while a model is read; `false` cancels.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64) -> bool;

/// Asked when the KV budget is spent: may drop or rewind *other* sessions of the model and say `true` to try again;
/// `false`, or a panic, and the step fails with [`Code::Limit`](crate::Code::Limit), nothing lost. The number is the
/// positions wanted. Runs on the stepping thread.
pub type KvFull = Box<dyn Fn(i32) -> bool + Send + Sync>;

/// How to open a [`Model`].
#[derive(Default)]
pub struct ModelOptions<'a> {
    /// Budget of keys and values shared by the model's sessions, in tokens; 0: 4 × the context, from 4096 to 32768.
    pub kv_positions: i32,
    /// How keys and values are kept.
    pub kv_dtype: KvDtype,
    /// Check the checksums of raw tensors too, which reads the whole file.
    pub check_data: bool,
    /// Forget texts' keys and values when their session goes; by default they serve later sessions that begin alike,
    /// until their room is wanted.
    pub forget_prefixes: bool,
    /// On cuda, read long prompts by cuBLASLt: faster, and not bit for bit (docs/cuda.md).
    pub fast_prefill: bool,
    /// Who makes room; nobody: a step that finds none fails.
    pub kv_full: Option<KvFull>,
    /// Called on this thread while the model is read. A panic in it cancels the load and goes on in the caller.
    pub progress: Option<Progress<'a>>,
}

/// A target: immutable, shared by any number of sessions on any threads. Clones are the same model.
#[derive(Clone)]
pub struct Model(Arc<Inner>);

struct Inner {
    raw: *mut sys::aerie_model,
    _kv_full: Option<Arc<KvFull>>, // the library holds its address
    _runtime: Runtime,             // its log hook must outlive the model
}

unsafe impl Send for Inner {}
unsafe impl Sync for Inner {}

impl Drop for Inner {
    fn drop(&mut self) {
        unsafe { sys::aerie_model_release(self.raw) }
    }
}

/// What a model is.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[allow(missing_docs)] // they are their names
pub struct ModelInfo {
    pub name: String,
    /// Hexadecimal; equal for requantised copies.
    pub fingerprint: String,
    pub vocab_size: i32,
    pub hidden_size: i32,
    pub layers: i32,
    pub heads: i32,
    pub kv_heads: i32,
    pub head_dim: i32,
    pub ffn: i32,
    pub max_context: i32,
    /// The token a text begins with, if the model has one.
    pub bos_id: Option<i32>,
    /// The tokens that end a text.
    pub eos_ids: Vec<i32>,
    pub weight_bytes: u64,
    pub kv_bytes_per_token: u64,
    /// As it was opened: [`ModelOptions::fast_prefill`].
    pub fast_prefill: bool,
}

struct Reporting<'a> {
    progress: Progress<'a>,
    panic: Option<Box<dyn Any + Send>>,
}

unsafe extern "C" fn report(user: *mut c_void, done: u64, total: u64) -> i32 {
    let reporting = &mut *(user as *mut Reporting<'_>);
    match catch_unwind(AssertUnwindSafe(|| (reporting.progress)(done, total))) {
        Ok(go_on) => go_on as i32,
        Err(thrown) => {
            reporting.panic = Some(thrown);
            0
        }
    }
}

unsafe extern "C" fn make_room(user: *mut c_void, wanted: i32) -> i32 {
    let hook = &*(user as *const KvFull);
    catch_unwind(AssertUnwindSafe(|| hook(wanted))).unwrap_or_else(|thrown| {
        std::mem::forget(thrown); // nobody could take it, and dropping it may panic again
        false
    }) as i32
}

/// Run `call` with a progress callback and its user pointer; a panic of the closure goes on here.
pub(crate) fn with_progress<T>(progress: Option<Progress<'_>>, call: impl FnOnce(sys::aerie_progress_fn, *mut c_void) -> T) -> T {
    let progress = match progress {
        Some(progress) => progress,
        None => return call(None, null_mut()),
    };
    let mut reporting = Reporting { progress, panic: None };
    let result = call(Some(report), &mut reporting as *mut Reporting<'_> as *mut c_void);
    match reporting.panic {
        Some(thrown) => resume_unwind(thrown),
        None => result,
    }
}

impl Runtime {
    /// Open a target package.
    pub fn open_model(&self, path: impl AsRef<Path>, options: ModelOptions<'_>) -> Result<Model> {
        let path = c_path(path.as_ref())?;
        let kv_full = options.kv_full.map(Arc::new);
        let (kv_positions, kv_dtype, check_data) = (options.kv_positions, options.kv_dtype, options.check_data);
        let keep_prefixes = if options.forget_prefixes { -1 } else { 0 };
        let prefill = if options.fast_prefill { sys::AERIE_PREFILL_FAST } else { sys::AERIE_PREFILL_EXACT };
        with_progress(options.progress, |progress, progress_user| {
            let options = sized!(aerie_model_options {
                kv_positions: kv_positions,
                kv_dtype: kv_dtype as i32,
                check_data: check_data as i32,
                progress: progress,
                progress_user: progress_user,
                keep_prefixes: keep_prefixes,
                prefill: prefill,
                kv_full: kv_full.as_ref().map(|_| make_room as unsafe extern "C" fn(*mut c_void, i32) -> i32),
                kv_full_user: kv_full.as_ref().map_or(null_mut(), |hook| Arc::as_ptr(hook) as *mut c_void),
            });
            let mut raw = null_mut();
            check(|e| unsafe { sys::aerie_model_open(self.raw(), path.as_ptr(), &options, &mut raw, e) })?;
            Ok(Model(Arc::new(Inner { raw, _kv_full: kv_full.clone(), _runtime: self.clone() })))
        })
    }
}

impl Model {
    /// What it is.
    pub fn info(&self) -> Result<ModelInfo> {
        let mut i = sized!(aerie_model_info {});
        check(|e| unsafe { sys::aerie_model_info_get(self.raw(), &mut i, e) })?;
        Ok(ModelInfo {
            name: unsafe { string(i.name) },
            fingerprint: unsafe { string(i.fingerprint) },
            vocab_size: i.vocab_size,
            hidden_size: i.hidden_size,
            layers: i.layers,
            heads: i.heads,
            kv_heads: i.kv_heads,
            head_dim: i.head_dim,
            ffn: i.ffn,
            max_context: i.max_context,
            bos_id: (i.bos_id >= 0).then_some(i.bos_id),
            eos_ids: unsafe { slice(i.eos_ids, i.n_eos as usize) }.to_vec(),
            weight_bytes: i.weight_bytes,
            kv_bytes_per_token: i.kv_bytes_per_token,
            fast_prefill: i.prefill == sys::AERIE_PREFILL_FAST,
        })
    }

    /// A byte blob of the package, such as `"tokenizer"` or `"chat_template"`; empty when there is none.
    pub fn blob(&self, name: &str) -> Result<&[u8]> {
        let name = c_string(name)?;
        let (mut data, mut size) = (null(), 0);
        check(|e| unsafe { sys::aerie_model_blob(self.raw(), name.as_ptr(), &mut data, &mut size, e) })?;
        Ok(unsafe { slice(data as *const u8, size) })
    }

    /// Bind a loaded plugin, and its weights, to this target.
    pub fn open_drafter(&self, options: DrafterOptions<'_>) -> Result<Drafter> {
        let package = options.package.as_deref().map(c_path).transpose()?;
        let plugin = options.plugin.map(c_string).transpose()?;
        let max_sessions = options.max_sessions;
        with_progress(options.progress, |progress, progress_user| {
            let raw_options = sized!(aerie_drafter_options {
                max_sessions: max_sessions,
                package: package.as_ref().map_or(null(), |p| p.as_ptr()),
                plugin: plugin.as_ref().map_or(null(), |p| p.as_ptr()),
                progress: progress,
                progress_user: progress_user,
            });
            let mut raw = null_mut();
            check(|e| unsafe { sys::aerie_drafter_open(self.raw(), &raw_options, &mut raw, e) })?;
            Ok(Drafter(Arc::new(DrafterInner { raw, _model: self.clone() })))
        })
    }

    pub(crate) fn raw(&self) -> *mut sys::aerie_model {
        self.0.raw
    }
}

/// Which drafter to open: a package, a plugin's id, or both.
#[derive(Default)]
pub struct DrafterOptions<'a> {
    /// A drafter package, or a target to be used as draft model.
    pub package: Option<PathBuf>,
    /// The plugin's id; by default what the package names.
    pub plugin: Option<String>,
    /// Sessions that may use it at once; 0: 8.
    pub max_sessions: i32,
    /// Called on this thread while the package is read. A panic in it cancels the load and goes on in the caller.
    pub progress: Option<Progress<'a>>,
}

impl DrafterOptions<'_> {
    /// A drafter package, by the plugin that it names.
    pub fn package(path: impl Into<PathBuf>) -> Self {
        DrafterOptions { package: Some(path.into()), ..Default::default() }
    }

    /// A plugin that needs no package, such as `"ngram"`.
    pub fn plugin(id: impl Into<String>) -> Self {
        DrafterOptions { plugin: Some(id.into()), ..Default::default() }
    }
}

/// A drafter bound to a model. Clones are the same drafter; sessions keep it.
#[derive(Clone)]
pub struct Drafter(Arc<DrafterInner>);

struct DrafterInner {
    raw: *mut sys::aerie_drafter_handle,
    _model: Model,
}

unsafe impl Send for DrafterInner {}
unsafe impl Sync for DrafterInner {}

impl Drop for DrafterInner {
    fn drop(&mut self) {
        unsafe { sys::aerie_drafter_release(self.raw) }
    }
}

impl Drafter {
    pub(crate) fn raw(&self) -> *mut sys::aerie_drafter_handle {
        self.0.raw
    }
}

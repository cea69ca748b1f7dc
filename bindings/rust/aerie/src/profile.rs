//! What passes cost on this device: measured, kept in a file, used by tree policies.
use std::path::Path;
use std::ptr::{null, null_mut};

use aerie_sys as sys;

use crate::error::{c_path, check, ensure_loaded, sized, slice, Code, Error, Result};
use crate::model::{with_progress, Drafter, Model, Progress};
use crate::session::{CancelHandle, Target};

/// What to measure; the default is the target alone at batch 1.
#[derive(Default)]
pub struct ProfileOptions<'a> {
    /// About a second for the target and one for each drafter.
    pub quick: bool,
    /// Sequences in a target pass, 1 to 64; none: 1.
    pub batches: &'a [i32],
    /// Tokens behind each sequence; none: 32, 128, 512, ... as far as the KV budget goes.
    pub contexts: &'a [i32],
    /// Opened for the model; each with a session to spare.
    pub drafters: &'a [Drafter],
    /// Counts points; `false` cancels.
    pub progress: Option<Progress<'a>>,
}

/// A table of what passes cost. It says nothing about what text comes out, only how fast.
pub struct Profile {
    raw: *mut sys::aerie_profile,
    cancel: CancelHandle,
}

unsafe impl Send for Profile {}

impl Drop for Profile {
    fn drop(&mut self) {
        self.cancel.forget();
        unsafe { sys::aerie_profile_release(self.raw) }
    }
}

impl Profile {
    fn from_raw(raw: *mut sys::aerie_profile) -> Self {
        Profile { raw, cancel: CancelHandle::new(Target::Profile(raw)) }
    }

    /// An empty one, to [`remeasure`](Profile::remeasure) with a [`cancel_handle`](Profile::cancel_handle) at hand.
    pub fn new() -> Result<Self> {
        ensure_loaded()?;
        let mut raw = null_mut();
        check(|e| unsafe { sys::aerie_profile_create(&mut raw, e) })?;
        Ok(Profile::from_raw(raw))
    }

    /// Measure. Only as good as the machine is quiet.
    pub fn measure(model: &Model, options: ProfileOptions<'_>) -> Result<Self> {
        let mut profile = Profile::new()?;
        profile.remeasure(model, options)?;
        Ok(profile)
    }

    /// Measure in place of what it holds, and still holds after an error.
    pub fn remeasure(&mut self, model: &Model, options: ProfileOptions<'_>) -> Result<()> {
        let drafters: Vec<_> = options.drafters.iter().map(Drafter::raw).collect();
        let (quick, batches, contexts) = (options.quick, options.batches, options.contexts);
        with_progress(options.progress, |progress, progress_user| {
            let options = sized!(aerie_profile_options {
                quick: quick as i32,
                n_batches: batches.len() as i32,
                n_contexts: contexts.len() as i32,
                batches: batches.as_ptr(),
                contexts: contexts.as_ptr(),
                n_drafters: drafters.len() as i32,
                drafters: drafters.as_ptr(),
                progress: progress,
                progress_user: progress_user,
            });
            check(|e| unsafe { sys::aerie_profile_measure(self.raw, model.raw(), &options, e) })
        })
    }

    /// Forget a cancel that no measurement has taken, as [`Session::clear_cancel`](crate::Session::clear_cancel) does.
    pub fn clear_cancel(&mut self) {
        unsafe { sys::aerie_profile_clear_cancel(self.raw) }
    }

    /// What other threads stop a measurement with, within milliseconds.
    pub fn cancel_handle(&self) -> CancelHandle {
        self.cancel.clone()
    }

    /// From a file.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        ensure_loaded()?;
        let path = c_path(path.as_ref())?;
        let mut raw = null_mut();
        check(|e| unsafe { sys::aerie_profile_load(path.as_ptr(), &mut raw, e) })?;
        Ok(Profile::from_raw(raw))
    }

    /// To a file, which appears whole or not at all.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = c_path(path.as_ref())?;
        check(|e| unsafe { sys::aerie_profile_save(self.raw, path.as_ptr(), e) })
    }

    /// The tables as one JSON object.
    pub fn json(&mut self) -> Result<&str> {
        let (mut text, mut size) = (null(), 0);
        check(|e| unsafe { sys::aerie_profile_json(self.raw, &mut text, &mut size, e) })?;
        let bytes = unsafe { slice(text.cast(), size) };
        std::str::from_utf8(bytes).map_err(|e| Error::new(Code::Internal, e.to_string()))
    }

    /// Sessions of this model made from now on use the costs.
    pub fn attach(&self, model: &Model) -> Result<()> {
        check(|e| unsafe { sys::aerie_profile_attach(self.raw, model.raw(), e) })
    }

    /// Sessions with this drafter made from now on use its costs.
    pub fn attach_drafter(&self, drafter: &Drafter) -> Result<()> {
        check(|e| unsafe { sys::aerie_profile_attach_drafter(self.raw, drafter.raw(), e) })
    }

    /// Expected milliseconds of a target pass over `rows` rows for each of `batch` sequences of `context` tokens.
    pub fn target_ms(&self, batch: i32, context: i32, rows: i32) -> Result<f64> {
        let mut ms = 0.0;
        check(|e| unsafe { sys::aerie_profile_target_ms(self.raw, batch, context, rows, &mut ms, e) })?;
        Ok(ms)
    }
}

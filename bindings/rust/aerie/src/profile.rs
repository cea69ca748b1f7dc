//! What passes cost on this device: measured, kept in a file, used by tree policies.
use std::path::Path;
use std::ptr::{null, null_mut};

use aerie_sys as sys;

use crate::error::{c_path, check, ensure_loaded, sized, slice, Code, Error, Result};
use crate::model::{with_progress, Drafter, Model, Progress};

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
pub struct Profile(*mut sys::aerie_profile);

unsafe impl Send for Profile {}

impl Drop for Profile {
    fn drop(&mut self) {
        unsafe { sys::aerie_profile_release(self.0) }
    }
}

impl Profile {
    /// Measure. Only as good as the machine is quiet.
    pub fn measure(model: &Model, options: ProfileOptions<'_>) -> Result<Self> {
        let mut raw = null_mut();
        check(|e| unsafe { sys::aerie_profile_create(&mut raw, e) })?;
        let profile = Profile(raw);
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
            check(|e| unsafe { sys::aerie_profile_measure(profile.0, model.raw(), &options, e) })
        })?;
        Ok(profile)
    }

    /// From a file.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        ensure_loaded()?;
        let path = c_path(path.as_ref())?;
        let mut raw = null_mut();
        check(|e| unsafe { sys::aerie_profile_load(path.as_ptr(), &mut raw, e) })?;
        Ok(Profile(raw))
    }

    /// To a file, which appears whole or not at all.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = c_path(path.as_ref())?;
        check(|e| unsafe { sys::aerie_profile_save(self.0, path.as_ptr(), e) })
    }

    /// The tables as one JSON object.
    pub fn json(&mut self) -> Result<&str> {
        let (mut text, mut size) = (null(), 0);
        check(|e| unsafe { sys::aerie_profile_json(self.0, &mut text, &mut size, e) })?;
        let bytes = unsafe { slice(text.cast(), size) };
        std::str::from_utf8(bytes).map_err(|e| Error::new(Code::Internal, e.to_string()))
    }

    /// Sessions of this model made from now on use the costs.
    pub fn attach(&self, model: &Model) -> Result<()> {
        check(|e| unsafe { sys::aerie_profile_attach(self.0, model.raw(), e) })
    }

    /// Sessions with this drafter made from now on use its costs.
    pub fn attach_drafter(&self, drafter: &Drafter) -> Result<()> {
        check(|e| unsafe { sys::aerie_profile_attach_drafter(self.0, drafter.raw(), e) })
    }

    /// Expected milliseconds of a target pass over `rows` rows for each of `batch` sequences of `context` tokens.
    pub fn target_ms(&self, batch: i32, context: i32, rows: i32) -> Result<f64> {
        let mut ms = 0.0;
        check(|e| unsafe { sys::aerie_profile_target_ms(self.0, batch, context, rows, &mut ms, e) })?;
        Ok(ms)
    }
}

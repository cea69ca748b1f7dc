//! Packages: made from checkpoints, and looked into.
use std::ffi::c_void;
use std::os::raw::c_char;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::ptr::{null, null_mut};

use aerie_sys as sys;

use crate::error::{c_path, check, ensure_loaded, sized, string, Result};
use crate::model::{with_progress, Progress};

/// How weights are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weights {
    /// As `Stored`, but bf16 for f32.
    #[default]
    Default,
    /// Four bytes a weight.
    F32,
    /// Two bytes.
    Bf16,
    /// One byte, and scales.
    Int8,
    /// Half a byte, and scales.
    Int4,
    /// One byte (E4M3), and scales.
    Fp8,
    /// Half a byte, scales and minima: what a checkpoint has that was rounded to 4 bits before stays as it is.
    Q4_1,
    /// Each matrix in that of these which is nearest to what the source has it in.
    Stored,
    /// Half a byte (E2M1), and a power of two for 32. A source's MXFP4 stays that, whatever is asked for, but `F32` or `Bf16`.
    Mxfp4,
}

/// How to convert a checkpoint.
#[derive(Default)]
pub struct ConvertOptions<'a> {
    /// How weights are stored.
    pub weights: Weights,
    /// How the embedding and the LM head are, where not as the others.
    pub head_weights: Option<Weights>,
    /// Drafters: the target package.
    pub drafter_for: Option<PathBuf>,
    /// llama2.c: its `tokenizer.bin`.
    pub tokenizer: Option<PathBuf>,
    /// A smaller file, unpacked at load.
    pub compress: bool,
    /// Targets: rank of a candidate head to add; 0: as the source; -1: none.
    pub candidate_rank: i32,
    /// Targets: the longest text they will read; 0: as long as the model can (LongRoPE: the shorter of its two contexts).
    pub context: i32,
    /// Counts bytes; `false` cancels.
    pub progress: Option<Progress<'a>>,
    /// Hears what a user should know though it went well.
    pub warning: Option<&'a dyn Fn(&str)>,
}

unsafe extern "C" fn warn(user: *mut c_void, _level: i32, message: *const c_char) {
    let hook = *(user as *const &dyn Fn(&str));
    let message = string(message);
    if let Err(thrown) = catch_unwind(AssertUnwindSafe(|| hook(&message))) {
        std::mem::forget(thrown); // nobody could take it, and dropping it may panic again
    }
}

/// Convert a Hugging Face directory, a llama2.c file, a drafter's checkpoint or another package. The output appears
/// whole or not at all.
pub fn convert(source: impl AsRef<Path>, output: impl AsRef<Path>, options: ConvertOptions<'_>) -> Result<()> {
    ensure_loaded()?;
    let (source, output) = (c_path(source.as_ref())?, c_path(output.as_ref())?);
    let drafter_for = options.drafter_for.as_deref().map(c_path).transpose()?;
    let tokenizer = options.tokenizer.as_deref().map(c_path).transpose()?;
    let head = match options.head_weights {
        None | Some(Weights::Default) => 0,
        Some(w) => w as i32,
    };
    let (weights, compress, rank, warning) = (options.weights, options.compress, options.candidate_rank, options.warning);
    let context = options.context;
    with_progress(options.progress, |progress, progress_user| {
        let raw = sized!(aerie_convert_options {
            dtype: weights as i32,
            source: source.as_ptr(),
            output: output.as_ptr(),
            drafter_for: drafter_for.as_ref().map_or(null(), |p| p.as_ptr()),
            tokenizer: tokenizer.as_ref().map_or(null(), |p| p.as_ptr()),
            compress: compress as i32,
            context: context,
            progress: progress,
            progress_user: progress_user,
            log: warning.as_ref().map(|_| warn as unsafe extern "C" fn(*mut c_void, i32, *const c_char)),
            log_user: warning.as_ref().map_or(null_mut(), |w| w as *const &dyn Fn(&str) as *mut c_void),
            candidate_rank: rank,
            head_dtype: head,
        });
        check(|e| unsafe { sys::aerie_convert(&raw, e) })
    })
}

/// A description of a package, as text or as one JSON object.
pub fn inspect(path: impl AsRef<Path>, json: bool) -> Result<String> {
    ensure_loaded()?;
    let path = c_path(path.as_ref())?;
    let format = if json { sys::AERIE_INSPECT_JSON } else { sys::AERIE_INSPECT_TEXT };
    let mut text = null_mut();
    check(|e| unsafe { sys::aerie_inspect(path.as_ptr(), format, &mut text, e) })?;
    let copy = unsafe { string(text) };
    unsafe { sys::aerie_string_free(text) };
    Ok(copy)
}

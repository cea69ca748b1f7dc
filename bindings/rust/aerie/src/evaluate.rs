//! A text as the target sees it.
use std::ptr::null_mut;

use aerie_sys as sys;

use crate::error::{check, sized, Code, Error, Result};
use crate::model::{with_progress, Model, Progress};

/// What is wanted of an evaluation: rows are written where they are wanted.
#[derive(Default)]
pub struct Evaluation<'a> {
    /// Layers whose input is wanted; their number: the last one's output; -1: that after the final norm.
    pub taps: &'a [i32],
    /// `tokens × (taps × hidden_size)` values.
    pub features: Option<&'a mut [f32]>,
    /// `tokens × vocab_size` values.
    pub logits: Option<&'a mut [f32]>,
    /// Counts tokens; `false` cancels.
    pub progress: Option<Progress<'a>>,
}

impl Model {
    /// Run the target over a text from its beginning. The rows are those of a session, bit for bit.
    pub fn evaluate(&self, tokens: &[i32], mut wanted: Evaluation<'_>) -> Result<()> {
        let info = self.info()?;
        let fits = |rows: &Option<&mut [f32]>, columns: usize| match rows {
            Some(rows) if Some(rows.len()) != tokens.len().checked_mul(columns) => Err(Error::new(
                Code::InvalidArgument,
                format!("{} values are not {} rows of {columns}", rows.len(), tokens.len()),
            )),
            _ => Ok(()),
        };
        fits(&wanted.features, wanted.taps.len() * info.hidden_size as usize)?;
        fits(&wanted.logits, info.vocab_size as usize)?;
        let taps = wanted.taps;
        let features = wanted.features.as_mut().map_or(null_mut(), |rows| rows.as_mut_ptr());
        let logits = wanted.logits.as_mut().map_or(null_mut(), |rows| rows.as_mut_ptr());
        with_progress(wanted.progress, |progress, progress_user| {
            let options = sized!(aerie_evaluate_options {
                n_taps: taps.len() as i32,
                taps: taps.as_ptr(),
                features: features,
                logits: logits,
                progress: progress,
                progress_user: progress_user,
            });
            check(|e| unsafe { sys::aerie_model_evaluate(self.raw(), tokens.as_ptr(), tokens.len(), &options, e) })
        })
    }
}

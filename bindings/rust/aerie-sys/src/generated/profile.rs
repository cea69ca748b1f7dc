//! Generated from capi/include/aerie/profile.h by bindings/generate.py: do not edit.

use core::marker::{PhantomData, PhantomPinned};
use std::os::raw::{c_char, c_void};
use super::*;

/// `struct aerie_profile`
#[repr(C)]
pub struct aerie_profile {
    _opaque: [u8; 0],
    _not_send: PhantomData<(*mut u8, PhantomPinned)>,
}

/// `struct aerie_profile_options`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aerie_profile_options {
    /// `uint32_t struct_size`
    pub struct_size: u32,
    /// nonzero: about a second for the target and one for each drafter; fewer points and samples
    pub quick: i32,
    /// 0: batch 1
    pub n_batches: i32,
    /// 0: 32, 128, 512, ... and the model's longest, as far as the KV budget goes
    pub n_contexts: i32,
    /// sequences in a target pass, 1 .. 64
    pub batches: *const i32,
    /// tokens behind each sequence, 1 .. the model's context
    pub contexts: *const i32,
    /// 0: the target alone
    pub n_drafters: i32,
    /// `int32_t reserved`
    pub reserved: i32,
    /// opened for this model; each has a free session (max_sessions)
    pub drafters: *const *mut aerie_drafter_handle,
    /// called between passes on the measuring thread, counting points; 0 cancels. NULL: none
    pub progress: aerie_progress_fn,
    /// `void *progress_user`
    pub progress_user: *mut c_void,
}
default_is_zero!(aerie_profile_options);

functions! {
    "aerie";
    /// An empty profile, to measure into. \[any\]
    fn aerie_profile_create(out: *mut *mut aerie_profile, err: *mut aerie_error) -> i32;
    /// A profile from a file. AERIE_E_NOT_FOUND, AERIE_E_IO: the file; AERIE_E_BAD_FORMAT: damaged; AERIE_E_UNSUPPORTED: an older
    /// or newer format. The error names file and field. \[any\]
    fn aerie_profile_load(path: *const c_char, out: *mut *mut aerie_profile, err: *mut aerie_error) -> i32;
    /// Waits for a measurement on another thread to stop. What it is attached to keeps the costs. \[any\]
    fn aerie_profile_release(profile: *mut aerie_profile);
    /// Measure, in place of what the profile held. Takes KV of the model while it runs (AERIE_E_LIMIT when there is none), and is
    /// only as good as the machine is quiet. On failure the profile holds what it held before. options may be NULL. \[profile\]
    fn aerie_profile_measure(profile: *mut aerie_profile, model: *mut aerie_model, options: *const aerie_profile_options, err: *mut aerie_error) -> i32;
    /// Stop the measurement that is running, or else the next one, within milliseconds; it returns AERIE_E_CANCELLED. \[any\]
    fn aerie_profile_cancel(profile: *mut aerie_profile);
    /// Forget one that no measurement has taken, as aerie_session_clear_cancel does. \[any\]
    fn aerie_profile_clear_cancel(profile: *mut aerie_profile);
    /// Written under a temporary name, renamed when whole. AERIE_E_INVALID_ARGUMENT: the path is there and no cost table, and stays
    /// as it is; AERIE_E_IO. \[profile\]
    fn aerie_profile_save(profile: *mut aerie_profile, path: *const c_char, err: *mut aerie_error) -> i32;
    /// The tables as one JSON object; borrowed until the next call on this profile. \[profile\]
    fn aerie_profile_json(profile: *mut aerie_profile, text: *mut *const c_char, size: *mut usize, err: *mut aerie_error) -> i32;
    /// Sessions created on this model (with this drafter) from now on use the costs. AERIE_E_MISMATCH, naming the field, when
    /// they were measured with another model, device, instruction set, thread count, dtype or library version, or hold no such
    /// drafter. A drafter without costs is learned from its first passes. \[profile\]
    fn aerie_profile_attach(profile: *mut aerie_profile, model: *mut aerie_model, err: *mut aerie_error) -> i32;
    /// The same for one drafter's passes. \[profile\]
    fn aerie_profile_attach_drafter(profile: *mut aerie_profile, drafter: *mut aerie_drafter_handle, err: *mut aerie_error) -> i32;
    /// Expected milliseconds of a target pass over `rows` rows for each of `batch` sequences of `context` tokens; never falls with
    /// any of the three. \[profile\]
    fn aerie_profile_target_ms(profile: *mut aerie_profile, batch: i32, context: i32, rows: i32, ms: *mut f64, err: *mut aerie_error) -> i32;
}

//! Generated from capi/include/aerie/tools.h by bindings/generate.py: do not edit.

use std::os::raw::{c_char, c_void};
use super::*;

/// `AERIE_WEIGHTS_DEFAULT = 0`
pub const AERIE_WEIGHTS_DEFAULT: i32 = 0;
/// `AERIE_WEIGHTS_F32 = 1`
pub const AERIE_WEIGHTS_F32: i32 = 1;
/// `AERIE_WEIGHTS_BF16 = 2`
pub const AERIE_WEIGHTS_BF16: i32 = 2;
/// `AERIE_WEIGHTS_INT8 = 3`
pub const AERIE_WEIGHTS_INT8: i32 = 3;
/// `AERIE_WEIGHTS_INT4 = 4`
pub const AERIE_WEIGHTS_INT4: i32 = 4;
/// `AERIE_WEIGHTS_FP8 = 5`
pub const AERIE_WEIGHTS_FP8: i32 = 5;
/// `AERIE_WEIGHTS_Q4_1 = 6`
pub const AERIE_WEIGHTS_Q4_1: i32 = 6;
/// each matrix in that of these which is nearest to what the source has it in
pub const AERIE_WEIGHTS_STORED: i32 = 7;
/// E2M1, a power of two for 32. A source's MXFP4 stays that, whatever is asked for, but f32 or bf16
pub const AERIE_WEIGHTS_MXFP4: i32 = 8;
/// `AERIE_INSPECT_TEXT = 0`
pub const AERIE_INSPECT_TEXT: i32 = 0;
/// `AERIE_INSPECT_JSON = 1`
pub const AERIE_INSPECT_JSON: i32 = 1;

/// `struct aerie_convert_options`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aerie_convert_options {
    /// `uint32_t struct_size`
    pub struct_size: u32,
    /// AERIE_WEIGHTS_\*
    pub dtype: i32,
    /// Hugging Face directory, GGUF, llama2.c .bin, head directory, or .aerie
    pub source: *const c_char,
    /// written under a temporary name, renamed when whole
    pub output: *const c_char,
    /// drafters: the target package
    pub drafter_for: *const c_char,
    /// llama2.c's tokenizer.bin, a tokenizer.json or tokenizer.model, or "none"; NULL: the source's own
    pub tokenizer: *const c_char,
    /// nonzero: zstd chunks (smaller file, unpacked at load)
    pub compress: i32,
    /// targets: the longest text they will read; 0: as long as they can (LongRoPE: the shorter of two)
    pub context: i32,
    /// NULL: none
    pub progress: aerie_progress_fn,
    /// `void *progress_user`
    pub progress_user: *mut c_void,
    /// what a user should know though it went well (level 1); NULL: silence
    pub log: aerie_log_fn,
    /// `void *log_user`
    pub log_user: *mut c_void,
    /// targets: rank of a candidate head to add; 0: as the source; -1: none
    pub candidate_rank: i32,
    /// AERIE_WEIGHTS_\* of the embedding and the LM head; 0: dtype's
    pub head_dtype: i32,
}
default_is_zero!(aerie_convert_options);

functions! {
    "aerie-text";
    /// Reads all of the source and writes one package (docs/package-format.md). Hooks are called on this thread. AERIE_E_NOT_FOUND,
    /// AERIE_E_IO: a file; AERIE_E_BAD_FORMAT; AERIE_E_UNSUPPORTED: no checkpoint that is known, or a setting that would be another
    /// model; AERIE_E_MISMATCH: source and drafter_for do not go together; AERIE_E_CANCELLED. Nothing is left behind then.
    fn aerie_convert(options: *const aerie_convert_options, err: *mut aerie_error) -> i32;
    /// A description of a package. \*text is malloc-owned by the library: free it with aerie_string_free.
    fn aerie_inspect(path: *const c_char, format: i32, text: *mut *mut c_char, err: *mut aerie_error) -> i32;
    /// `void aerie_string_free(char *text)`
    fn aerie_string_free(text: *mut c_char);
}

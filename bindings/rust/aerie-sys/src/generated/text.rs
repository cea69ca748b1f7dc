//! Generated from capi/include/aerie/text.h by bindings/generate.py: do not edit.

use core::marker::{PhantomData, PhantomPinned};
use std::os::raw::{c_char, c_void};
use super::*;

/// `AERIE_ENCODE_NO_BOS = 1`
pub const AERIE_ENCODE_NO_BOS: u32 = 1;
/// `AERIE_ENCODE_SPECIAL = 2`
pub const AERIE_ENCODE_SPECIAL: u32 = 2;

/// `struct aerie_tokenizer`
#[repr(C)]
pub struct aerie_tokenizer {
    _opaque: [u8; 0],
    _not_send: PhantomData<(*mut u8, PhantomPinned)>,
}

/// `struct aerie_decoder`
#[repr(C)]
pub struct aerie_decoder {
    _opaque: [u8; 0],
    _not_send: PhantomData<(*mut u8, PhantomPinned)>,
}

functions! {
    "aerie-text";
    /// From a package's "tokenizer" blob (aerie_model_blob). The bytes are copied. AERIE_E_NOT_FOUND: size 0, the package has
    /// none; AERIE_E_BAD_FORMAT; AERIE_E_UNSUPPORTED: of a newer version. \[any\]
    fn aerie_tokenizer_create(blob: *const c_void, size: usize, out: *mut *mut aerie_tokenizer, err: *mut aerie_error) -> i32;
    /// `void aerie_tokenizer_release(aerie_tokenizer *tokenizer)`
    fn aerie_tokenizer_release(tokenizer: *mut aerie_tokenizer);
    /// Fill a source for aerie_session_set_stop_strings. A session that has taken it holds the tokenizer, which may be released
    /// then. \[any\]
    fn aerie_tokenizer_source(tokenizer: *mut aerie_tokenizer, out: *mut aerie_token_source, err: *mut aerie_error) -> i32;
    /// Encode UTF-8. Writes at most `capacity` ids and sets \*n to the number needed; AERIE_E_LIMIT when
    /// that is more than capacity (ids may be NULL with capacity 0 to ask), AERIE_E_INVALID_ARGUMENT when the vocabulary has no
    /// token for a byte of it (SmolLM's lacks some that text hardly has). \[any\]
    fn aerie_tokenizer_encode(tokenizer: *const aerie_tokenizer, text: *const c_char, size: usize, flags: u32, ids: *mut i32, capacity: usize, n: *mut usize, err: *mut aerie_error) -> i32;
    /// Token ids are below it. \[any\]
    fn aerie_tokenizer_vocab_size(tokenizer: *const aerie_tokenizer) -> i32;
    /// Bytes of a token, as aerie_token_bytes_fn has them, and their number, not a code; alive as long as the tokenizer. \[any\]
    fn aerie_tokenizer_token_bytes(tokenizer: *const aerie_tokenizer, token: i32, previous: i32, bytes: *mut *const c_char) -> i32;
    /// Tokens to text without splitting a UTF-8 character. Retains the tokenizer. \[any\]
    fn aerie_decoder_create(tokenizer: *mut aerie_tokenizer, out: *mut *mut aerie_decoder, err: *mut aerie_error) -> i32;
    /// `void aerie_decoder_release(aerie_decoder *decoder)`
    fn aerie_decoder_release(decoder: *mut aerie_decoder);
    /// Push a token; \*text (complete characters, may be empty) is borrowed until the next call. \[decoder\]
    fn aerie_decoder_push(decoder: *mut aerie_decoder, token: i32, text: *mut *const c_char, size: *mut usize, err: *mut aerie_error) -> i32;
    /// What was held back, as U+FFFD; borrowed as above. The decoder is then fresh. \[decoder\]
    fn aerie_decoder_finish(decoder: *mut aerie_decoder, text: *mut *const c_char, size: *mut usize, err: *mut aerie_error) -> i32;
}

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

/// `struct aerie_grammar`
#[repr(C)]
pub struct aerie_grammar {
    _opaque: [u8; 0],
    _not_send: PhantomData<(*mut u8, PhantomPinned)>,
}

/// `struct aerie_grammar_options`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aerie_grammar_options {
    /// `uint32_t struct_size`
    pub struct_size: u32,
    /// `int32_t n_end_tokens`
    pub n_end_tokens: i32,
    /// allowed where the text is complete: aerie_model_info.eos_ids. Without any it ends there once
    /// nothing can follow (AERIE_FINISH_CONSTRAINT)
    pub end_tokens: *const i32,
}
default_is_zero!(aerie_grammar_options);

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
    /// From GBNF, llama.cpp's notation, whose start is the rule "root". Immutable, may be shared by sessions on many threads; retains the
    /// tokenizer. options may be NULL. AERIE_E_BAD_FORMAT: no grammar, with the line; AERIE_E_UNSUPPORTED: left recursion;
    /// AERIE_E_LIMIT: it grows too large. \[any\]
    fn aerie_grammar_create(tokenizer: *mut aerie_tokenizer, gbnf: *const c_char, options: *const aerie_grammar_options, out: *mut *mut aerie_grammar, err: *mut aerie_error) -> i32;
    /// JSON that a JSON Schema describes; "{}" is any JSON. AERIE_E_BAD_FORMAT: no JSON or no schema; AERIE_E_UNSUPPORTED: a keyword that
    /// is not known, by its path; AERIE_E_LIMIT as above. \[any\]
    fn aerie_grammar_create_json(tokenizer: *mut aerie_tokenizer, schema: *const c_char, options: *const aerie_grammar_options, out: *mut *mut aerie_grammar, err: *mut aerie_error) -> i32;
    /// `void aerie_grammar_release(aerie_grammar *grammar)`
    fn aerie_grammar_release(grammar: *mut aerie_grammar);
    /// Fill a constraint for aerie_session_set_constraint. A session that has taken it holds the grammar, which may be released
    /// then. \[any\]
    fn aerie_grammar_constraint(grammar: *mut aerie_grammar, out: *mut aerie_constraint, err: *mut aerie_error) -> i32;
}

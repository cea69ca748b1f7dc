//! Generated from capi/include/aerie/text.h by bindings/generate.py: do not edit.

use core::marker::{PhantomData, PhantomPinned};
use std::os::raw::{c_char, c_void};
use super::*;

/// `AERIE_ENCODE_NO_BOS = 1`
pub const AERIE_ENCODE_NO_BOS: u32 = 1;
/// `AERIE_ENCODE_SPECIAL = 2`
pub const AERIE_ENCODE_SPECIAL: u32 = 2;
/// as the model likes: a space or a line break with its indentation, or nothing, between tokens of JSON
pub const AERIE_JSON_FREE: i32 = 0;
/// a space behind : and behind , as Python's json.dumps writes it
pub const AERIE_JSON_ONE_LINE: i32 = 1;
/// no white space
pub const AERIE_JSON_COMPACT: i32 = 2;

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

/// `struct aerie_chat_template`
#[repr(C)]
pub struct aerie_chat_template {
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
    /// AERIE_JSON_\*, of aerie_grammar_create_json alone. What it leaves no choice about is not drafted by anyone,
    /// but verified at once: the less choice, the faster
    pub json_layout: i32,
    /// `int32_t reserved`
    pub reserved: i32,
}
default_is_zero!(aerie_grammar_options);

/// frozen
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aerie_chat_message {
    /// "system", "user", "assistant", ...
    pub role: *const c_char,
    /// `const char *content`
    pub content: *const c_char,
}
default_is_zero!(aerie_chat_message);

/// A conversation: messages, or messages_json. Texts are UTF-8 and end with a zero byte; all are read during the call alone.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aerie_chat_options {
    /// `uint32_t struct_size`
    pub struct_size: u32,
    /// nonzero: the text ends with what begins the model's answer, which comes next
    pub add_generation_prompt: i32,
    /// `const aerie_chat_message *messages`
    pub messages: *const aerie_chat_message,
    /// `int32_t n_messages`
    pub n_messages: i32,
    /// `int32_t reserved`
    pub reserved: i32,
    /// a list of objects, for what else messages have: tool_calls, reasoning_content, parts of a content.
    /// Members that are null are left out
    pub messages_json: *const c_char,
    /// a list of the tools' descriptions; NULL: none
    pub tools_json: *const c_char,
    /// an object: further variables, such as {"enable_thinking": false}; NULL: none
    pub variables_json: *const c_char,
}
default_is_zero!(aerie_chat_options);

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
    /// From a package's "chat_template" blob (aerie_model_blob), a Jinja template as transformers runs them. The model's tokenizer and
    /// info say what its bos_token and eos_token are; either may be NULL, and the template does without. Nothing is retained. Immutable,
    /// may be shared by threads. AERIE_E_NOT_FOUND: size 0, the package has none; AERIE_E_BAD_FORMAT: no template, with the line;
    /// AERIE_E_UNSUPPORTED: it uses what is not supported, by name and line; AERIE_E_LIMIT: longer than 1 MiB, or nested too deep. \[any\]
    fn aerie_chat_template_create(text: *const c_char, size: usize, tokenizer: *const aerie_tokenizer, info: *const aerie_model_info, out: *mut *mut aerie_chat_template, err: *mut aerie_error) -> i32;
    /// `void aerie_chat_template_release(aerie_chat_template *chat_template)`
    fn aerie_chat_template_release(chat_template: *mut aerie_chat_template);
    /// Writes the text, at most `capacity` bytes without a zero byte at the end, and sets \*size to the number needed; AERIE_E_LIMIT when
    /// that is more than capacity (out may be NULL with capacity 0 to ask). Encode it with AERIE_ENCODE_SPECIAL \| AERIE_ENCODE_NO_BOS: the
    /// template writes the model's markers, a BOS among them. AERIE_E_INVALID_ARGUMENT: the template refuses the conversation, in its
    /// own words (roles must alternate), or wants what is not there; AERIE_E_BAD_FORMAT: no JSON; AERIE_E_UNSUPPORTED as at create;
    /// AERIE_E_LIMIT, \*size untouched: it takes too many steps, too much memory, or writes more than 64 MiB. \[any\]
    fn aerie_chat_template_render(chat_template: *const aerie_chat_template, options: *const aerie_chat_options, out: *mut c_char, capacity: usize, size: *mut usize, err: *mut aerie_error) -> i32;
}

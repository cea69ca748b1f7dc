//! Text of a given form.
use std::os::raw::c_char;
use std::ptr::null_mut;
use std::sync::Arc;

use aerie_sys as sys;

use crate::error::{c_string, check, sized, Result};
use crate::text::Tokenizer;

/// A form that text is to have, for [`Session::set_grammar`](crate::Session::set_grammar): immutable, for any thread and any
/// number of sessions. Clones are the same grammar.
///
/// `end_tokens` are allowed where the text is complete: the model's
/// [`eos_ids`](crate::ModelInfo::eos_ids). Without any it ends once nothing can follow
/// ([`Finish::Constraint`](crate::Finish::Constraint)).
#[derive(Clone)]
pub struct Grammar(Arc<Inner>);

struct Inner(*mut sys::aerie_grammar);

unsafe impl Send for Inner {}
unsafe impl Sync for Inner {}

impl Drop for Inner {
    fn drop(&mut self) {
        unsafe { sys::aerie_grammar_release(self.0) }
    }
}

/// How JSON is laid out. The less it leaves open, the faster the text comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JsonLayout {
    /// As the model likes: a space or a line break with its indentation, or nothing, between tokens of JSON.
    #[default]
    Free,
    /// In one line, with a space behind `:` and `,`.
    OneLine,
    /// Without white space.
    Compact,
}

type Create = unsafe extern "C" fn(
    *mut sys::aerie_tokenizer,
    *const c_char,
    *const sys::aerie_grammar_options,
    *mut *mut sys::aerie_grammar,
    *mut sys::aerie_error,
) -> i32;

impl Grammar {
    /// From GBNF, llama.cpp's notation, whose start is the rule `root`. [`Code::BadFormat`](crate::Code::BadFormat) names
    /// the line.
    pub fn gbnf(tokenizer: &Tokenizer, gbnf: &str, end_tokens: &[i32]) -> Result<Self> {
        Self::create(sys::aerie_grammar_create, tokenizer, gbnf, end_tokens, JsonLayout::Free)
    }

    /// JSON that a JSON Schema describes; `{}` is any JSON. [`Code::Unsupported`](crate::Code::Unsupported) names a keyword
    /// that is not known.
    pub fn json(tokenizer: &Tokenizer, schema: &str, end_tokens: &[i32]) -> Result<Self> {
        Self::json_with_layout(tokenizer, schema, end_tokens, JsonLayout::Free)
    }

    /// The same, laid out in a certain way.
    pub fn json_with_layout(tokenizer: &Tokenizer, schema: &str, end_tokens: &[i32], layout: JsonLayout) -> Result<Self> {
        Self::create(sys::aerie_grammar_create_json, tokenizer, schema, end_tokens, layout)
    }

    fn create(create: Create, tokenizer: &Tokenizer, text: &str, end_tokens: &[i32], layout: JsonLayout) -> Result<Self> {
        let text = c_string(text)?;
        let options = sized!(aerie_grammar_options {
            n_end_tokens: end_tokens.len() as i32,
            end_tokens: end_tokens.as_ptr(),
            json_layout: layout as i32,
        });
        let mut raw = null_mut();
        check(|e| unsafe { create(tokenizer.raw(), text.as_ptr(), &options, &mut raw, e) })?;
        Ok(Grammar(Arc::new(Inner(raw))))
    }

    /// For a session. Who takes it holds the grammar.
    pub(crate) fn constraint(&self) -> Result<sys::aerie_constraint> {
        let mut constraint = sized!(aerie_constraint {});
        check(|e| unsafe { sys::aerie_grammar_constraint(self.0 .0, &mut constraint, e) })?;
        Ok(constraint)
    }
}

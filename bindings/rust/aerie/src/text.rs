//! Tokens from text and text from tokens.
use std::marker::PhantomData;
use std::ptr::{null, null_mut};
use std::sync::Arc;

use aerie_sys as sys;

use crate::error::{check, ensure_loaded, sized, slice, Code, Error, Result};
use crate::model::Model;
use crate::step::Token;

/// A model's tokenizer: immutable, for any thread. Clones are the same tokenizer.
#[derive(Clone)]
pub struct Tokenizer(Arc<Inner>);

struct Inner(*mut sys::aerie_tokenizer);

unsafe impl Send for Inner {}
unsafe impl Sync for Inner {}

impl Drop for Inner {
    fn drop(&mut self) {
        unsafe { sys::aerie_tokenizer_release(self.0) }
    }
}

/// How text becomes tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Encoding {
    /// Leave out the token that begins a text.
    pub no_bos: bool,
    /// Spelled special tokens, such as `<|endoftext|>`, are those tokens. Not for text of strangers.
    pub special: bool,
}

impl Tokenizer {
    /// The tokenizer in a model's package.
    pub fn of(model: &Model) -> Result<Self> {
        match model.blob("tokenizer")? {
            [] => Err(Error::new(Code::NotFound, "the model's package has no tokenizer")),
            blob => Self::from_blob(blob),
        }
    }

    /// From the bytes of a package's tokenizer, which are copied.
    pub fn from_blob(blob: &[u8]) -> Result<Self> {
        ensure_loaded()?;
        let mut raw = null_mut();
        check(|e| unsafe { sys::aerie_tokenizer_create(blob.as_ptr().cast(), blob.len(), &mut raw, e) })?;
        Ok(Tokenizer(Arc::new(Inner(raw))))
    }

    /// Tokens of a text, with what begins a text.
    pub fn encode(&self, text: &str) -> Result<Vec<i32>> {
        self.encode_with(text, Encoding::default())
    }

    /// Tokens of a text.
    pub fn encode_with(&self, text: &str, how: Encoding) -> Result<Vec<i32>> {
        let mut flags = 0;
        if how.no_bos {
            flags |= sys::AERIE_ENCODE_NO_BOS;
        }
        if how.special {
            flags |= sys::AERIE_ENCODE_SPECIAL;
        }
        let mut ids = vec![0; text.len() + 8]; // seldom more than a token a byte
        loop {
            let mut n = 0;
            let outcome = check(|e| unsafe {
                let text_bytes = text.as_ptr().cast();
                sys::aerie_tokenizer_encode(self.0 .0, text_bytes, text.len(), flags, ids.as_mut_ptr(), ids.len(), &mut n, e)
            });
            match outcome {
                Err(e) if e.code() == Code::Limit && n > ids.len() => ids.resize(n, 0),
                other => {
                    ids.truncate(n);
                    return other.map(|_| ids);
                }
            }
        }
    }

    /// Tokens there are.
    pub fn vocab_size(&self) -> i32 {
        unsafe { sys::aerie_tokenizer_vocab_size(self.0 .0) }
    }

    /// The bytes of a token in running text (after `previous`); they need not be whole characters.
    pub fn token_bytes(&self, token: i32, previous: Option<i32>) -> Option<&[u8]> {
        let mut bytes = null();
        let n = unsafe { sys::aerie_tokenizer_token_bytes(self.0 .0, token, previous.unwrap_or(-1), &mut bytes) };
        (n >= 0).then(|| unsafe { slice(bytes.cast(), n as usize) })
    }

    /// A fresh decoder.
    pub fn decoder(&self) -> Result<Decoder> {
        let mut raw = null_mut();
        check(|e| unsafe { sys::aerie_decoder_create(self.0 .0, &mut raw, e) })?;
        Ok(Decoder { raw, _not_sync: PhantomData })
    }

    /// Tokens, such as those of [`Session::generate`](crate::Session::generate), as pieces of text.
    pub fn decode<I: Iterator<Item = Result<Token>>>(&self, tokens: I) -> Result<Pieces<I>> {
        Ok(Pieces { tokens, decoder: Some(self.decoder()?) })
    }

    pub(crate) fn raw(&self) -> *mut sys::aerie_tokenizer {
        self.0 .0
    }

    /// For stop strings. Who takes it holds the tokenizer.
    pub(crate) fn source(&self) -> Result<sys::aerie_token_source> {
        let mut source = sized!(aerie_token_source {});
        check(|e| unsafe { sys::aerie_tokenizer_source(self.0 .0, &mut source, e) })?;
        Ok(source)
    }
}

/// Tokens to text without splitting a character. May move to another thread.
pub struct Decoder {
    raw: *mut sys::aerie_decoder,
    _not_sync: PhantomData<*mut ()>,
}

unsafe impl Send for Decoder {}

impl Drop for Decoder {
    fn drop(&mut self) {
        unsafe { sys::aerie_decoder_release(self.raw) }
    }
}

impl Decoder {
    /// Push a token; the characters that are whole now, perhaps none.
    pub fn push(&mut self, token: i32) -> Result<&str> {
        let (mut text, mut size) = (null(), 0);
        check(|e| unsafe { sys::aerie_decoder_push(self.raw, token, &mut text, &mut size, e) })?;
        utf8(unsafe { slice(text.cast(), size) })
    }

    /// What was held back, as U+FFFD. The decoder is then fresh.
    pub fn finish(&mut self) -> Result<&str> {
        let (mut text, mut size) = (null(), 0);
        check(|e| unsafe { sys::aerie_decoder_finish(self.raw, &mut text, &mut size, e) })?;
        utf8(unsafe { slice(text.cast(), size) })
    }
}

fn utf8(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|e| Error::new(Code::Internal, e.to_string()))
}

/// Pieces of text, none of them empty; made by [`Tokenizer::decode`].
pub struct Pieces<I> {
    tokens: I,
    decoder: Option<Decoder>, // none: finished
}

impl<I: Iterator<Item = Result<Token>>> Iterator for Pieces<I> {
    type Item = Result<String>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let decoder = self.decoder.as_mut()?;
            let (piece, last) = match self.tokens.next() {
                Some(Ok(token)) => (decoder.push(token.id()), false),
                Some(Err(error)) => (Err(error), true),
                None => (decoder.finish(), true),
            };
            let piece = piece.map(str::to_owned);
            if last || piece.is_err() {
                self.decoder = None;
            }
            if !matches!(&piece, Ok(text) if text.is_empty()) {
                return Some(piece);
            }
        }
    }
}

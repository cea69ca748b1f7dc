//! Conversations as the text that a model was trained on.
use std::ffi::CString;
use std::ptr::{null, null_mut};
use std::sync::Arc;

use aerie_sys as sys;

use crate::error::{c_string, check, ensure_loaded, sized, Code, Error, Result};
use crate::model::Model;
use crate::text::Tokenizer;

/// A model's chat template, a Jinja program as Hugging Face has them: immutable, for any thread. Clones are the same template.
#[derive(Clone)]
pub struct ChatTemplate(Arc<Inner>);

struct Inner(*mut sys::aerie_chat_template);

unsafe impl Send for Inner {}
unsafe impl Sync for Inner {}

impl Drop for Inner {
    fn drop(&mut self) {
        unsafe { sys::aerie_chat_template_release(self.0) }
    }
}

/// A conversation: `messages`, or `messages_json`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Chat<'a> {
    /// Roles and contents.
    pub messages: &'a [(&'a str, &'a str)],
    /// A list of objects, for what else messages have, such as `tool_calls`.
    pub messages_json: Option<&'a str>,
    /// A list of the tools' descriptions.
    pub tools_json: Option<&'a str>,
    /// An object: the template's further variables, such as `{"enable_thinking": false}`.
    pub variables_json: Option<&'a str>,
    /// End with what begins the model's answer.
    pub add_generation_prompt: bool,
}

impl ChatTemplate {
    /// The template in a model's package.
    pub fn of(model: &Model) -> Result<Self> {
        match model.blob("chat_template")? {
            [] => Err(Error::new(Code::NotFound, "the model's package has no chat template")),
            text => Self::create(text, Some(model)),
        }
    }

    /// From its text. `bos_token` and `eos_token` are those of the model. [`Code::BadFormat`] names the line, [`Code::Unsupported`] also
    /// what is not supported.
    pub fn new(text: &str, model: Option<&Model>) -> Result<Self> {
        Self::create(text.as_bytes(), model)
    }

    fn create(text: &[u8], model: Option<&Model>) -> Result<Self> {
        ensure_loaded()?;
        let mut raw = null_mut();
        let mut create = |tokenizer, info| {
            check(|e| unsafe { sys::aerie_chat_template_create(text.as_ptr().cast(), text.len(), tokenizer, info, &mut raw, e) })
        };
        match model {
            None => create(null(), null())?,
            Some(model) => {
                let tokenizer = Tokenizer::of(model)?;
                let mut info = sized!(aerie_model_info {});
                check(|e| unsafe { sys::aerie_model_info_get(model.raw(), &mut info, e) })?;
                create(tokenizer.raw(), &info)?
            }
        }
        Ok(ChatTemplate(Arc::new(Inner(raw))))
    }

    /// The conversation as one text; encode it with [`Encoding`](crate::Encoding) `{ no_bos: true, special: true }`.
    /// [`Code::InvalidArgument`]: the template refuses it, and says why.
    pub fn render(&self, chat: &Chat) -> Result<String> {
        let optional = |text: Option<&str>| text.map(c_string).transpose();
        let pointer = |text: &Option<CString>| text.as_ref().map_or(null(), |t| t.as_ptr());
        let texts = chat
            .messages
            .iter()
            .map(|(role, content)| Ok((c_string(*role)?, c_string(*content)?)))
            .collect::<Result<Vec<_>>>()?;
        let messages: Vec<_> = texts
            .iter()
            .map(|(role, content)| sys::aerie_chat_message { role: role.as_ptr(), content: content.as_ptr() })
            .collect();
        let (messages_json, tools, variables) =
            (optional(chat.messages_json)?, optional(chat.tools_json)?, optional(chat.variables_json)?);
        let options = sized!(aerie_chat_options {
            add_generation_prompt: chat.add_generation_prompt as i32,
            messages: messages.as_ptr(),
            n_messages: messages.len() as i32,
            messages_json: pointer(&messages_json),
            tools_json: pointer(&tools),
            variables_json: pointer(&variables),
        });
        let mut text = vec![0u8; 4096];
        loop {
            let mut size = 0;
            let outcome = check(|e| unsafe {
                sys::aerie_chat_template_render(self.0 .0, &options, text.as_mut_ptr().cast(), text.len(), &mut size, e)
            });
            match outcome {
                Err(e) if e.code() == Code::Limit && size > text.len() => text.resize(size, 0),
                other => {
                    other?;
                    text.truncate(size);
                    return Ok(String::from_utf8_lossy(&text).into_owned());
                }
            }
        }
    }
}

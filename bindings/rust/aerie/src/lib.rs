#![doc = include_str!("../README.md")]
#![deny(missing_docs)]

mod batch;
mod chat;
mod constraint;
mod error;
mod evaluate;
mod generate;
mod grammar;
mod hooks;
mod model;
mod options;
mod profile;
mod runtime;
mod session;
mod statistics;
mod step;
mod stream;
mod text;
mod tools;

pub use aerie_sys as sys;
#[cfg(feature = "load")]
pub use loading::load;

pub use batch::{Batch, BatchStep, Member, SessionId};
pub use chat::{Chat, ChatTemplate};
pub use constraint::{Allowed, Constraint, Failure};
pub use error::{Code, Error, Result};
pub use evaluate::Evaluation;
pub use generate::Generate;
pub use grammar::{Grammar, JsonLayout};
pub use hooks::{Allocator, JobSystem, LogHook, LogLevel};
pub use model::{Drafter, DrafterOptions, KvDtype, KvFull, Model, ModelInfo, ModelOptions, Progress};
pub use options::{DraftNoise, Policy, Sampling, SessionOptions, Tree, Verify};
pub use profile::{Profile, ProfileOptions};
pub use runtime::{PluginEntry, PluginInfo, Runtime, RuntimeOptions};
pub use session::{CancelHandle, Session};
pub use statistics::Statistics;
pub use step::{Finish, State, Step, StepOptions, Token};
pub use stream::TokenStream;
pub use text::{Decoder, Encoding, Pieces, Tokenizer};
pub use tools::{convert, inspect, ConvertOptions, Weights};

/// The library's version: (major, minor, patch).
pub fn version() -> Result<(u32, u32, u32)> {
    error::ensure_loaded()?;
    let v = unsafe { sys::aerie_version() };
    Ok((v >> 16, v >> 8 & 0xff, v & 0xff))
}

#[cfg(feature = "load")]
mod loading {
    use crate::error::{Code, Error, Result};
    use std::path::Path;

    /// Load the library from a directory, or, with `None`, from where the system's loader looks, which is also what
    /// happens at the first use. Once it is loaded, further calls do nothing.
    pub fn load(directory: Option<&Path>) -> Result<()> {
        aerie_sys::load(directory).map_err(|e| Error::new(Code::NotFound, e.to_string()))
    }
}

//! Generated from capi/include/aerie/*.h by bindings/generate.py: do not edit.

pub(crate) mod aerie;
pub(crate) mod profile;
pub(crate) mod text;
pub(crate) mod tools;
pub(crate) mod drafter;

pub use aerie::*;
pub use profile::*;
pub use text::*;
pub use tools::*;
pub use drafter::*;

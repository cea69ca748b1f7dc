//! Generated from capi/include/aerie/*.h by bindings/generate.py: do not edit.

pub mod aerie;
pub mod profile;
pub mod text;
pub mod tools;
pub mod drafter;

pub use aerie::*;
pub use profile::*;
pub use text::*;
pub use tools::*;
pub use drafter::*;

#![doc = include_str!("../README.md")]
#![deny(missing_docs)]
#![allow(non_camel_case_types)]

/// Every field of a generated struct may be zero: numbers, pointers and optional functions.
macro_rules! default_is_zero {
    ($name:ident) => {
        impl Default for $name {
            fn default() -> Self {
                unsafe { core::mem::zeroed() }
            }
        }
    };
}

/// What the `functions!` of a generated module becomes: declarations to link with, ...
#[cfg(all(feature = "link", not(feature = "load")))]
macro_rules! functions {
    ($library:literal; $($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),*) $(-> $ret:ty)?;)*) => {
        extern "C" {
            $($(#[$doc])* pub fn $name($($arg: $type),*) $(-> $ret)?;)*
        }
    };
}

/// ... or functions of the same names and types that call through a table which `load` fills, ...
#[cfg(feature = "load")]
macro_rules! functions {
    ($library:literal; $($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),*) $(-> $ret:ty)?;)*) => {
        struct Table {
            $($name: unsafe extern "C" fn($($type),*) $(-> $ret)?,)*
        }
        static TABLE: std::sync::atomic::AtomicPtr<Table> = std::sync::atomic::AtomicPtr::new(std::ptr::null_mut());

        /// Find this module's functions in a library. The table stays for good, as the library does.
        pub(crate) fn resolve(library: &crate::load::Library) -> Result<(), crate::load::LoadError> {
            let table = Table {
                // A symbol's address, as what the header says it is.
                $($name: unsafe { std::mem::transmute::<*mut std::os::raw::c_void, unsafe extern "C" fn($($type),*) $(-> $ret)?>(
                    library.symbol(concat!(stringify!($name), "\0"))?) },)*
            };
            TABLE.store(Box::into_raw(Box::new(table)), std::sync::atomic::Ordering::Release);
            Ok(())
        }

        $($(#[$doc])*
        pub unsafe extern "C" fn $name($($arg: $type),*) $(-> $ret)? {
            let table = TABLE.load(std::sync::atomic::Ordering::Acquire).as_ref();
            (table.expect("aerie_sys::load comes before any call").$name)($($arg),*)
        })*
    };
}

/// ... or nothing, for those who only need the types.
#[cfg(not(any(feature = "link", feature = "load")))]
macro_rules! functions {
    ($($ignored:tt)*) => {};
}

// The headers say when a call is safe; imports are unused where functions! is nothing.
#[allow(clippy::missing_safety_doc, unused_imports)]
#[rustfmt::skip] // generate.py lays it out
mod generated;
#[cfg(feature = "load")]
mod load;

pub use generated::*;
#[cfg(feature = "load")]
pub use load::{load, LoadError};

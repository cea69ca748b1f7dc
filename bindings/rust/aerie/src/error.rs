//! The library's codes as a Rust error, and what every call goes through.
use std::ffi::{CStr, CString};
use std::fmt;
use std::os::raw::c_char;
use std::path::Path;

use aerie_sys as sys;

/// What kind of failure it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Code {
    /// An argument is wrong.
    InvalidArgument,
    /// There is no such file, plugin or thing.
    NotFound,
    /// Reading or writing failed.
    Io,
    /// A damaged or hostile file.
    BadFormat,
    /// Things that do not belong together.
    Mismatch,
    /// Valid, but this library does not do it.
    Unsupported,
    /// No memory is left.
    OutOfMemory,
    /// Somebody cancelled.
    Cancelled,
    /// A stated limit is reached.
    Limit,
    /// A plugin failed.
    Plugin,
    /// The device failed.
    Device,
    /// The object is in use elsewhere.
    Busy,
    /// A fault of the library.
    Internal,
    /// A code of a newer library.
    Other(i32),
}

impl Code {
    fn from_raw(code: i32) -> Self {
        match code {
            sys::AERIE_E_INVALID_ARGUMENT => Code::InvalidArgument,
            sys::AERIE_E_NOT_FOUND => Code::NotFound,
            sys::AERIE_E_IO => Code::Io,
            sys::AERIE_E_BAD_FORMAT => Code::BadFormat,
            sys::AERIE_E_MISMATCH => Code::Mismatch,
            sys::AERIE_E_UNSUPPORTED => Code::Unsupported,
            sys::AERIE_E_OUT_OF_MEMORY => Code::OutOfMemory,
            sys::AERIE_E_CANCELLED => Code::Cancelled,
            sys::AERIE_E_LIMIT => Code::Limit,
            sys::AERIE_E_PLUGIN => Code::Plugin,
            sys::AERIE_E_DEVICE => Code::Device,
            sys::AERIE_E_BUSY => Code::Busy,
            sys::AERIE_E_INTERNAL => Code::Internal,
            other => Code::Other(other),
        }
    }
}

/// A failure: its kind, and one line that names the file, tensor or field.
#[derive(Clone, Debug)]
pub struct Error {
    code: Code,
    message: String,
}

/// What fails with an [`Error`], if nothing else is said.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Error { code, message: message.into() }
    }

    /// The kind of failure.
    pub fn code(&self) -> Code {
        self.code
    }

    /// The library's words.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// A struct of the C API whose size is set and whose other fields are zero.
macro_rules! sized {
    ($name:ident { $($field:ident: $value:expr),* $(,)? }) => {
        {
            #[allow(clippy::needless_update)] // not every struct has fields left to be zero
            let sized = aerie_sys::$name {
                struct_size: std::mem::size_of::<aerie_sys::$name>() as u32,
                $($field: $value,)*
                ..Default::default()
            };
            sized
        }
    };
}
pub(crate) use sized;

/// Call a function whose last argument is the error.
pub(crate) fn check(call: impl FnOnce(*mut sys::aerie_error) -> i32) -> Result<()> {
    let mut error = sized!(aerie_error {});
    match call(&mut error) {
        sys::AERIE_OK => Ok(()),
        code => Err(Error::new(Code::from_raw(code), unsafe { string(error.message.as_ptr()) })),
    }
}

/// A copy of a C string; NULL is empty.
pub(crate) unsafe fn string(text: *const c_char) -> String {
    if text.is_null() {
        String::new()
    } else {
        CStr::from_ptr(text).to_string_lossy().into_owned()
    }
}

pub(crate) fn c_string(text: impl Into<Vec<u8>>) -> Result<CString> {
    CString::new(text).map_err(|_| Error::new(Code::InvalidArgument, "a text with a NUL in it"))
}

#[cfg(unix)]
pub(crate) fn c_path(path: &Path) -> Result<CString> {
    use std::os::unix::ffi::OsStrExt;
    c_string(path.as_os_str().as_bytes())
}

#[cfg(not(unix))]
pub(crate) fn c_path(path: &Path) -> Result<CString> {
    match path.to_str() {
        Some(text) => c_string(text),
        None => Err(Error::new(Code::InvalidArgument, format!("{}: not Unicode", path.display()))),
    }
}

/// `n` values from `data`; an empty slice may come as NULL.
pub(crate) unsafe fn slice<'a, T>(data: *const T, n: usize) -> &'a [T] {
    if n == 0 || data.is_null() {
        &[]
    } else {
        std::slice::from_raw_parts(data, n)
    }
}

/// With the `load` feature, the library must be there before the first call.
pub(crate) fn ensure_loaded() -> Result<()> {
    #[cfg(feature = "load")]
    crate::load(None)?;
    Ok(())
}

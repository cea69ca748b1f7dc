//! The libraries at run time: opened once, never closed.
use std::ffi::{CString, OsStr};
use std::fmt;
use std::os::raw::c_void;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::generated::{aerie, profile, text, tools};

/// Of libaerie and libaerie-text.
const SONAME: u32 = 1;

/// Why a library could not be loaded.
#[derive(Clone, Debug)]
pub struct LoadError(String);

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for LoadError {}

pub(crate) struct Library {
    name: PathBuf,
    handle: *mut c_void,
}

impl Library {
    /// `name` ends with NUL.
    pub(crate) fn symbol(&self, name: &str) -> Result<*mut c_void, LoadError> {
        let address = unsafe { os::symbol(self.handle, name.as_ptr().cast()) };
        if address.is_null() {
            let name = name.trim_end_matches('\0');
            return Err(LoadError(format!("{} has no {name}: it is older than this crate", self.name.display())));
        }
        Ok(address)
    }
}

/// Load `libaerie` and `libaerie-text` from a directory, or, with `None`, from where the system's loader looks.
/// After it has succeeded once, further calls do nothing.
pub fn load(directory: Option<&Path>) -> Result<(), LoadError> {
    static LOADED: Mutex<bool> = Mutex::new(false);
    let mut loaded = LOADED.lock().unwrap_or_else(|e| e.into_inner());
    if *loaded {
        return Ok(());
    }
    let core = open(directory, "aerie")?;
    aerie::resolve(&core)?;
    profile::resolve(&core)?;
    let words = open(directory, "aerie-text")?;
    text::resolve(&words)?;
    tools::resolve(&words)?;
    *loaded = true;
    Ok(())
}

/// The SONAME first: it comes with every installation, the bare name with headers only.
fn open(directory: Option<&Path>, stem: &str) -> Result<Library, LoadError> {
    let names = if cfg!(windows) {
        vec![format!("{stem}.dll")]
    } else if cfg!(target_os = "macos") {
        vec![format!("lib{stem}.{SONAME}.dylib"), format!("lib{stem}.dylib")]
    } else {
        vec![format!("lib{stem}.so.{SONAME}"), format!("lib{stem}.so")]
    };
    let mut why = String::new();
    for name in names {
        let name = directory.map_or_else(|| PathBuf::from(&name), |d| d.join(&name));
        match os::open(name.as_os_str()) {
            Ok(handle) => return Ok(Library { name, handle }),
            Err(e) if why.is_empty() => why = format!("{}: {e}", name.display()),
            Err(_) => {}
        }
    }
    Err(LoadError(why))
}

#[cfg(unix)]
mod os {
    use super::*;
    use std::ffi::CStr;
    use std::os::raw::{c_char, c_int};
    use std::os::unix::ffi::OsStrExt;

    const RTLD_NOW: c_int = 2;

    #[cfg_attr(target_os = "linux", link(name = "dl"))]
    extern "C" {
        fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
        fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
        fn dlerror() -> *const c_char;
    }

    pub fn open(name: &OsStr) -> Result<*mut c_void, String> {
        let name = CString::new(name.as_bytes()).map_err(|e| e.to_string())?;
        unsafe {
            let handle = dlopen(name.as_ptr(), RTLD_NOW);
            if !handle.is_null() {
                return Ok(handle);
            }
            let why = dlerror();
            Err(if why.is_null() { "unknown error".into() } else { CStr::from_ptr(why).to_string_lossy().into_owned() })
        }
    }

    pub unsafe fn symbol(handle: *mut c_void, name: *const c_char) -> *mut c_void {
        dlsym(handle, name)
    }
}

#[cfg(windows)]
mod os {
    use super::*;
    use std::os::raw::c_char;
    use std::os::windows::ffi::OsStrExt;

    #[link(name = "kernel32")]
    extern "system" {
        fn LoadLibraryW(path: *const u16) -> *mut c_void;
        fn GetProcAddress(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    }

    pub fn open(name: &OsStr) -> Result<*mut c_void, String> {
        let wide: Vec<u16> = name.encode_wide().chain([0]).collect();
        let handle = unsafe { LoadLibraryW(wide.as_ptr()) };
        if handle.is_null() {
            return Err(std::io::Error::last_os_error().to_string());
        }
        Ok(handle)
    }

    pub unsafe fn symbol(handle: *mut c_void, name: *const c_char) -> *mut c_void {
        GetProcAddress(handle, name)
    }
}

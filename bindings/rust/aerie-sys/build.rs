//! Finds libaerie and libaerie-text: `AERIE_DIR`, else pkg-config. Downloads and builds nothing.
use std::env;
use std::path::{Path, PathBuf};
use std::process::{exit, Command};

const LIBRARIES: [&str; 2] = ["aerie", "aerie-text"];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=AERIE_DIR");
    println!("cargo:rerun-if-env-changed=PKG_CONFIG_PATH");
    let on = |feature: &str| env::var_os(format!("CARGO_FEATURE_{feature}")).is_some();
    if !on("LINK") || on("LOAD") || env::var_os("DOCS_RS").is_some() {
        return;
    }
    let found = match env::var_os("AERIE_DIR") {
        Some(dir) => beneath(Path::new(&dir)),
        None => pkg_config(),
    };
    match found {
        Ok(libdir) => {
            println!("cargo:rustc-link-search=native={}", libdir.display());
            println!("cargo:libdir={}", libdir.display());
            for library in LIBRARIES {
                println!("cargo:rustc-link-lib=dylib={library}");
            }
        }
        Err(why) => {
            eprintln!("aerie-sys: {why}\nSet AERIE_DIR to where Aerie is installed, or PKG_CONFIG_PATH to its pkgconfig folder.");
            exit(1);
        }
    }
}

/// The folder of `dir` that has the shared library.
fn beneath(dir: &Path) -> Result<PathBuf, String> {
    let arch = env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    let folders = ["lib".to_string(), "lib64".to_string(), format!("lib/{arch}-linux-gnu")];
    let names = ["libaerie.so", "libaerie.dylib", "aerie.lib", "libaerie.dll.a"];
    folders
        .iter()
        .map(|folder| dir.join(folder))
        .find(|folder| names.iter().any(|name| folder.join(name).exists()))
        .ok_or_else(|| format!("AERIE_DIR is {}, which has no lib/libaerie.so", dir.display()))
}

fn pkg_config() -> Result<PathBuf, String> {
    let program = env::var("PKG_CONFIG").unwrap_or_else(|_| "pkg-config".into());
    let ask = |arguments: &[&str]| -> Result<String, String> {
        let out = Command::new(&program).args(arguments).output().map_err(|e| format!("{program}: {e}"))?;
        if !out.status.success() {
            return Err(String::from_utf8_lossy(&out.stderr).trim().to_string());
        }
        Ok(String::from_utf8_lossy(&out.stdout).trim().to_string())
    };
    for library in LIBRARIES {
        ask(&["--print-errors", "--exists", &format!("{library} >= {}", env!("CARGO_PKG_VERSION"))])?;
    }
    ask(&["--variable=libdir", "aerie"]).map(PathBuf::from)
}

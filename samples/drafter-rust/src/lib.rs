//! A drafter for Aerie in Rust: this file is the plugin's door, `lookup.rs` the idea. It needs `drafter.h` alone.
//!   cargo build --release && aerie run --model T.aerie --plugin $PWD/target/release/libdrafter_rust.so --drafter lookup-rust ...
//!
//! No panic leaves it, and none is printed: every call of the host goes through [`guard`].
mod lookup;

use std::os::raw::{c_char, c_void};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr::null_mut;

use aerie_sys::*;

fn guard(call: impl FnOnce() -> i32) -> i32 {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or(AERIE_D_FAILED)
}

/// Write a text into a fixed array of the ABI, with its NUL.
fn fill(out: &mut [c_char], text: &str) {
    for (o, byte) in out.iter_mut().zip(text.bytes().chain([0])) {
        *o = byte as c_char;
    }
}

unsafe extern "C" fn describe(i: u32, out: *mut aerie_drafter_desc) -> i32 {
    guard(|| {
        if i > 0 {
            return AERIE_D_INVALID;
        }
        let out = &mut *out;
        out.flags = AERIE_DRAFTER_HOST_TOKENS | AERIE_DRAFTER_NO_PACKAGE;
        fill(&mut out.id, "lookup-rust");
        fill(&mut out.title, "Prompt lookup with two opinions");
        fill(&mut out.version, env!("CARGO_PKG_VERSION"));
        AERIE_D_OK
    })
}

unsafe extern "C" fn create(
    _host: *const aerie_drafter_host,
    _id: *const c_char,
    out: *mut aerie_drafter,
    _err: *mut aerie_drafter_error,
) -> i32 {
    // This library has a copy of std of its own, so the hook is nobody else's.
    std::panic::set_hook(Box::new(|_| {}));
    guard(|| {
        let out = &mut *out;
        out.self_ = null_mut(); // it remembers nothing: the text says it all
        out.destroy = Some(destroy);
        out.open = Some(open);
        out.begin = Some(begin);
        out.end = Some(end);
        out.propose_host = Some(propose_host);
        AERIE_D_OK
    })
}

unsafe extern "C" fn destroy(_self: *mut c_void) {}

unsafe extern "C" fn open(
    _self: *mut c_void,
    _info: *const aerie_drafter_open_info,
    needs: *mut aerie_drafter_needs,
    _err: *mut aerie_drafter_error,
) -> i32 {
    (*needs).levels = 1;
    AERIE_D_OK
}

unsafe extern "C" fn begin(_self: *mut c_void, _seq: i32) -> i32 {
    AERIE_D_OK
}

unsafe extern "C" fn end(_self: *mut c_void, _seq: i32) {}

unsafe extern "C" fn propose_host(
    _self: *mut c_void,
    context: *const aerie_host_context,
    out: *mut aerie_host_candidates,
) -> i32 {
    guard(|| {
        let (context, out) = (&*context, &mut *out);
        let room = out.capacity as usize;
        let text = std::slice::from_raw_parts(context.tokens, context.n_tokens as usize);
        let mut tree = lookup::Tree {
            token: std::slice::from_raw_parts_mut(out.token, room),
            parent: std::slice::from_raw_parts_mut(out.parent, room),
            confidence: std::slice::from_raw_parts_mut(out.confidence, room),
            count: 0,
        };
        lookup::propose(text, context.max_depth as usize, &mut tree);
        out.count = tree.count as i32;
        AERIE_D_OK
    })
}

static TABLE: aerie_drafter_plugin_table = aerie_drafter_plugin_table {
    struct_size: std::mem::size_of::<aerie_drafter_plugin_table>() as u32,
    abi_major: AERIE_DRAFTER_ABI_MAJOR,
    abi_min_minor: 0,
    abi_built_minor: AERIE_DRAFTER_ABI_MINOR,
    describe: Some(describe),
    create: Some(create),
};

/// The one exported symbol.
#[no_mangle]
pub extern "C" fn aerie_drafter_plugin_entry() -> *const aerie_drafter_plugin_table {
    &TABLE
}

"""aerie-sys: one module a header, and a test of the layout."""
import re

from . import api

SCALARS = {"char": "c_char", "void": "c_void", "int8_t": "i8", "uint8_t": "u8", "int16_t": "i16", "uint16_t": "u16",
           "int32_t": "i32", "uint32_t": "u32", "int64_t": "i64", "uint64_t": "u64", "size_t": "usize", "float": "f32",
           "double": "f64"}
KEYWORDS = {"fn", "type", "in", "ref", "move", "box", "use", "mod", "match", "loop", "where", "final"}
NOTE = "//! Generated from capi/include/aerie/{} by bindings/generate.py: do not edit.\n"
CRATE = "bindings/rust/aerie-sys/"


def files(headers, layout):
    out = {f"{CRATE}src/generated/{h.name[:-2]}.rs": _module(h, layout) for h in headers}
    out[f"{CRATE}src/generated/mod.rs"] = _index(headers)
    out[f"{CRATE}tests/layout.rs"] = _layout_test(headers, layout)
    return out


def _index(headers):
    names = [h.name[:-2] for h in headers]
    return (NOTE.format("*.h") + "\n" + "".join(f"pub(crate) mod {n};\n" for n in names)
            + "\n" + "".join(f"pub use {n}::*;\n" for n in names))


def name(s):
    if s == "self":  # not even raw
        return "self_"
    return f"r#{s}" if s in KEYWORDS else s


def rust_type(t):
    if isinstance(t, api.Pointer):
        return f"*{'const' if t.const else 'mut'} {rust_type(t.to)}"
    if isinstance(t, api.Array):
        return f"[{rust_type(t.of)}; {t.n}]"
    if isinstance(t, api.FunctionPointer):
        return _callback(t)
    return SCALARS.get(t.name, t.name)


def _signature(f):
    params = ", ".join(f"{name(p.name)}: {rust_type(p.type)}" for p in f.params)
    return f"({params})" + ("" if api.void(f.ret) else f" -> {rust_type(f.ret)}")


def _callback(f):
    return f'Option<unsafe extern "C" fn{_signature(f)}>'


def doc(item, indent=""):
    """The header's comment, with what rustdoc would take for markup escaped; else the declaration."""
    if not item.doc:
        return f"{indent}/// `{item.declaration}`\n"
    text = re.sub(r"([\[\]<>*|])", r"\\\1", item.doc)
    return "".join(f"{indent}/// {line}".rstrip() + "\n" for line in text.split("\n"))


def _constant(c):
    if isinstance(c.value, str):
        return f'pub const {c.name}: &[u8; {len(c.value) + 1}] = b"{c.value}\\0";\n'
    return f"pub const {c.name}: {'u32' if c.unsigned else 'i32'} = {c.value};\n"


def _module(header, layout):
    body = ["".join(doc(c) + _constant(c) for c in header.constants)] if header.constants else []
    for o in header.opaque:
        body.append(doc(o) + f"#[repr(C)]\npub struct {o.name} {{\n    _opaque: [u8; 0],\n"
                    "    _not_send: PhantomData<(*mut u8, PhantomPinned)>,\n}\n")
    for c in header.callbacks:
        body.append(doc(c) + f"pub type {c.name} = {_callback(c)};\n")
    for s in header.structs:
        fields = "".join(doc(f, "    ") + f"    pub {name(f.name)}: {rust_type(f.type)},\n" for f in s.fields)
        body.append(doc(s) + f"#[repr(C)]\n#[derive(Clone, Copy, Debug)]\npub struct {s.name} {{\n{fields}}}\n"
                    f"default_is_zero!({s.name});\n")
    if header.library:
        functions = "".join(doc(f, "    ") + f"    fn {f.name}{_signature(f)};\n" for f in header.functions)
        body.append(f"functions! {{\n    \"{header.library}\";\n{functions}}}\n")
    text = "\n".join(body)
    uses = [f"use core::marker::{{PhantomData, PhantomPinned}};\n"] if header.opaque else []
    c_types = [t for t in ("c_char", "c_void") if re.search(rf"\b{t}\b", text)]
    uses += [f"use std::os::raw::{{{', '.join(c_types)}}};\n"] if c_types else []
    uses += ["use super::*;\n"]
    return NOTE.format(header.name) + "\n" + "".join(uses) + "\n" + text


def _layout_test(headers, layout):
    out = [NOTE.format("*.h") + "#![cfg(target_pointer_width = \"64\")]\n"
           "use aerie_sys::*;\nuse std::mem::{size_of, MaybeUninit};\n\n"
           "macro_rules! at {\n    ($s:ident, $f:ident, $n:expr) => {{\n"
           "        let s = MaybeUninit::<$s>::uninit();\n        let p = s.as_ptr();\n"
           "        let offset = unsafe { std::ptr::addr_of!((*p).$f) as usize } - p as usize;\n"
           "        assert_eq!(offset, $n, \"{}.{}\", stringify!($s), stringify!($f));\n    }};\n}\n"]
    for h in headers:
        if not h.structs:
            continue
        out.append(f"\n#[test]\nfn {h.name[:-2]}() {{\n")
        for s in h.structs:
            out.append(f"    assert_eq!(size_of::<{s.name}>(), {layout.size(s)});\n")
            out += [f"    at!({s.name}, {name(f.name)}, {offset});\n" for f, offset in layout.offsets(s)]
        out.append("}\n")
    return "".join(out)

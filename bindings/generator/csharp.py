"""Aerie.Native: what a program needs of the C API, for .NET Standard 2.0 (C# 7, Mono) and, for functions, .NET 8 too.

Pointers to structs and numbers are pointers; handles, callbacks and void pointers are IntPtr. The class Library,
which names the shared libraries, is written by hand."""
from xml.sax.saxutils import escape

from . import api

SCALARS = {"char": "byte", "void": "void", "int8_t": "sbyte", "uint8_t": "byte", "int16_t": "short", "uint16_t": "ushort",
           "int32_t": "int", "uint32_t": "uint", "int64_t": "long", "uint64_t": "ulong", "size_t": "UIntPtr",
           "float": "float", "double": "double"}
KEYWORDS = {"out", "in", "ref", "params", "base", "object", "string", "event", "fixed", "lock", "new", "this", "is", "as"}
NOTE = "// Generated from capi/include/aerie/*.h by bindings/generate.py: do not edit.\n"
FOLDER = "bindings/csharp/Aerie/Native/"


def files(headers, layout):
    host = [h for h in headers if h.library]
    structs = {s.name for h in host for s in h.structs}
    return {f"{FOLDER}Constants.cs": _constants(headers),
            f"{FOLDER}Structs.cs": _structs(host, structs),
            f"{FOLDER}Callbacks.cs": _callbacks(host, structs),
            f"{FOLDER}DllImport.cs": _methods(host, structs, False),
            f"{FOLDER}LibraryImport.cs": _methods(host, structs, True)}


def name(s):
    return f"@{s}" if s in KEYWORDS else s


def cs_type(t, structs):
    if isinstance(t, api.FunctionPointer):
        return "IntPtr"
    if isinstance(t, api.Pointer):
        to = cs_type(t.to, structs)
        return "IntPtr" if to in ("void", "opaque") else f"{to}*"
    if t.name in SCALARS:
        return SCALARS[t.name]
    if t.name in structs:
        return t.name
    return "IntPtr" if t.name.endswith("_fn") else "opaque"


def doc(item, indent):
    text = escape(item.doc or item.declaration).split("\n")
    if len(text) == 1:
        return f"{indent}/// <summary>{text[0]}</summary>\n"
    return "".join(f"{indent}/// {line}".rstrip() + "\n" for line in ["<summary>", *text, "</summary>"])


def _file(body, condition="", attribute="using System.Runtime.InteropServices;\n"):
    text = NOTE + "using System;\n" + attribute + f"\nnamespace Aerie.Native\n{{\n{body}}}\n"
    return f"{NOTE}#if {condition}\n{text[len(NOTE):]}#endif\n" if condition else text


def _constants(headers):
    body = "    internal static class Constants\n    {\n"
    for c in (c for h in headers for c in h.constants):
        kind, value = ("string", f'"{c.value}"') if isinstance(c.value, str) else ("uint" if c.unsigned else "int", c.value)
        body += (doc(c, " " * 8) if c.doc else "") + f"        internal const {kind} {c.name} = {value};\n"
    return _file(body + "    }\n", attribute="").replace("using System;\n\n", "")


def _structs(host, structs):
    body = []
    for s in (s for h in host for s in h.structs):
        fields = ""
        for f in s.fields:
            fields += doc(f, " " * 8) if f.doc else ""
            if isinstance(f.type, api.Array):
                fields += f"        internal fixed {cs_type(f.type.of, structs)} {name(f.name)}[{f.type.n}];\n"
            else:
                fields += f"        internal {cs_type(f.type, structs)} {name(f.name)};\n"
        body.append(doc(s, "    ") + "    [StructLayout(LayoutKind.Sequential)]\n"
                    f"    internal unsafe struct {s.name}\n    {{\n{fields}    }}\n")
    return _file("\n".join(body))


def _signature(f, structs):
    return "(" + ", ".join(f"{cs_type(p.type, structs)} {name(p.name)}" for p in f.params) + ")"


def _callbacks(host, structs):
    return _file("\n".join(
        doc(c, "    ") + "    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]\n"
        f"    internal unsafe delegate {cs_type(c.ret, structs)} {c.name}{_signature(c, structs)};\n"
        for h in host for c in h.callbacks))


def _methods(host, structs, net8):
    body = []
    for h in host:
        library = "Library.Core" if h.library == "aerie" else "Library.Text"
        for f in h.functions:
            how = (f"        [LibraryImport({library})]\n        [UnmanagedCallConv(CallConvs = new[] {{ typeof(CallConvCdecl) }})]\n"
                   "        internal static partial" if net8 else
                   f"        [DllImport({library}, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]\n"
                   "        internal static extern")
            body.append(doc(f, " " * 8) + f"{how} {cs_type(f.ret, structs)} {f.name}{_signature(f, structs)};\n")
    text = "    internal static unsafe partial class Methods\n    {\n" + "\n".join(body) + "    }\n"
    uses = "using System.Runtime.CompilerServices;\n" if net8 else ""
    return _file(text, "NET8_0_OR_GREATER" if net8 else "!NET8_0_OR_GREATER", uses + "using System.Runtime.InteropServices;\n")

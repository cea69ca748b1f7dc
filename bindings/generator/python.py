"""aerie/_native.py: the C API as ctypes. Handles are c_void_p; `const char *` is c_char_p, but what is written through
is POINTER(c_char), so that text with a NUL or text that must be freed survives."""
import re

from . import api

SCALARS = {"char": "c_char", "int8_t": "c_int8", "uint8_t": "c_uint8", "int16_t": "c_int16", "uint16_t": "c_uint16",
           "int32_t": "c_int32", "uint32_t": "c_uint32", "int64_t": "c_int64", "uint64_t": "c_uint64", "size_t": "c_size_t",
           "float": "c_float", "double": "c_double"}
NOTE = '"""The C API as ctypes. Generated from capi/include/aerie/*.h by bindings/generate.py: do not edit."""\n'


def files(headers, layout):
    host = [h for h in headers if h.library]
    names = {s.name for h in host for s in h.structs} | {c.name for h in host for c in h.callbacks}
    body = ""
    for c in (c for h in headers for c in h.constants):
        body += f"{c.name} = {c.value!r}" + (f"  # {_line(c.doc)}" if c.doc else "") + "\n"
    for h in host:
        for c in h.callbacks:
            body += "\n" + _comment(c) + f"{c.name} = CFUNCTYPE({_signature(c, names)})\n"
        for s in h.structs:
            body += f"\n\nclass {s.name}(Structure):\n" + (_docstring(s) if s.doc else "") + "    _fields_ = [\n"
            for f in s.fields:
                body += f'        ("{f.name}", {py_type(f.type, names)}),' + (f"  # {_line(f.doc)}" if f.doc else "") + "\n"
            body += "    ]\n"
    body += "\n\n# By library: (name, result, arguments...).\nFUNCTIONS: dict[str, list[Any]] = {\n"
    for library in ("aerie", "aerie-text"):
        body += f'    "{library}": [\n'
        for f in (f for h in host if h.library == library for f in h.functions):
            body += "".join(f"        # {line}".rstrip() + "\n" for line in f.doc.split("\n") if f.doc)
            body += f'        ("{f.name}", {_signature(f, names)}),\n'
        body += "    ],\n"
    body += ('}\n\n\ndef declare(library: CDLL, functions: list[Any]) -> None:\n    """Give the functions of a CDLL their types."""\n'
             "    for name, result, *arguments in functions:\n"
             "        function = getattr(library, name)\n"
             "        function.restype, function.argtypes = result, arguments\n")
    used = [n for n in ["CDLL", "CFUNCTYPE", "POINTER", "Structure", "c_void_p", "c_char_p", *SCALARS.values()]
            if re.search(rf"\b{n}\b", body)]
    return {"bindings/python/aerie/_native.py": NOTE + _imports(used) + "from typing import Any\n\n" + body}


def _imports(used):
    lines, line = [], "from ctypes import ("
    for n in used:
        if len(line) + len(n) > 110:
            lines.append(line.rstrip())
            line = "                    "
        line += n + ", "
    return "\n".join(lines + [line.rstrip(", ")]) + ")\n"


def py_type(t, names, through=False):
    if isinstance(t, api.Array):
        return f"{py_type(t.of, names)} * {t.n}"
    if isinstance(t, api.FunctionPointer):
        return f"CFUNCTYPE({_signature(t, names)})"
    if isinstance(t, api.Pointer):
        if api.char_pointer(t):
            return "c_char_p" if t.const and not through else "POINTER(c_char)"
        if isinstance(t.to, api.Named) and t.to.name not in SCALARS and t.to.name not in names:
            return "c_void_p"  # void or a handle
        # `const char *const *` is an array of strings; `const char **` is written through.
        return f"POINTER({py_type(t.to, names, not t.const)})"
    return SCALARS.get(t.name, t.name)


def _signature(f, names):
    ret = "None" if api.void(f.ret) else py_type(f.ret, names)
    return ", ".join([ret] + [py_type(p.type, names) for p in f.params])


def _line(doc):
    return doc.replace("\n", " ")


def _comment(item):
    return "".join(f"# {line}".rstrip() + "\n" for line in (item.doc or item.declaration).split("\n"))


def _docstring(item):
    text = re.sub(r"\\", r"\\\\", item.doc).split("\n")
    if len(text) == 1:
        return f'    """{text[0]}"""\n\n'
    return '    """' + "\n".join([text[0]] + [f"    {line}".rstrip() for line in text[1:]]) + '\n    """\n\n'

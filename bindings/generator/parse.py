"""C headers to api.Header, by pycparser over the C compiler's preprocessor."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import pycparser
except ImportError:  # Debian's python3-pycparser, under another interpreter
    sys.path.append("/usr/lib/python3/dist-packages")
    import pycparser
from pycparser import c_ast, c_generator

from . import api
from .comments import Comments

# What the real <stdint.h> and <stddef.h> say that matters here.
PRELUDE = {
    "stdint.h": "".join(f"typedef {'unsigned ' if s == 'uint' else 'signed '}{t} {s}{n}_t;\n" for s in ("int", "uint")
                        for n, t in ((8, "char"), (16, "short"), (32, "int"), (64, "long"))),
    "stddef.h": "typedef unsigned long size_t;\n",
}
LIBRARIES = {"aerie.h": "aerie", "profile.h": "aerie", "text.h": "aerie-text", "tools.h": "aerie-text", "drafter.h": ""}


def parse(include):
    """Every public header in `include`/aerie, aerie.h first."""
    found = {p.name for p in (include / "aerie").glob("*.h")}
    if found != set(LIBRARIES):
        sys.exit(f"bindings/generator/parse.py does not know which library has {sorted(found ^ set(LIBRARIES))}")
    headers = [_Reader(include, name).header for name in LIBRARIES]
    # Declared in one header and defined there or in another: not opaque.
    structs = {s.name for h in headers for s in h.structs}
    for h in headers:
        h.opaque = [o for o in h.opaque if o.name not in structs]
    return headers


def _preprocessed(include, path):
    with tempfile.TemporaryDirectory() as tmp:
        for name, text in PRELUDE.items():
            pathlib.Path(tmp, name).write_text(text)
        command = [os.environ.get("CC", "cc"), "-E", "-nostdinc", "-U_WIN32", "-D__attribute__(x)=", f"-I{tmp}",
                   f"-I{include}", str(path)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class _Reader:
    def __init__(self, include, name):
        self.path = include / "aerie" / name
        text = self.path.read_text()
        self.comments = Comments(text)
        self.header = api.Header(name, self.comments.top(), LIBRARIES[name])
        self.c = c_generator.CGenerator()
        self._macros(text)
        for node in pycparser.CParser().parse(_preprocessed(include, self.path), name).ext:
            if node.coord.file == str(self.path):
                self._declaration(node)

    def _macros(self, text):
        for m in re.finditer(r'^#define (AERIE_\w+) (?:"([^"]*)"|(\d+)(u?))$', text, re.M):
            line = text.count("\n", 0, m.start()) + 1
            value = m[2] if m[2] is not None else int(m[3])
            self.header.constants.append(api.Constant(m[1], self.comments.of(line), m[0], value, bool(m[4])))

    def _declaration(self, node):
        if isinstance(node, c_ast.FuncDef):
            return  # inline helpers are C's own
        if isinstance(node, c_ast.Typedef):
            t = node.type
            if isinstance(t, c_ast.TypeDecl) and isinstance(t.type, c_ast.Struct):
                self._struct(node.name, t.type, node)
            elif isinstance(t, c_ast.PtrDecl) and isinstance(t.type, c_ast.FuncDecl):
                self.header.callbacks.append(self._function(node.name, t.type, node))
            else:
                sys.exit(f"{node.coord}: a typedef of this kind has no binding")
        elif isinstance(node.type, c_ast.FuncDecl):
            self.header.functions.append(self._function(node.name, node.type, node))
        elif isinstance(node.type, c_ast.Struct):
            self._struct(node.type.name, node.type, node)
        elif isinstance(node.type, c_ast.Enum):
            self._enum(node.type)
        else:
            sys.exit(f"{node.coord}: a declaration of this kind has no binding")

    def _doc(self, node, last=None):
        return self.comments.of(node.coord.line, last)

    def _struct(self, name, struct, node):
        if struct.decls is None:
            self.header.opaque.append(api.Item(name, self._doc(node), f"struct {name}"))
            return
        out = api.Struct(name, self._doc(struct), f"struct {name}")
        for d in struct.decls:
            out.fields.append(api.Variable(d.name, self._doc(d), self.c.visit(d), self._type(d.type)))
        self.header.structs.append(out)

    def _enum(self, enum):
        value = -1
        lines = [e.coord.line for e in enum.values.enumerators]
        for e in enum.values.enumerators:
            value = value + 1 if e.value is None else self._constant(e.value)
            flags = isinstance(e.value, c_ast.BinaryOp)
            # Beside several names, a comment is nobody's in particular.
            doc = self.comments.of(e.coord.line) if lines.count(e.coord.line) == 1 else ""
            self.header.constants.append(api.Constant(e.name, doc, f"{e.name} = {value}", value, flags))

    def _constant(self, node):
        if isinstance(node, c_ast.Constant):
            return int(node.value.rstrip("uU"), 0)
        if isinstance(node, c_ast.UnaryOp) and node.op == "-":
            return -self._constant(node.expr)
        if isinstance(node, c_ast.BinaryOp) and node.op == "<<":
            return self._constant(node.left) << self._constant(node.right)
        sys.exit(f"{node.coord}: this constant is not understood")

    def _function(self, name, decl, node):
        ret, params = self._signature(decl)
        lines = self.c.visit(node).removeprefix("typedef ")
        return api.Function(name, self._doc(node), lines, ret, params)

    def _signature(self, decl):
        params = [api.Variable(p.name, "", "", self._type(p.type)) for p in (decl.args.params if decl.args else [])
                  if not (isinstance(p.type, c_ast.TypeDecl) and self._type(p.type) == api.Named("void"))]
        return self._type(decl.type), params

    def _type(self, t):
        if isinstance(t, c_ast.PtrDecl):
            if isinstance(t.type, c_ast.FuncDecl):
                return api.FunctionPointer(*self._signature(t.type))
            return api.Pointer(self._type(t.type), "const" in t.type.quals)
        if isinstance(t, c_ast.ArrayDecl):
            return api.Array(self._type(t.type), self._constant(t.dim))
        if isinstance(t, c_ast.TypeDecl):
            return api.Named(t.type.name if isinstance(t.type, c_ast.Struct) else " ".join(t.type.names))
        sys.exit(f"{t.coord}: this type has no binding")

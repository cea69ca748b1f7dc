"""What the headers declare, in a form that every emitter can walk."""
from dataclasses import dataclass, field

# Size and alignment under LP64, which is what the assertions are for.
SCALARS = {"char": 1, "int8_t": 1, "uint8_t": 1, "int16_t": 2, "uint16_t": 2, "int32_t": 4, "uint32_t": 4,
           "int64_t": 8, "uint64_t": 8, "size_t": 8, "float": 4, "double": 8}


@dataclass
class Named:  # a scalar, void, a struct, an opaque handle or a callback type
    name: str


@dataclass
class Pointer:
    to: object
    const: bool  # what it points to is const


@dataclass
class Array:
    of: object
    n: int


@dataclass
class FunctionPointer:
    ret: object
    params: list


@dataclass
class Item:
    """A field, parameter, function, callback, struct or opaque type."""
    name: str
    doc: str = ""
    declaration: str = ""  # as C, for docs


@dataclass
class Variable(Item):
    type: object = None


@dataclass
class Function(Item):
    ret: object = None
    params: list = field(default_factory=list)


@dataclass
class Struct(Item):
    fields: list = field(default_factory=list)


@dataclass
class Constant(Item):
    value: object = None  # int or str
    unsigned: bool = False


@dataclass
class Header:
    name: str
    doc: str
    library: str = ""  # "": what plugins export
    constants: list = field(default_factory=list)
    opaque: list = field(default_factory=list)
    structs: list = field(default_factory=list)
    callbacks: list = field(default_factory=list)
    functions: list = field(default_factory=list)


class Layout:
    """Offsets and sizes of the structs of some headers."""

    def __init__(self, headers):
        self.structs = {s.name: s for h in headers for s in h.structs}

    def size_align(self, t):
        if isinstance(t, Array):
            size, align = self.size_align(t.of)
            return size * t.n, align
        if isinstance(t, Named) and t.name in SCALARS:
            return SCALARS[t.name], SCALARS[t.name]
        if isinstance(t, Named) and t.name in self.structs:
            offset, align = 0, 1
            for f in self.structs[t.name].fields:
                size, a = self.size_align(f.type)
                offset, align = -(-offset // a) * a + size, max(align, a)
            return -(-offset // align) * align, align
        return 8, 8  # pointers and callbacks

    def size(self, struct):
        return self.size_align(Named(struct.name))[0]

    def offsets(self, struct):
        offset = 0
        for f in struct.fields:
            size, align = self.size_align(f.type)
            offset = -(-offset // align) * align
            yield f, offset
            offset += size


def tail_padding(headers, layout):
    """Options and results that end in padding. A field that a later version appends may lie where an older program left
    garbage, and the size would not say so; a reserved field holds the place."""
    for h in headers:
        for s in h.structs:
            if s.fields[0].name == "struct_size":
                last, offset = list(layout.offsets(s))[-1]
                if offset + layout.size_align(last.type)[0] != layout.size(s):
                    yield s.name


def char_pointer(t):
    return isinstance(t, Pointer) and isinstance(t.to, Named) and t.to.name == "char"


def void(t):
    return isinstance(t, Named) and t.name == "void"

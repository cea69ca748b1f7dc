#!/usr/bin/env python3
"""Writes core/text/template/unicode_case.inc: what str.upper, str.lower, str.title and repr know of characters.

Needs Python 3.11, whose unicodedata is Unicode 14, as everywhere in core/text.
"""
import pathlib
import unicodedata

OUT = pathlib.Path(__file__).resolve().parents[3] / "core/text/template/unicode_case.inc"
CPS = [c for c in range(0x80, 0x110000) if not 0xD800 <= c <= 0xDFFF]
assert unicodedata.unidata_version == "14.0.0", unicodedata.unidata_version


def runs(pairs):
    """(first, last, step, difference): those that are alike, each `step` behind the one before."""
    out = []
    for c, d in pairs:
        if out and out[-1][3] == d and (c - out[-1][1] == out[-1][2] or (out[-1][0] == out[-1][1] and c - out[-1][1] <= 2)):
            if out[-1][0] == out[-1][1]:
                out[-1][2] = c - out[-1][1]
            out[-1][1] = c
        else:
            out.append([c, c, 1, d])
    return out


def array(declaration, texts):
    lines, line = [], "   "
    for t in texts:
        if len(line) + 1 + len(t) > 138:
            lines.append(line)
            line = "   "
        line += " " + t
    return [f"constexpr {declaration}[] = {{", *lines, line, "};"]


def table(name, rows):
    return array(name, ["{" + ", ".join(f"0x{x:X}" if i < 2 else str(x) for i, x in enumerate(r)) + "}," for r in rows])


def special(f):
    return [(c, f(chr(c)).encode()) for c in CPS if len(f(chr(c))) > 1]


def special_table(name, rows):
    return array(f"Special {name}", [f'{{0x{c:X}, "' + "".join(f"\\x{b:02x}" for b in t) + '"},' for c, t in rows])


def simple(f):
    return runs((c, ord(f(chr(c))) - c) for c in CPS if len(f(chr(c))) == 1 and f(chr(c)) != chr(c))


def ranges(values):
    out = []
    for c in values:
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def cased(c):
    return chr(c).isupper() or chr(c).islower() or unicodedata.category(chr(c)) == "Lt"


def ignorable(c):  # between a letter and what says whether a sigma is the last of its word: found by asking str.lower
    return ("A" + chr(c) + "\u03a3").lower()[-1] == "\u03c2" and not cased(c)


lines = ["// Written by tests/golden/chat/make_case_tables.py. Do not edit."]
lines += table("Run kUpper", simple(str.upper)) + table("Run kLower", simple(str.lower))
lines += table("Run kTitle", runs((c, ord(chr(c).title()) - c) for c in CPS
                                  if len(chr(c).title()) == 1 and chr(c).title() != chr(c).upper()))
lines += special_table("kUpperSpecial", special(str.upper)) + special_table("kLowerSpecial", special(str.lower))
lines += special_table("kTitleSpecial", special(str.title))
lines += table("Range kCased", ranges(c for c in CPS if cased(c)))
lines += table("Range kIgnorable", ranges(c for c in CPS if ignorable(c)))
lines += table("Range kNotPrintable", ranges(c for c in CPS if not chr(c).isprintable()))
OUT.write_text("\n".join(lines) + "\n")
print(len(lines), "lines")

#!/usr/bin/env python3
"""Writes core/text/nfc_tables.inc and core/text/unicode_additions.inc (run with `pip install tokenizers`).

nfc_tables: canonical decomposition, composition and combining classes from Python's unicodedata, as far
as the NFC of Hugging Face tokenizers knows them (it was made from an older Unicode).

unicode_additions: characters that the regex engine of tokenizers puts in a category and Unicode 14
(PCRE2 10.42, Debian 12) does not yet. The tokenizer adds them by hand so that ids do not depend on the
age of PCRE2. Needs Python 3.11, whose unicodedata is Unicode 14 too.
"""
import pathlib
import unicodedata

from tokenizers import Regex, normalizers, pre_tokenizers

OUT = pathlib.Path(__file__).resolve().parents[3] / "core/text"
CPS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
CATEGORIES = "L Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P S".split()
assert unicodedata.unidata_version == "14.0.0", unicodedata.unidata_version


def ranges(values):
    out = []
    for c in sorted(values):
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def hf_category(name):
    split = pre_tokenizers.Split(Regex(r"\p{%s}" % name), "removed", invert=True)
    found = set()
    for i in range(0, len(CPS), 4096):
        for piece, _ in split.pre_tokenize_str("".join(map(chr, CPS[i:i + 4096]))):
            found.update(map(ord, piece))
    return found


def wrap(items, per_line):
    return "\n".join("    " + " ".join(items[i:i + per_line]) for i in range(0, len(items), per_line))


def additions():
    lines = ["// Written by tests/golden/text/make_unicode_tables.py. Do not edit.",
             "// {category, what Unicode 14 lacks of it, as inside a PCRE2 character class}"]
    for name in CATEGORIES:
        ours = {c for c in CPS if unicodedata.category(chr(c)).startswith(name)}
        theirs = hf_category(name)
        gone = ours - theirs
        if gone:  # cannot be said by adding: the category stays refused
            print(f"{name}: {len(gone)} characters left the category; not listed")
            continue
        parts = [rf"\\x{{{a:x}}}" + (rf"-\\x{{{b:x}}}" if b > a else "") for a, b in ranges(theirs - ours)]
        rows = ['     "' + "".join(parts[i:i + 6]) + '"' for i in range(0, len(parts), 6)] or ['     ""']
        lines += [f'    {{"{name}",'] + rows[:-1] + [rows[-1] + "},"]
    (OUT / "unicode_additions.inc").write_text("\n".join(lines) + "\n")


def nfc():
    hf = normalizers.NFC()
    pool, index, pairs, classes = [], [], [], []
    for c in CPS:
        s = chr(c)
        assert hf.normalize_str(s) == unicodedata.normalize("NFC", s), hex(c)
        full = unicodedata.normalize("NFD", s)
        if full != s and not 0xAC00 <= c <= 0xD7A3:  # Hangul is arithmetic
            index.append((c, len(pool), len(full)))
            pool += map(ord, full)
        canonical = unicodedata.decomposition(s)
        if canonical and not canonical.startswith("<") and len(canonical.split()) == 2:
            a, b = (int(x, 16) for x in canonical.split())
            if unicodedata.normalize("NFC", chr(a) + chr(b)) == s:  # else a composition exclusion
                pairs.append((a, b, c))
        # `tokenizers` knows an older Unicode: its ids decide, so a mark it does not reorder is none.
        if unicodedata.combining(s) and (c == 0x345 or hf.normalize_str("b\u0345" + s) != "b\u0345" + full):
            classes.append((c, unicodedata.combining(s)))
    runs = []
    for c, k in classes:
        if runs and runs[-1][1] == c - 1 and runs[-1][2] == k:
            runs[-1][1] = c
        else:
            runs.append([c, c, k])
    head = "// Written by tests/golden/text/make_unicode_tables.py. Do not edit.\n// clang-format off\n"
    text = head + "constexpr uint32_t kDecompositionPool[] = {\n"
    text += wrap([f"0x{c:x}," for c in pool], 14) + "\n};\n"
    text += "constexpr Decomposition kDecompositions[] = {  // codepoint, offset into the pool, length\n"
    text += wrap([f"{{0x{c:x},{o},{n}}}," for c, o, n in index], 7) + "\n};\n"
    text += "constexpr Composition kCompositions[] = {  // first, second, composed\n"
    text += wrap([f"{{0x{a:x},0x{b:x},0x{c:x}}}," for a, b, c in sorted(pairs)], 6) + "\n};\n"
    text += "constexpr CombiningRun kCombining[] = {  // first, last, class\n"
    text += wrap([f"{{0x{a:x},0x{b:x},{k}}}," for a, b, k in runs], 7) + "\n};\n"
    (OUT / "nfc_tables.inc").write_text(text)


additions()
nfc()

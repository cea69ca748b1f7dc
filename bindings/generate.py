#!/usr/bin/env python3
"""Write everything that repeats the C headers: layout assertions, the list of symbols, declarations for Rust, C# and
Python. The headers are the source of truth; what is written is checked in. Needs pycparser (Debian:
python3-pycparser) and a C compiler.

  python3 bindings/generate.py           write
  python3 bindings/generate.py --check   fail and say which files are stale"""
import argparse
import pathlib
import sys

from generator import abi, csharp, parse, python, rust
from generator.api import Layout, tail_padding

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--check", action="store_true")
    check = arguments.parse_args().check
    headers = parse.parse(ROOT / "capi/include")
    layout = Layout(headers)
    if padded := list(tail_padding(headers, layout)):
        sys.exit(f"{', '.join(padded)}: end in padding; add a reserved field")
    stale = []
    for emitter in (abi, rust, csharp, python):
        for name, text in emitter.files(headers, layout).items():
            path = ROOT / name
            if path.exists() and path.read_text() == text:
                continue
            stale.append(name)
            if not check:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
    if check and stale:
        sys.exit("stale: " + ", ".join(stale) + "; run python3 bindings/generate.py")
    if stale:
        print("wrote", ", ".join(stale))


if __name__ == "__main__":
    main()

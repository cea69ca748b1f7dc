"""Text: old English novels and the Python standard library, split into training and held-out documents.

    python3 -m aerie.train.corpus --novels novels.tar.zst --out data

The novels are public domain (github.com/computationalstylistics/100_english_novels); the Python source is
the one of the running interpreter. Whole books and whole modules are held out; which ones is decided by a
hash of their name, so every machine makes the same split, and it is written to `split.json`.
"""

import argparse
import hashlib
import json
import sysconfig
from pathlib import Path

from .unwrap import unwrap

# Generated tables, vendored code and tests: long, dull, or the same thing over and over.
SKIPPED_FOLDERS = {
    "test", "tests", "idle_test", "site-packages", "dist-packages", "__pycache__", "lib2to3", "idlelib",
    "encodings", "pydoc_data", "_bundled", "tkinter/test", "config-3", "lib-dynload",
}
HELD_OUT_BOOKS = 4
HELD_OUT_MODULES = 0.05
MAX_MODULE_BYTES = 400_000


def name_hash(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")


def read_novels(archive: Path) -> dict[str, str]:
    """Name -> text of every .txt file in a .tar, .tar.gz or .tar.zst archive, unwrapped."""
    import io
    import tarfile

    data = archive.read_bytes()
    if archive.name.endswith(".zst"):
        import zstandard

        data = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data)).read()
    books = {}
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        for member in sorted(tar.getmembers(), key=lambda m: m.name):
            if member.isfile() and member.name.endswith(".txt"):
                raw = tar.extractfile(member).read().decode("utf-8-sig", errors="replace")
                books[Path(member.name).stem] = unwrap(raw.replace("\r\n", "\n").replace("\r", "\n"))
    if not books:
        raise SystemExit(f"{archive}: no .txt file inside")
    return books


def read_python(stdlib: Path) -> dict[str, str]:
    """Module path -> source of the standard library, without tests and tables."""
    modules = {}
    for path in sorted(stdlib.rglob("*.py")):
        relative = path.relative_to(stdlib)
        if any(part in SKIPPED_FOLDERS or part.startswith("config-") for part in relative.parts[:-1]):
            continue
        if not 200 <= path.stat().st_size <= MAX_MODULE_BYTES:
            continue
        try:
            modules[relative.as_posix()] = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
    if not modules:
        raise SystemExit(f"{stdlib}: no Python source found")
    return modules


def split(names: list[str], held_out: int) -> tuple[list[str], list[str]]:
    """(training, held-out): the `held_out` names with the smallest hash stay out."""
    chosen = set(sorted(names, key=name_hash)[:held_out])
    return [n for n in names if n not in chosen], [n for n in names if n in chosen]


def build(novels: Path, stdlib: Path, out: Path) -> dict:
    """Writes {novels,python}.{train,held}.json (name -> text) and split.json; returns the split."""
    out.mkdir(parents=True, exist_ok=True)
    summary = {}
    for kind, texts in (("novels", read_novels(novels)), ("python", read_python(stdlib))):
        count = HELD_OUT_BOOKS if kind == "novels" else max(1, round(len(texts) * HELD_OUT_MODULES))
        parts = dict(zip(("train", "held"), split(sorted(texts), count)))
        for part, names in parts.items():
            chosen = {name: texts[name] for name in names}
            (out / f"{kind}.{part}.json").write_text(json.dumps(chosen), encoding="utf-8")
        summary[kind] = {
            "held_out": parts["held"],
            "documents": {part: len(names) for part, names in parts.items()},
            "characters": {part: sum(len(texts[n]) for n in names) for part, names in parts.items()},
        }
    (out / "split.json").write_text(json.dumps(summary, indent=1) + "\n")
    return summary


def load(out: Path, kind: str, part: str) -> dict[str, str]:
    return json.loads((out / f"{kind}.{part}.json").read_text(encoding="utf-8"))


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the training and held-out text.")
    parser.add_argument("--novels", type=Path, required=True, help="archive of .txt novels")
    parser.add_argument("--python-lib", type=Path, default=Path(sysconfig.get_path("stdlib")))
    parser.add_argument("--out", type=Path, required=True, help="folder for the text")
    args = parser.parse_args()
    for kind, facts in build(args.novels, args.python_lib, args.out).items():
        print(kind, facts["documents"], "documents,", facts["characters"], "characters")


if __name__ == "__main__":
    main()

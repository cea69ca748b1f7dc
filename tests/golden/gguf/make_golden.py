#!/usr/bin/env python3
"""blocks.json: blocks of each quantised GGUF type that Aerie reads, and their values by llama.cpp's own package.

    pip install gguf && python3 tests/golden/gguf/make_golden.py

Random bytes, but for scales, which are of the size that weights have.
"""

import json
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf import quants

# Type: bytes of a block, where its half-precision numbers are.
TYPES = {Type.Q4_0: (18, [0]), Type.Q4_1: (20, [0, 2]), Type.Q5_0: (22, [0]), Type.Q5_1: (24, [0, 2]), Type.Q8_0: (34, [0]),
         Type.Q4_K: (144, [0, 2]), Type.Q5_K: (176, [0, 2]), Type.Q6_K: (210, [208]), Type.MXFP4: (17, [])}


def main() -> None:
    random = np.random.default_rng(1)
    out = {}
    for kind, (size, halves) in TYPES.items():
        blocks = random.integers(0, 256, (2, size), dtype=np.uint8)
        for at in halves:
            blocks[:, at:at + 2] = random.normal(0, 0.01, (2, 1)).astype(np.float16).view(np.uint8)
        if kind == Type.MXFP4:  # powers of two
            blocks[:, 0] = random.integers(118, 128, 2)
        values = quants.dequantize(blocks.reshape(-1), kind)
        out[kind.name] = {"id": int(kind), "bytes": blocks.tobytes().hex(), "values": [float(f"{v:.9g}") for v in values]}
    text = ",\n".join(f"{json.dumps(name)}: {json.dumps(entry, separators=(',', ':'))}" for name, entry in out.items())
    (Path(__file__).parent / "blocks.json").write_text("{\n" + text + "\n}\n")


if __name__ == "__main__":
    main()

"""samples.py PAGE DIR: what a page shows in Python, each block marked <!-- test --> as DIR/sampleNN.py."""
import pathlib
import re
import sys

page, out = map(pathlib.Path, sys.argv[1:])
samples = re.findall(r"<!-- test -->\s*```python\n(.*?)```", page.read_text(), re.S)
assert len(samples) >= 5, "samples are missing"
for i, sample in enumerate(samples):
    (out / f"sample{i:02}.py").write_text(sample)

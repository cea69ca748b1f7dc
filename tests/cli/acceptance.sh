#!/usr/bin/env bash
# The study's command runs from a fresh build, without training data and without matplotlib.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 "$root/tests/bench/acceptance.py" --aerie "$1/bin/aerie" --smoke --out "$tmp/acceptance" >/dev/null
python3 - "$tmp" <<'EOF'
import json, sys
from pathlib import Path
results = json.loads(Path(sys.argv[1], "acceptance/results.json").read_text())
eagle = [r for r in results["rows"] if r["drafter"] == "demo-eagle" and r["tree"] == "chain"]
assert eagle and all(r["tau"] > 1 and r["acceptance"] for r in eagle), eagle
page = Path(sys.argv[1], "acceptance.md").read_text()
assert "| EAGLE |" in page and "n-α" in page
EOF

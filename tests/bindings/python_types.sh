#!/usr/bin/env bash
# The Python binding with numpy, and its types: mypy --strict on the package and on what docs/python.md shows. Both come
# from pip, into a virtual environment of the build; ends with status 77 where that cannot be made.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "$1" && pwd)
venv=$build/python-venv
if ! "$venv/bin/python" -c 'import mypy, numpy' 2>/dev/null; then
  rm -rf "$venv"
  if ! { python3 -m venv "$venv" && "$venv/bin/pip" install --quiet --disable-pip-version-check 'numpy>=1.24' 'mypy>=1.10,<2'; } 2>&1; then
    rm -rf "$venv"
    echo "no numpy and mypy from pip"
    exit 77
  fi
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$root/bindings/python"
AERIE_DIR=$build AERIE_MODELS=$root/samples/models PYTHONPATH=. PYTHONDONTWRITEBYTECODE=1 \
  "$venv/bin/python" -W error -m unittest discover -s tests/runtime -p test_arrays.py
# aerie.train needs PyTorch, and is typed as far as that is.
"$venv/bin/mypy" --strict --cache-dir "$tmp/cache" --exclude 'aerie/train' aerie backend.py
python3 "$root/tests/install/samples.py" "$root/docs/python.md" "$tmp"
MYPYPATH=. "$venv/bin/mypy" --strict --cache-dir "$tmp/cache" --scripts-are-modules "$tmp"/sample*.py

#!/usr/bin/env bash
# The Python binding by its tests, with the machine's own Python (the one of the training recipes has numpy, too).
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
export AERIE_DIR=$1 AERIE_MODELS=$root/samples/models PYTHONPATH=$root/bindings/python PYTHONDONTWRITEBYTECODE=1
python3 -W error -m unittest discover -s "$root/bindings/python/tests/runtime"

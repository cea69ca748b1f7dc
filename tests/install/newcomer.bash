#!/usr/bin/env bash
# What README and docs/python.md promise to somebody with a fresh Debian, git and this repository: the first command ends
# in text, `pip install ./bindings/python` in a wheel that works without the repository; nothing is missing and nothing
# warns. Part of tests/full.sh; clean_system.bash says what it needs.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/install/clean_system.bash"
tmp=$(mktemp -d)
system=$tmp/system
trap 'leave_system "$system"; rm -rf "$tmp"' EXIT
clean_system "$system"
git clone -q --bare "$root" "$system/aerie.git"
in_system "$system" <<'EOC'
quietly() { "$@" >~/log 2>&1 || { tail -n 40 ~/log; exit 1; }; }
quietly apt-get update
quietly apt-get install -y --no-install-recommends git
cd
quietly git clone /aerie.git aerie
cd aerie

SECONDS=0
quietly bash samples/quickstart/run.sh
if grep -iE 'warning|command not found' ~/log; then echo "the first command warns"; exit 1; fi
tail -n 8 ~/log
[ "$(tail -n 12 ~/log | wc -c)" -gt 400 ] && grep -q "tokens/s" ~/log || { echo "no text"; exit 1; }
echo "README's first command: $SECONDS s"

quietly apt-get install -y --no-install-recommends python3-venv
SECONDS=0
quietly python3 -m venv ~/venv
quietly ~/venv/bin/pip install ./bindings/python
if grep -iE 'warning|deprecat' ~/log; then echo "pip warns"; exit 1; fi
echo "pip install: $SECONDS s"
sed -n '/^## A program that generates/,$p' docs/python.md | sed -n '/^```python/,/^```$/p' | sed '1d;/^```$/,$d' >~/first.py
mkdir -p ~/elsewhere/samples
mv samples/models ~/elsewhere/samples/
cd ~/elsewhere
rm -rf ~/aerie
~/venv/bin/python3 -W error ~/first.py >~/log 2>&1 || { cat ~/log; exit 1; }
tail -n 2 ~/log
EOC

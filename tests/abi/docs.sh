#!/usr/bin/env bash
# Every C and C++ sample of README and docs that is marked <!-- test --> compiles and, with a main, runs; the
# <!-- test plugin --> of writing-a-drafter.md loads and changes no token.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$1
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 - "$root" "$tmp" <<'EOF'
import pathlib, re, sys
root, tmp = map(pathlib.Path, sys.argv[1:])
n = 0
for page in [root / "README.md", *sorted((root / "docs").glob("*.md"))]:
    for kind, language, code in re.findall(r"<!-- test( plugin)? -->\s*```(c|cpp)\n(.*?)```", page.read_text(), re.S):
        n += 1
        (tmp / f"{'plugin' if kind else 'sample'}-{page.stem}-{n}.{language}").write_text(code)
assert n >= 3, "samples are missing"
EOF
compile() {  # source, options...
  if [[ $1 == *.cpp ]]; then set -- c++ -std=c++20 "$@"; else set -- cc -std=c99 "$@"; fi
  "$@" -Wall -Wextra -Wpedantic -Werror "-I$root/capi/include"
}
for c in "$tmp"/sample-*; do
  compile "$c" -o "$c.program" "-L$build/lib" -laerie -laerie-text "-Wl,-rpath,$build/lib"
  (cd "$root" && "$c.program" >"$tmp/out") || { echo "$c failed"; exit 1; }
done
for c in "$tmp"/plugin-*; do
  compile "$c" -shared -fPIC -o "$c.so"
  "$build/bin/aerie" run --model "$root/samples/models/demo.aerie" --plugin "$c.so" --drafter repeat \
    --prompt "It was" --max-tokens 32 --compare >/dev/null
  # Another one beside it whose class has the same name, neither compiled with hidden names.
  [[ $c == *.cpp ]] || continue
  sed 's/"repeat"/"again"/' "$c" >"$tmp/again.cpp"
  compile "$tmp/again.cpp" -shared -fPIC -o "$tmp/again.so"
  "$build/bin/aerie" run --model "$root/samples/models/demo.aerie" --plugin "$c.so" --plugin "$tmp/again.so" --drafter again \
    --prompt "It was" --max-tokens 8 >/dev/null
done

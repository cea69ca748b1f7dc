#!/usr/bin/env bash
# The Go binding against an installed prefix: go vet, go test, again under the race detector, and docs/go.md.
# Ends with status 77 where there is no Go.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "$1" && pwd)
command -v go >/dev/null || { echo "no Go here"; exit 77; }
tmp=$(mktemp -d)
trap 'chmod -R u+w "$tmp"; rm -rf "$tmp"' EXIT
# Go's cache knows neither what pkg-config says nor the headers it points at: always the same prefix, and a flag that
# is another one when the headers are.
prefix=$build/go-prefix
rm -rf "$prefix"
cmake --install "$build" --prefix "$prefix" >/dev/null
libdir=$(dirname "$(find "$prefix" -name 'libaerie.so')")
CGO_CFLAGS="-O2 -g -DAERIE_HEADERS=$(cat "$root"/capi/include/aerie/*.h | cksum | cut -d' ' -f1)"
export CGO_CFLAGS
export PKG_CONFIG_PATH=$libdir/pkgconfig LD_LIBRARY_PATH=$libdir
export AERIE_DIR=$build AERIE_MODELS=$root/samples/models
export GOFLAGS=-mod=mod GOPROXY=off GOTOOLCHAIN=local GOPATH=$tmp/go
cd "$root/bindings/go"
unformatted=$(gofmt -l .)
echo -n "$unformatted" >&2
test -z "$unformatted"
go vet ./...
go test -count=1 ./...
go test -count=1 -race ./...

# The page's code: each block marked <!-- test --> is a program, or what stands in one's middle.
mkdir "$tmp/page"
python3 - "$root/docs/go.md" "$tmp/page" <<'PYTHON'
import pathlib, re, sys
page, out = map(pathlib.Path, sys.argv[1:])
blocks = re.findall(r"<!-- test -->\s*```go\n(.*?)```", page.read_text(), re.S)
programs = [b for b in blocks if b.startswith("package main")]
assert len(programs) == 1 and len(blocks) >= 4, "samples are missing"
(out / "first").mkdir()
(out / "first/main.go").write_text(programs[0])
pieces = [b for b in blocks if b not in programs]
text = """package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"aerie"
)

var _, _, _, _, _ = errors.Is, io.Copy, os.Stdout, time.Second, fmt.Println

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	ctx := context.Background()
	rt, err := aerie.NewRuntime(&aerie.RuntimeOptions{Threads: 1})
	check(err)
	check(rt.LoadPlugins(""))
	model, err := aerie.OpenModel(ctx, rt, "samples/models/demo.aerie", nil)
	check(err)
	tokenizer, err := model.Tokenizer()
	check(err)
	prompt, err := tokenizer.Encode("The old man", aerie.EncodeOptions{})
	check(err)
"""
for i, piece in enumerate(pieces):
    text += f"	check(func() error {{\n		session, err := model.NewSession(&aerie.SessionOptions{{IgnoreEOS: true}})\n		check(err)\n"
    text += f"		defer session.Close()\n		check(session.Append(prompt...))\n{piece}\n		return nil\n	}}())\n"
(out / "rest").mkdir()
(out / "rest/main.go").write_text(text + "}\n")
PYTHON
cd "$tmp/page"
cat >go.mod <<EOF2
module page

go 1.19

require aerie v0.0.0

replace aerie => $root/bindings/go
EOF2
go vet ./...
go build -o "$tmp/" ./...
cd "$root"
for program in first rest; do  # a substitution inside [ ] would lose its status
  out=$("$tmp/$program")
  [ -n "$out" ]
done

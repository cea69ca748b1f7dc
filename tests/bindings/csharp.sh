#!/usr/bin/env bash
# The C# binding on Mono: the core compiles as C# 7 without a warning and passes its tests; docs/csharp.md and
# samples/unity_npc compile and run. Ends with status 77 where there is no Mono.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "$1" && pwd)
command -v mcs >/dev/null && command -v mono >/dev/null || { echo "no Mono here"; exit 77; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cmake --install "$build" --prefix "$tmp/prefix" >/dev/null
# As a package lays the libraries out: they must find each other, and the drafters, there.
bash "$root/bindings/csharp/stage.sh" "$tmp/prefix" linux-x64 "$tmp"
loaded() { (cd "$1" && find aerie -name '*.so' | sort); }  # the drafters, and the CUDA backend where it was built
diff <(loaded "$(dirname "$(find "$tmp/prefix" -name libaerie.so)")") <(loaded "$tmp/runtimes/linux-x64/native")
export LD_LIBRARY_PATH=$tmp/runtimes/linux-x64/native AERIE_DIR=$build AERIE_MODELS=$root/samples/models
compile() { mcs -langversion:7.2 -unsafe -warn:4 -warnaserror -nowarn:169,649 "$@"; }  # 169, 649: fields that only C writes
cd "$root/bindings/csharp"
compile -target:library -out:"$tmp/Aerie.dll" Aerie/*.cs Aerie/Native/*.cs
compile -r:"$tmp/Aerie.dll" -out:"$tmp/Aerie.Tests.exe" Aerie.Tests/*.cs
mono "$tmp/Aerie.Tests.exe"

cd "$root"
compile -r:"$tmp/Aerie.dll" -out:"$tmp/Npc.exe" samples/unity_npc/*.cs
mono "$tmp/Npc.exe" samples/models/demo.aerie samples/models/demo-eagle.aerie

# The page's code: each block marked <!-- test --> is a program, or what stands in one's middle.
python3 - docs/csharp.md "$tmp" <<'PYTHON'
import pathlib, re, sys
page, out = map(pathlib.Path, sys.argv[1:])
blocks = re.findall(r"<!-- test -->\s*```csharp\n(.*?)```", page.read_text(), re.S)
programs = [b for b in blocks if "static void Main" in b]
assert len(programs) == 1 and len(blocks) >= 4, "samples are missing"
(out / "First.cs").write_text(programs[0])
body = "".join(f"            using (Session session = model.CreateSession(new SessionOptions {{ IgnoreEos = true }}))\n            {{\n"
               f"                session.Append(tokenizer.Encode(\"The old man\"));\n{b}\n            }}\n" for b in blocks if b not in programs)
(out / "Rest.cs").write_text("""using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading;
using Aerie;

static class Rest
{
    static void Main()
    {
        using (Runtime runtime = new Runtime())
        {
            runtime.LoadPlugins();
            using (Model model = Model.Open(runtime, "samples/models/demo.aerie"))
            using (Tokenizer tokenizer = model.OpenTokenizer())
            {
""" + body + "            }\n        }\n    }\n}\n")
PYTHON
for page in First Rest; do
  compile -nowarn:219 -r:"$tmp/Aerie.dll" -out:"$tmp/$page.exe" "$tmp/$page.cs"
  out=$(mono "$tmp/$page.exe")  # a substitution inside [ ] would lose its status
  [ -n "$out" ]
done

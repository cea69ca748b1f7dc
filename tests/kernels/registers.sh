#!/usr/bin/env bash
# registers.sh BUILD: the sums of Linear's tiles for AVX-512 are in registers. Whether GCC keeps them there hangs by a thread (a
# lambda inlined too late cost a tenth of a pass), no result shows it, and times decide no test: the machine code does.
set -euo pipefail
program=$1/bin/test_kernels
[ "$(uname -m)" = x86_64 ] || { echo "not x86-64"; exit 77; }
readelf -p .comment "$program" | grep -q 'GCC: .* 12\.' || { echo "not built with GCC 12"; exit 77; }
grep -qa N_AVX3_DL "$program" || { echo "built without AVX-512"; exit 77; }
objdump -d --no-show-raw-insn -C "$program" | python3 -c '
import re, sys

PRODUCT = re.compile(r"\tv(pdpbusd|pmaddwd|pmaddubsw|fmadd\w*ps)\s")
ON_STACK = re.compile(r"\tv\S+\s.*\(%r[sb]p[,)].*[xyz]mm|\tv\S+\s.*[xyz]mm.*\(%r[sb]p[,)]")
NAME = re.compile(r"^([0-9a-f]+) <.*N_AVX3(?:_DL)?::(tile_(?:f32|bf16|int8|blocks)<.*>)\(aerie::kernels::cpu::LinearTile const&\)>:$")
Q4_1 = re.compile(r"DType\)6\b")
MXFP4_BEHIND_A_MASK = re.compile(r"N_AVX3::ByteDots.*DType\)7\b")
tiles, code, bad = 0, None, []


def judge(name, code):
    """The shortest loop with at least half of the products of the one with most: what runs for every k. Of q4_1 with a third, for what
    ends a block is longer; and of 24 products one may wait in memory. So of mxfp4, where a mask and a table take a register each."""
    parts, least = (3, 12) if Q4_1.search(name) else (2, 12) if MXFP4_BEHIND_A_MASK.search(name) else (2, 16)
    at = {address: i for i, (address, _) in enumerate(code)}
    loops = []
    for i, (_, line) in enumerate(code):
        jump = re.search(r"\tj\w+\s+([0-9a-f]+)\b", line)
        begin = at.get(int(jump.group(1), 16)) if jump else None
        if begin is not None and begin <= i:
            body = [text for _, text in code[begin : i + 1]]
            loops.append((sum(bool(PRODUCT.search(text)) for text in body), body))
    most = max((products for products, _ in loops), default=0)
    if most == 0:
        sys.exit(f"{name}: no loop with products: this script does not know the code any more")
    products, body = min((loop for loop in loops if parts * loop[0] >= most), key=lambda loop: len(loop[1]))
    moved = sum(bool(ON_STACK.search(text)) for text in body)
    if least * moved > products:
        bad.append(f"{name}: {moved} vectors on the stack beside {products} products")


for line in sys.stdin:
    if new := NAME.match(line):
        code = []
        name = re.sub(r"aerie::kernels::cpu::", "", new.group(2))
    elif code is not None and line.strip():
        address, _, text = line.partition(":")
        if re.fullmatch(r"\s*[0-9a-f]+", address):
            code.append((int(address, 16), "\t" + text.strip()))
    elif code is not None:
        tiles += 1
        judge(name, code)
        code = None
if tiles < 150:
    sys.exit(f"{tiles} tiles found: this script does not know their names any more")
if bad:
    sys.exit("\n".join(bad))
print(f"{tiles} tiles")
'

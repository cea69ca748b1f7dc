#!/usr/bin/env python3
"""edit_speed.py BUILD > table: Qwen2.5-Coder-1.5B-Instruct, a published model, edits code and goes on with it, with drafts and without.

No drafter here has weights: what is drafted has been in the text. Every line and every task is one `aerie run --compare`: the same
answer with the drafter and by plain decode, in turn if it is short; the lines take turns, task after task. Ratio: all tokens over
all seconds, with over without; in brackets the tasks' least and most. tau: tokens over cycles. Tasks are pieces of this repository's
files. BUILD keeps the model (samples/published/model.sh fetches it, 1.1 GB).
"""
import argparse
import json
import pathlib
import subprocess

from chat_speed import line, package

ROOT = pathlib.Path(__file__).resolve().parents[2]
# What is asked, and of which file's lines.
EDITS = [
    ("Add type hints to every function.", "samples/qwen_coder/vector.py", 1, 40),
    ("Rename the class Vector to Vector3.", "samples/qwen_coder/vector.py", 1, 40),
    ("Add a docstring to every function.", "samples/published/fetch.py", 41, 62),
    ("Rename the variable `tmp` to `folder`.", "tests/install/prefix.sh", 1, 30),
    ("Add a comment above every function.", "samples/cli/convert.cc", 1, 45),
    ("Use double in place of float.", "kernels/e4m3.h", 1, 40),
    ("Add a required field `email`, a text, to the schema.", "samples/smollm2/person.json", 1, 40),
    ("Turn the messages into Spanish.", "samples/unity_npc/Npc.cs", 1, 45),
]
# A file's beginning, to go on with.
COMPLETIONS = [("samples/qwen_coder/vector.py", 1, 13), ("kernels/e4m3.h", 1, 20), ("tests/bench/chat_speed.py", 1, 40),
               ("samples/editor_complete/editor_complete.c", 1, 40)]
DRAFTERS = ["ngram", "ngram-suffix"]


def piece(file, first, last):
    return "\n".join((ROOT / file).read_text().splitlines()[first - 1:last])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build")
    p.add_argument("--dtype", default="stored")
    p.add_argument("--tasks", choices=["edits", "completions"], help="these alone")
    p.add_argument("--temperatures", default="0,0.7")
    p.add_argument("--tokens", type=int, default=400)
    p.add_argument("--threads", type=int, default=2)
    a = p.parse_args()
    model = package(a.build, a.dtype, "qwen_coder")
    common = [pathlib.Path(a.build) / "bin/aerie", "run", "--model", model, "--threads", a.threads, "--compare", "--json"]
    edits = [["--chat", "--max-tokens", a.tokens, "--prompt",
              f"{what} Answer with the whole code and nothing else.\n\n```\n{piece(*where)}\n```"] for what, *where in EDITS]
    completions = [["--max-tokens", 128, "--prompt", piece(*where) + "\n"] for where in COMPLETIONS]
    print("| tasks | temperature | drafter, tree | tokens/s with | without | ratio | τ |\n|---|---|---|---|---|---|---|")
    for name, tasks in (("edits", edits), ("completions", completions)):
        if a.tasks not in (None, name):
            continue
        for temperature in map(float, a.temperatures.split(",")):
            runs = [[] for _ in DRAFTERS]
            for seed, task in enumerate(tasks, 1):
                for drafter, out in zip(DRAFTERS, runs):
                    command = [*common, "--drafter", drafter, "--temperature", temperature, "--seed", seed, *task]
                    out.append(json.loads(subprocess.run([str(c) for c in command], check=True, capture_output=True).stdout))
            for drafter, r in zip(DRAFTERS, runs):
                print(line(name, [drafter], ["auto"], temperature, r), flush=True)


if __name__ == "__main__":
    main()

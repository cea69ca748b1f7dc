"""Runs `aerie bench` for the study and says what each row was measured with."""

import datetime
import hashlib
import json
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
TREES = ["chain", "static", "eagle2", "backbone"]
TIMED = TREES + ["cast", "auto"]  # these two decide by measured time, so their τ is no constant either
HEADS = ["demo-eagle", "demo-eagle3", "demo-fasteagle", "demo-medusa", "demo-hydra", "demo-small"]
FREE = ["ngram", "ngram-suffix", "lookahead"]


def drafters(models: Path) -> dict[str, str]:
    """Name -> what --drafter takes: the heads that exist, and the plugins without weights."""
    heads = {head: str(models / f"{head}.aerie") for head in HEADS if (models / f"{head}.aerie").exists()}
    return heads | {plugin: plugin for plugin in FREE}


def machine() -> dict:
    cpu = "unknown CPU"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            cpu = line.split(":", 1)[1].strip()
            break
    return {"cpu": cpu, "cpus": os.cpu_count(), "date": str(datetime.date.today())}


def commit() -> str:
    return subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()


def package(path: str) -> str:
    """Tells a retrained head from the one before, so that --resume measures it again."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:12] if os.path.exists(path) else "no weights"


def settings(drafter: str):
    """(trees, --tree-nodes): the published sizes, chains of 7, and EAGLE's trees with as many drafts as a backbone."""
    yield TREES, 0
    yield ["chain"], 7
    if drafter in ("demo-eagle", "demo-eagle3"):
        yield ["eagle2"], 71  # the root and 70 drafts


def bench(args, file: Path, temperature: float, drafter: str, trees, noises, nodes=0, repeats=1, limit=0) -> list[dict]:
    command = [args.aerie, "bench", "--model", args.models / "demo.aerie", "--drafter", drafter, "--threads", 1, "--json",
               "--temperature", temperature, "--prompts", file, "--limit", limit or args.prompts, "--max-tokens", args.max_tokens,
               "--repeats", repeats, "--tree-nodes", nodes]
    command += [part for tree in trees for part in ("--tree", tree)]
    command += [part for noise in noises for part in ("--draft-noise", noise)]
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: {done.stderr}")
    return json.loads(done.stdout)["rows"]


def acceptance(args, results: dict, files: dict[str, Path], save) -> None:
    """τ and acceptance: one repeat, because they are the same in every run."""
    def key(row):
        return tuple(row.get(k) for k in ("kind", "temperature", "name", "nodes", "target", "package", "prompts", "max_tokens"))

    target = package(str(args.models / "demo.aerie"))
    have = {key(row) for row in results["rows"]}
    kept = set()
    for name, drafter in drafters(args.models).items():
        if name not in results["drafters"]:
            continue
        for kind, file in files.items():
            for temperature in results["temperatures"]:
                for trees, nodes in settings(name):
                    if nodes and temperature:
                        continue
                    made = {"kind": kind, "temperature": temperature, "name": name, "nodes": nodes, "target": target,
                            "package": package(drafter), "prompts": args.prompts, "max_tokens": args.max_tokens}
                    kept.add(key(made))
                    if key(made) in have:
                        continue
                    noises = ["none", "shared", "sampled"] if temperature else ["shared"]
                    rows = bench(args, file, temperature, drafter, trees, noises, nodes)
                    made |= {"commit": commit(), "date": str(datetime.date.today())}
                    results["rows"] += [row | made | {"drafter": "none" if row["drafter"] == "none" else name} for row in rows]
                    save()
        print("acceptance:", name, flush=True)
    results["rows"] = [row for row in results["rows"] if key(row) in kept]  # of older heads or other prompts
    save()


def timing(args, results: dict, files: dict[str, Path], save) -> None:
    """Speed: few prompts, many interleaved repeats, medians; plain decode runs among the trees in every call."""
    same = ("kind", "temperature", "name", "target", "package", "repeats", "prompts", "max_tokens")
    target = package(str(args.models / "demo.aerie"))
    have = {tuple(row.get(k) for k in same) for row in results["timing"]}
    for name, drafter in drafters(args.models).items():
        if name not in results["drafters"]:
            continue
        for kind, file in files.items():
            for temperature in results["temperatures"]:
                made = {"kind": kind, "temperature": temperature, "name": name, "target": target, "package": package(drafter),
                        "repeats": args.timing_repeats, "prompts": args.timing_prompts, "max_tokens": args.max_tokens}
                if tuple(made[k] for k in same) in have:
                    continue
                noises = ["none", "shared"] if temperature else ["shared"]
                before = os.getloadavg()[0]
                rows = bench(args, file, temperature, drafter, TIMED, noises, 0, args.timing_repeats, args.timing_prompts)
                made |= {"load": before, "commit": commit(), "date": str(datetime.date.today())}
                results["timing"] = [r for r in results["timing"]
                                     if (r["kind"], r["temperature"], r["name"]) != (kind, temperature, name)]
                results["timing"] += [row | made | {"drafter": "none" if row["drafter"] == "none" else name} for row in rows]
                save()
        print("timing:", name, flush=True)

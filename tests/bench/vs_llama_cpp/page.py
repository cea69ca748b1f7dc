#!/usr/bin/env python3
"""A Markdown page from the JSON of vs_llama_cpp.py: every number on it is computed from that file.

    python3 tests/bench/vs_llama_cpp/page.py results.json PAGE.md
"""

import json
import sys
from pathlib import Path
from statistics import median, quantiles

ENGINES = ["aerie", "llama.cpp"]
BUSY = 0.05  # other work that makes timings worthless


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "|".join("-" * max(3, len(h)) for h in header) + "|"]
    return "\n".join(lines + ["| " + " | ".join(str(c) for c in row) + " |" for row in rows]) + "\n"


def spread(ms):
    """median [min; lower quartile – upper quartile]"""
    if len(ms) < 2:
        return f"{ms[0]:.2f}"
    low, _, high = quantiles(ms, n=4, method="inclusive")
    return f"{median(ms):.2f} [{min(ms):.2f}; {low:.2f}–{high:.2f}]"


def at(run, engine, n):
    return median(run[engine]["ms"][str(n)])


def ratio(run, n):
    """How many times as long llama.cpp takes."""
    return at(run, "llama.cpp", n) / at(run, "aerie", n)


def gbps(run, engine):
    return run["weight_bytes"][engine] / at(run, engine, 1) * 1e-6


def title(run):
    threads = f"{run['threads']} thread{'s' * (run['threads'] > 1)}"
    return f"{run['shape']}, {run['formats'][0]} / {run['formats'][1]}, {threads}"


def line(run):
    a, b = (at(run, e, 1) for e in ENGINES)
    return (f"{title(run)}: n=1 aerie {a:.2f} ms, llama.cpp {b:.2f} ms, ratio {b / a:.2f}; "
            f"logits' cosine {run['logits']['cosine']:.5f}; other work {100 * run['other_work']:.0f} %")


def summary(results):
    dram = results["machine"].get("dram_read_gbps")
    header = ["model", "tokens/s", "ratio at n = 1", "GB/s of weights", *(["of DRAM read"] if dram else []),
              f"prefill {results['prefill']}, ms", "ratio", "logits: cosine, same argmax"]
    rows = []
    for run in results["runs"]:
        both = lambda f: " / ".join(f(e) for e in ENGINES)
        prefill = {e: run[e]["prefill_ms"] for e in ENGINES}
        share = [both(lambda e: f"{100 * gbps(run, e) / dram[str(run['threads'])]:.0f} %")] if dram else []
        rows.append([title(run), both(lambda e: f"{1000 / at(run, e, 1):.1f}"), f"{ratio(run, 1):.2f}",
                     both(lambda e: f"{gbps(run, e):.1f}"), *share,
                     *([both(lambda e: f"{median(prefill[e]):.0f}"),
                        f"{median(prefill['llama.cpp']) / median(prefill['aerie']):.2f}"] if prefill["aerie"] else ["–", "–"]),
                     f"{run['logits']['cosine']:.4f}, {100 * run['logits']['argmax']:.0f} %"])
    return table(header, rows)


def opening(results):
    rows = []
    for run in results["runs"]:
        both = lambda key: " / ".join(f"{run[e][key]:.0f}" for e in ENGINES)
        rows.append([title(run), *map(both, ("open_ms", "first_pass_ms", "opened_mib", "rss_mib", "anon_mib"))])
    return table(["model", "open, ms", "first pass, ms", "resident when open, MiB", "after that pass",
                  "of it not from the file"], rows)


def passes(run, rows):
    return table(["rows", "aerie, ms", "llama.cpp, ms", "ratio", "aerie t(n)/t(1)", "llama.cpp t(n)/t(1)"],
                 [[n, *(spread(run[e]["ms"][str(n)]) for e in ENGINES), f"{ratio(run, n):.2f}",
                   *(f"{at(run, e, n) / at(run, e, 1):.2f}" for e in ENGINES)] for n in rows])


def write(results, file: Path) -> None:
    m, first = results["machine"], results["runs"][0]
    dram = m.get("dram_read_gbps")
    each = ", ".join(f"{gb:.1f} GB/s with {t}" for t, gb in dram.items()) if dram else ""
    reads = f"DRAM read bandwidth in the same run, by threads: {each}. " if dram else ""
    busy = max(run["other_work"] for run in results["runs"])
    switches = [w.split("=")[0].split(":")[-1].strip() for w in first["llama.cpp"]["features"].split("|") if "= 1" in w]
    out = [f"""# Aerie and llama.cpp on one CPU, random weights

{m['cpu']}, {m['cpus']} CPUs; {m['date']}; load average {m['load_before']:.1f} before, {m['load_after']:.1f} after; Aerie {m['commit']}
({first['aerie']['compiler']}; {first['aerie']['features']}), llama.cpp {first['llama.cpp']['version']} ({first['llama.cpp']['compiler']};
{' '.join(switches)}). {reads}
Other work took at most {100 * busy:.0f} % of the machine{'.' if busy < BUSY else ': **it was busy, and these timings say nothing.**'}

**Random weights**: Gaussian, the same in both engines' formats; speed only, no text. A pass of n rows behind {results['context']} positions
gives the logits of every row. Medians of {results['repeats']} interleaved repeats, [minimum; quartiles]. Ratio: llama.cpp's time over
Aerie's, above 1 where Aerie is faster. Where two numbers share a cell, Aerie's is the first. Made by `tests/bench/vs_llama_cpp.py`.
""", summary(results), "## Opening\n\nThe file is in the page cache, where an opening before this one brought it. The first pass brings in what was only mapped.\n", opening(results)]
    for run in results["runs"]:
        out += [f"## {title(run)}\n", passes(run, results["rows"])]
    file.write_text("\n".join(out))


if __name__ == "__main__":
    write(json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2]))

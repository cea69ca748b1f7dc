"""The two engines generating text from token ids: the same questions, the same answers."""

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import vs_llama_cpp

ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Way:
    """How one engine drafts. Aerie: drafter packages and a tree; llama.cpp: its method, draft model, and least p."""

    engine: str
    name: str
    drafters: tuple[str, ...] = ()
    tree: str = ""
    nodes: int = 0
    depth: int = 0
    method: str = "none"
    draft: int = 0
    p_min: float = 0

    @property
    def group(self) -> str:
        """The fastest of each group is timed."""
        if self.engine == "aerie":
            return {"": "plain", "auto": "auto"}.get(self.tree, "fixed tree")
        return {"none": "plain", "draft-eagle3": "EAGLE-3"}.get(self.method, self.method.split("-")[0])  # draft, ngram


class Aerie:
    """In this process, through the Python bindings. Threads sleep between texts."""

    def __init__(self, build: Path, folder: Path, threads: int):
        os.environ["AERIE_DIR"] = str(build)
        sys.path.insert(0, str(ROOT / "bindings/python"))
        import aerie

        self.aerie = aerie
        self.runtime = aerie.Runtime(threads=threads)
        self.model = aerie.Model(folder / "target.aerie", self.runtime, keep_prefixes=False)
        self.folder, self.drafters = folder, {}
        self.about = self.runtime.description

    def drafter(self, name: str):
        if name not in self.drafters:
            self.drafters[name] = self.model.drafter(self.folder / f"{name}.aerie")
        return self.drafters[name]

    def generate(self, way: Way, prompt: list[int], temperature: float, seed: int, tokens: int) -> dict:
        options = {}
        if way.tree:
            options = {"drafter": [self.drafter(d) for d in way.drafters],
                       "tree": self.aerie.Tree(way.tree, nodes=way.nodes, depth=way.depth)}
        out, start = [], 0.0
        with self.model.session(temperature=temperature, seed=seed, ignore_eos=True, **options) as session:
            session.append(prompt)
            while len(out) < tokens:
                out += [t.id for t in session.step(max_tokens=tokens - len(out)).tokens]
                if not start:
                    first, start = len(out), time.perf_counter()
            ms = (time.perf_counter() - start) * 1e3
            cycles = session.statistics().cycles
        time.sleep(0.02)
        return {"tokens": out, "ms": ms, "timed_tokens": len(out) - first, "cycles": cycles}


class Llama:
    """In a process of its own (llama_speculation.cc)."""

    def __init__(self, program: Path, target: Path, threads: int, context: int, vocab_used: int, drafts: list[Path]):
        self.driver = vs_llama_cpp.Driver(program, target, threads, context, vocab_used, *drafts)
        self.about = self.driver.about

    def generate(self, way: Way, prompt: list[int], temperature: float, seed: int, tokens: int) -> dict:
        return self.driver.ask("generate", way.method, way.draft, way.nodes, way.p_min, temperature, seed, tokens, *prompt)

    def close(self) -> None:
        self.driver.close()


def llama_program(options: list[str]) -> Path:
    done = subprocess.run([ROOT / "tests/bench/vs_llama_cpp/build.sh", "llama_speculation", *options], check=True,
                          stdout=subprocess.PIPE, text=True)
    return Path(done.stdout.strip())

"""The training loop that target and head share: wall clock, log, curve, checkpoints, snapshots.

A `Job` says what one step is; the loop decides when to stop, log, evaluate and save, and continues an
interrupted run from its checkpoint.
"""

import time
from dataclasses import dataclass
from pathlib import Path

import torch

from . import report, stream
from .checkpoint import Checkpoint
from .schedule import WallClock, learning_rate_factor


@dataclass
class LoopSettings:
    data: Path
    work: Path
    out: Path
    minutes: float
    steps: int
    threads: int
    seed: int
    sequence: int
    short_sequence: int
    short_share: float
    rows: int
    micro_rows: int
    python_share: float
    warmup_steps: int
    decay_share: float
    clip: float
    compile: bool
    log_every: int
    evaluate_minutes: float
    checkpoint_minutes: float


class Job:
    """What a trainer must say. `self.loop` is set by the loop before the first step."""

    title = "run"
    trained: torch.nn.Module
    optimisers: list[torch.optim.Optimizer]
    mixture: stream.Mixture
    metrics: list[str] = []

    def losses(self, rows: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError

    def evaluate(self, rows: int) -> dict[str, float]:
        raise NotImplementedError

    def export(self, folder: Path) -> None:
        raise NotImplementedError


def cut(rows: torch.Tensor, length: int) -> torch.Tensor:
    """[B, T+1] -> [B*T/length, length+1]: shorter rows, each with its next token."""
    return torch.cat([rows[:, i:i + length + 1] for i in range(0, rows.shape[1] - 1, length)])


class Loop:
    def __init__(self, settings: LoopSettings, job: Job):
        self.s, self.job = settings, job
        job.loop = self
        settings.work.mkdir(parents=True, exist_ok=True)
        self.base_rates = [[g["lr"] for g in o.param_groups] for o in job.optimisers]
        self.checkpoint = Checkpoint(settings.work / "checkpoint.pt", job.trained, job.optimisers)
        self.step = self.tokens = 0
        spent = 0.0
        extra = self.checkpoint.load()
        if extra:
            self.step, self.tokens, spent = extra["step"], extra["tokens"], extra["spent"]
            job.mixture.restore(extra["mixture"])
            report.log(f"continuing at step {self.step}")
        self.clock = WallClock(settings.minutes, spent, settings.steps, self.step)
        self.csv = settings.work / f"{job.title}.csv"
        self.curve = report.Curve(
            self.csv, ["step", "tokens", "seconds", "loss", "learning_rate_factor", *job.metrics], self.step)

    def train_step(self) -> tuple[float, float]:
        """One optimiser step; returns (loss, learning-rate factor)."""
        s, job = self.s, self.job
        rows, micro = job.mixture.batch(s.rows), s.micro_rows
        if self.clock.progress < s.short_share:
            rows, micro = cut(rows, s.short_sequence), micro * s.sequence // s.short_sequence
        factor = learning_rate_factor(self.clock.progress, self.step, s.warmup_steps, s.decay_share)
        for optimiser, rates in zip(job.optimisers, self.base_rates):
            for group, rate in zip(optimiser.param_groups, rates):
                group["lr"] = rate * factor
        total = 0.0
        parts = rows.split(micro)
        for part in parts:
            loss = job.losses(part) / len(parts)
            loss.backward()
            total += loss.item()
        torch.nn.utils.clip_grad_norm_(job.trained.parameters(), s.clip)
        for optimiser in job.optimisers:
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
        self.step += 1
        self.tokens += s.rows * s.sequence
        return total, factor

    def save(self) -> None:
        self.checkpoint.save({"step": self.step, "tokens": self.tokens, "spent": self.clock.spent,
                              "mixture": self.job.mixture.state()})

    def evaluate(self, rows: int) -> None:
        values = self.job.evaluate(rows)
        report.log(f"step {self.step} held out: " + ", ".join(f"{k} {v:.4f}" for k, v in values.items()))
        self.curve.add(step=self.step, tokens=self.tokens, seconds=self.clock.spent, **values)

    def run(self) -> None:
        s = self.s
        bar = report.Progress(self.job.title)
        saved = evaluated = self.clock.spent
        running = None
        self.clock.skip()
        while self.clock.progress < 1.0:
            started = time.monotonic()
            loss, factor = self.train_step()
            self.clock.tick()
            running = loss if running is None else 0.95 * running + 0.05 * loss
            speed = s.rows * s.sequence / (time.monotonic() - started)
            bar.show(self.clock.progress, f"step {self.step} loss {running:.3f} {speed:.0f} tokens/s")
            if self.step % s.log_every == 0:
                report.log(f"step {self.step} tokens {self.tokens} loss {running:.4f} rate {factor:.3f} "
                           f"{speed:.0f} tokens/s {self.clock.progress:.1%}")
                self.curve.add(step=self.step, tokens=self.tokens, seconds=self.clock.spent, loss=running,
                               learning_rate_factor=factor)
            if self.clock.spent - saved > 60 * s.checkpoint_minutes:
                saved = self.clock.spent
                self.save()
            if self.clock.spent - evaluated > 60 * s.evaluate_minutes:
                evaluated = self.clock.spent
                self.evaluate(32)
                self.job.export(s.work / "snapshot")
                self.clock.skip()
        bar.close()
        self.save()
        self.job.export(s.out)
        self.evaluate(150)

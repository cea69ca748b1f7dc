"""Train the target model.

    python3 -m aerie.train.target --data data --work runs/target --out models/target --minutes 75

Muon for the hidden matrices, AdamW for the rest, bfloat16 autocast where the CPU has it, a wall-clock learning-rate schedule.
`--work` holds the checkpoint and the loss curve; the same command continues an interrupted run.
"""

import math
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F

from . import hf, perplexity, report, settings, stream
from .loop import Job, Loop, LoopSettings
from .model import Llama, LlamaConfig, initialise
from .muon import Muon, split_parameters
from .precision import autocast


@dataclass
class Settings(LoopSettings):
    muon_lr: float
    muon_decay: float
    adam_lr: float


def next_token_loss(model: Llama, rows: torch.Tensor) -> torch.Tensor:
    """rows [B,T+1] -> mean cross-entropy."""
    with autocast():
        logits = model(rows[:, :-1])
    return F.cross_entropy(logits.float().flatten(0, 1), rows[:, 1:].flatten())


class TargetJob(Job):
    title = "target"
    metrics = [f"{kind}_loss" for kind in stream.KINDS]

    def __init__(self, s: Settings):
        self.s = s
        self.trained = Llama(LlamaConfig(max_position_embeddings=s.sequence))
        initialise(self.trained, s.seed)
        hidden, rest = split_parameters(self.trained)
        self.optimisers = [
            Muon(hidden, lr=s.muon_lr, weight_decay=s.muon_decay),
            torch.optim.AdamW(rest, lr=s.adam_lr, betas=(0.9, 0.95), weight_decay=0.0),
        ]
        self.mixture = stream.mixture(s.data, s.python_share, s.sequence + 1, s.seed)
        self._loss = torch.compile(next_token_loss) if s.compile else next_token_loss

    def losses(self, rows: torch.Tensor) -> torch.Tensor:
        return self._loss(self.trained, rows)

    def evaluate(self, rows: int) -> dict[str, float]:
        values = {}
        for kind in stream.KINDS:
            values[f"{kind}_loss"] = perplexity.held_out_loss(self.trained, self.s.data, kind, self.s.sequence, rows)
            report.log(f"held-out perplexity, {kind}: {math.exp(values[f'{kind}_loss']):.2f}")
        return values

    def export(self, folder: Path) -> None:
        hf.save(self.trained, self.s.data / "tokenizer.json", folder)


def main(argv=None) -> None:
    s = settings.parse(Settings, "target.toml", "Train the target model.", argv)
    torch.set_num_threads(s.threads)
    loop = Loop(s, TargetJob(s))
    loop.run()
    report.plot(loop.csv, s.work / "target.png", {
        "loss": "training", "novels_loss": "held-out novels", "python_loss": "held-out Python"}, "Target")


if __name__ == "__main__":
    main()

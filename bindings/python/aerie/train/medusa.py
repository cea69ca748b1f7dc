"""Train Medusa heads for a target.

    python3 -m aerie.train.medusa --target models/target --data data --work runs/medusa --out models/medusa

Medusa-1: the target is frozen, head i's loss weighs 0.8^i. Departures from the paper (arXiv 2401.10774): the target's
distribution is the teacher instead of the text's token, and all heads share the target's frozen LM head.
"""

from dataclasses import dataclass
from pathlib import Path

from . import curves, settings
from .head_job import HeadJob, HeadSettings
from .heads import medusa


@dataclass
class Settings(HeadSettings):
    heads: int


class MedusaJob(HeadJob):
    title = "medusa"

    def __init__(self, s: Settings):
        super().__init__(s, s.heads)

    def build(self, rms) -> medusa.MedusaHead:
        c = self.target.config
        return medusa.MedusaHead(c.hidden_size, self.s.heads, c.vocab_size)

    def export(self, folder: Path) -> None:
        medusa.save(self.trained, folder)


def main(argv=None) -> None:
    s = settings.parse(Settings, "medusa.toml", "Train Medusa heads.", argv)
    curves.train(s, MedusaJob)


if __name__ == "__main__":
    main()

"""Train Hydra heads for a target.

    python3 -m aerie.train.hydra --target models/target --data data --work runs/hydra --out models/hydra

Sequentially dependent, grounded MLP heads, trained with the text's own tokens before each position (teacher forcing).
As in Hydra++ (arXiv 2402.05109), the target's distribution is the teacher; departures: no prefix layer, and
all heads share the target's frozen LM head.
"""

from dataclasses import dataclass
from pathlib import Path

from . import curves, settings
from .head_job import HeadJob, HeadSettings
from .heads import hydra


@dataclass
class Settings(HeadSettings):
    heads: int


class HydraJob(HeadJob):
    title = "hydra"

    def __init__(self, s: Settings):
        super().__init__(s, s.heads)

    def build(self, rms) -> hydra.HydraHead:
        c = self.target.config
        head = hydra.HydraHead(c.hidden_size, self.s.heads, c.vocab_size)
        head.set_scales(rms["feature"][0], rms["embedding"][0])
        return head

    def export(self, folder: Path) -> None:
        hydra.save(self.trained, folder)


def main(argv=None) -> None:
    s = settings.parse(Settings, "hydra.toml", "Train Hydra heads.", argv)
    curves.train(s, HydraJob)


if __name__ == "__main__":
    main()

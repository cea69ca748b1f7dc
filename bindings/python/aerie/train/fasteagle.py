"""Train a FastEagle cascade for a target.

    python3 -m aerie.train.fasteagle --target models/target --data data --work runs/fasteagle --out models/fasteagle

The loss is the paper's (arXiv 2509.20416, Eq. 3): sum over layers of level_decay^(N-i) (token_weight CE_i +
feature_weight SmoothL1_i), every layer on the outputs of the one before in the same pass. Its Eq. 5 sums SmoothL1 over
the H components; as in EAGLE's code, "in line" with which the paper chose its weights, it is the mean here.
"""

from dataclasses import dataclass
from pathlib import Path

import torch

from . import curves, settings
from .head_job import HeadJob, HeadSettings
from .heads import fasteagle


@dataclass
class Settings(HeadSettings):
    layers: int
    intermediate_size: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    cascade: bool
    feature_weight: float
    token_weight: float
    final_share: float
    final_token_weight: float


class FastEagleJob(HeadJob):
    title = "fasteagle"

    def __init__(self, s: Settings):
        super().__init__(s, s.layers)

    def build(self, rms) -> fasteagle.FastEagle:
        s, c = self.s, self.target.config
        head = fasteagle.FastEagle(fasteagle.FastEagleConfig(
            num_hidden_layers=s.layers, hidden_size=c.hidden_size, intermediate_size=s.intermediate_size,
            num_attention_heads=s.num_attention_heads, num_key_value_heads=s.num_key_value_heads,
            head_dim=s.head_dim, rms_norm_eps=c.rms_norm_eps, rope_theta=c.rope_theta, vocab_size=c.vocab_size,
            max_position_embeddings=c.max_position_embeddings,
            eagle_aux_hidden_state_layer_ids=c.tap_layers()), s.cascade)
        head.set_scales(rms["taps"], rms["embedding"][0])
        return head

    def combine(self, token: torch.Tensor, feature: torch.Tensor) -> torch.Tensor:
        s = self.s
        final = self.loop.clock.progress >= 1 - s.final_share
        weights = s.level_decay ** torch.arange(s.layers - 1, -1, -1)
        return (weights * ((s.final_token_weight if final else s.token_weight) * token
                           + s.feature_weight * feature)).sum()

    def export(self, folder: Path) -> None:
        fasteagle.save(self.trained, folder)


def main(argv=None) -> None:
    s = settings.parse(Settings, "fasteagle.toml", "Train a FastEagle cascade.", argv)
    curves.train(s, FastEagleJob)


if __name__ == "__main__":
    main()

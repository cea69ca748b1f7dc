"""Train an EAGLE-3 head for a target.

    python3 -m aerie.train.eagle3 --target models/target --data data --work runs/eagle3 --out models/eagle3

Training-time test (arXiv 2503.01840): the head is unrolled `passes` steps on its own outputs, step s weighs
level_decay^s, and the loss is cross-entropy against the target's distribution alone, renormalised on the draft
vocabulary (the most frequent tokens of the training text). Norm and LM head start as the target's.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from . import curves, settings, stream
from .head_job import HeadJob, HeadSettings
from .heads import eagle3


@dataclass
class Settings(HeadSettings):
    passes: int
    draft_vocab_size: int
    intermediate_size: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int


def frequent_tokens(streams: list[np.ndarray], weights: list[float], vocabulary: int, count: int) -> torch.Tensor:
    """The `count` tokens that are most frequent in the weighted mixture of the streams, ascending ids."""
    shares = sum(w * np.bincount(s, minlength=vocabulary) / len(s) for s, w in zip(streams, weights, strict=True))
    return torch.from_numpy(np.sort(np.argsort(-shares, kind="stable")[:count]))


class Eagle3Job(HeadJob):
    title = "eagle3"

    def __init__(self, s: Settings):
        super().__init__(s, s.passes)
        if s.initial:
            return  # it has a vocabulary and a trained LM head
        sources = self.mixture.sources
        ids = frequent_tokens([source.stream for source in sources], list(self.mixture.weights),
                              self.target.config.vocab_size, s.draft_vocab_size)
        self.trained.set_vocabulary(ids)
        with torch.no_grad():
            self.trained.lm_head.weight.copy_(self.target.embed_tokens.weight[ids])
            self.trained.norm.weight.copy_(self.target.norm.weight)

    def build(self, rms) -> eagle3.Eagle3Head:
        s, c = self.s, self.target.config
        head = eagle3.Eagle3Head(eagle3.Eagle3Config(
            draft_vocab_size=s.draft_vocab_size, hidden_size=c.hidden_size, intermediate_size=s.intermediate_size,
            num_attention_heads=s.num_attention_heads, num_key_value_heads=s.num_key_value_heads,
            head_dim=s.head_dim, rms_norm_eps=c.rms_norm_eps, rope_theta=c.rope_theta, vocab_size=c.vocab_size,
            max_position_embeddings=c.max_position_embeddings,
            eagle_aux_hidden_state_layer_ids=c.tap_layers()), s.passes)
        head.fc.set_scale(*rms["taps"])
        return head

    def export(self, folder: Path) -> None:
        eagle3.save(self.trained, folder)


def main(argv=None) -> None:
    s = settings.parse(Settings, "eagle3.toml", "Train an EAGLE-3 head.", argv)
    curves.train(s, Eagle3Job)


if __name__ == "__main__":
    main()

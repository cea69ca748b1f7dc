"""Train a DFlash head for a target.

    python3 -m aerie.train.dflash --target models/target --data data --work runs/dflash --out models/dflash

The loss is cross-entropy alone, with weights that fall from level to level (arXiv 2602.06036), on blocks behind newest tokens
that are drawn anew for every batch. Departs from the paper: the teacher is the target's distribution, not the token that it drew; and a
level counts `rejected_weight` where one before it has another best token than the text (see head_job.level_losses).
"""

from dataclasses import dataclass
from pathlib import Path

import torch

from . import curves, settings
from .head_job import HeadJob, HeadSettings
from .heads import dflash
from .model import Llama
from .precision import autocast
from .rows import read


@dataclass
class Settings(HeadSettings):
    layers: int
    block_size: int
    mask_token_id: int
    anchors: int            # newest tokens, and so blocks, of a row
    intermediate_size: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int


def block_losses(target: Llama, head: dflash.DFlash, tokens: torch.Tensor, anchors: torch.Tensor, rejected: float) -> torch.Tensor:
    """Token losses [R-1] of the blocks behind `anchors` [A] of tokens [B,T]."""
    with autocast():
        with torch.no_grad():
            rows = read(target, tokens)
        states = head.blocks(target, rows, anchors)
        at = anchors[:, None] + torch.arange(states.shape[2])  # the token before each
        with torch.no_grad():
            teacher = target.logits(rows.features[:, at]).float().softmax(-1)
        logs = target.logits(states).float().log_softmax(-1)
        entropy = -(teacher * logs).sum(-1)
        right = (logs.detach().argmax(-1) == tokens[:, at + 1]).float().cumprod(-1)
        reached = torch.cat((torch.ones_like(right[..., :1]), right[..., :-1]), dim=-1)
        return (torch.where(reached > 0, 1.0, rejected) * entropy).mean((0, 1))


class DFlashJob(HeadJob):
    title = "dflash"

    def __init__(self, s: Settings):
        super().__init__(s, s.block_size - 1)
        self._blocks = torch.compile(block_losses) if s.compile else block_losses

    def build(self, rms) -> dflash.DFlash:
        s, c = self.s, self.target.config
        head = dflash.DFlash(dflash.DFlashConfig(
            num_hidden_layers=s.layers, block_size=s.block_size, mask_token_id=s.mask_token_id,
            target_layer_ids=[layer - 1 for layer in c.tap_layers()], num_target_layers=c.num_hidden_layers,
            hidden_size=c.hidden_size, intermediate_size=s.intermediate_size, num_attention_heads=s.num_attention_heads,
            num_key_value_heads=s.num_key_value_heads, head_dim=s.head_dim, rms_norm_eps=c.rms_norm_eps, rope_theta=c.rope_theta,
            vocab_size=c.vocab_size, max_position_embeddings=c.max_position_embeddings))
        head.set_scales(rms["taps"])
        return head

    def losses(self, rows: torch.Tensor) -> torch.Tensor:
        s, tokens = self.s, rows[:, :-1]
        room = tokens.shape[1] - s.block_size - s.prompt
        anchors = 1 + s.prompt + torch.randperm(room)[:s.anchors]
        token = self._blocks(self.target, self.trained, tokens, anchors, s.rejected_weight)
        return self.combine(token, token)

    def export(self, folder: Path) -> None:
        dflash.save(self.trained, folder)


def main(argv=None) -> None:
    s = settings.parse(Settings, "dflash.toml", "Train a DFlash head.", argv)
    curves.train(s, DFlashJob)


if __name__ == "__main__":
    main()

"""Medusa-1 heads (arXiv 2401.10774): K residual blocks on the target's feature, side by side.

Head i (0-based) turns f_j into x + SiLU(W_i x + b_i), and the target's own LM head turns that into the distribution of
t_{j+2+i}; t_{j+1} is the LM head's on f_j itself. Medusa gives every head an LM head of its own; sharing the frozen
one is ours, because K matrices of vocabulary x H would be most of the drafter.
"""

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from ..model import Llama
from ..rows import Rows
from . import files
from .base import Head


class ResBlock(nn.Module):
    def __init__(self, hidden: int):
        super().__init__()
        self.linear = nn.Linear(hidden, hidden)
        nn.init.zeros_(self.linear.weight)  # as Medusa: a new head repeats the feature
        nn.init.zeros_(self.linear.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + F.silu(self.linear(x))


class MedusaHead(nn.ModuleList, Head):
    """Keys `{head}.0.linear.{weight,bias}`, as in the Medusa repository without its LM heads."""

    def __init__(self, hidden: int, heads: int, vocabulary: int):
        super().__init__(nn.Sequential(ResBlock(hidden)) for _ in range(heads))
        self.hidden, self.vocabulary = hidden, vocabulary

    def levels(self, target: Llama, rows: Rows) -> list[torch.Tensor]:
        last = rows.features.shape[1] - 1
        return [head(rows.features[:, :last - i]) for i, head in enumerate(self)]


def save(head: MedusaHead, out: Path, dtype: torch.dtype = torch.float32) -> None:
    files.write(files.tensors(head), {
        "model_type": "medusa", "medusa_num_heads": len(head), "medusa_num_layers": 1,
        "hidden_size": head.hidden, "vocab_size": head.vocabulary}, out, dtype)


def load(folder: Path) -> MedusaHead:
    raw, saved = files.read(folder)
    return files.put(MedusaHead(raw["hidden_size"], raw["medusa_num_heads"], raw["vocab_size"]), saved)

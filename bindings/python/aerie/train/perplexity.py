"""Held-out loss in float32: whole windows spread evenly over the held-out text."""

from pathlib import Path

import torch
import torch.nn.functional as F

from . import stream
from .model import Llama


@torch.no_grad()
def held_out_loss(model: Llama, data: Path, kind: str, length: int, rows: int) -> float:
    """Mean next-token loss over at most `rows` windows of `length` tokens (perplexity is its exponential)."""
    held = torch.from_numpy(stream.tokens(data, kind, "held").astype("int64"))
    available = (len(held) - 1) // length
    rows = min(rows, available)
    starts = [i * available // rows * length for i in range(rows)]
    total = 0.0
    for first in range(0, rows, 8):
        batch = torch.stack([held[s:s + length + 1] for s in starts[first:first + 8]])
        logits = model(batch[:, :-1])
        total += F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten(), reduction="sum").item()
    return total / (rows * length)

"""Hydra heads (arXiv 2402.05109, grounded MLP): Medusa's heads, each reading the tokens drafted before it.

Head i reads x_i = cat(f_j, e(t_{j+1}), ..., e(t_{j+1+i})), (i+2) H columns; its output W_r x_i + b_r + SiLU(W x_i + b)
becomes the distribution of t_{j+2+i} through the target's frozen LM head (Hydra's own repository gives each its own).
"""

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from ..model import Llama
from ..rows import Rows
from . import files
from .base import Head
from .scaled import ScaledLinear


class HydraBlock(nn.Module):
    def __init__(self, inputs: int, hidden: int):
        super().__init__()
        self.linear = ScaledLinear(inputs, hidden, bias=True)
        self.res_connection = ScaledLinear(inputs, hidden, bias=True)
        nn.init.zeros_(self.linear.weight)  # a new head repeats the feature, as Medusa's do
        nn.init.zeros_(self.linear.bias)
        nn.init.zeros_(self.res_connection.bias)
        with torch.no_grad():
            self.res_connection.weight.copy_(torch.eye(hidden, inputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.res_connection(x) + F.silu(self.linear(x))


class HydraHead(Head):
    def __init__(self, hidden: int, heads: int, vocabulary: int):
        super().__init__()
        self.hidden, self.vocabulary = hidden, vocabulary
        self.hydra_mlp = nn.ModuleList(nn.Sequential(HydraBlock((i + 2) * hidden, hidden)) for i in range(heads))

    def set_scales(self, feature: float, embedding: float) -> None:
        for index, (block,) in enumerate(self.hydra_mlp):
            block.linear.set_scale(feature, *[embedding] * (index + 1))
            block.res_connection.set_scale(feature, *[embedding] * (index + 1))

    def levels(self, target: Llama, rows: Rows) -> list[torch.Tensor]:
        last = rows.features.shape[1] - 1
        out, x = [], rows.features
        for index, head in enumerate(self.hydra_mlp):
            length = last - index
            x = torch.cat((x[:, :length], rows.embeddings[:, index + 1:index + 1 + length]), dim=-1)
            out.append(head(x))
        return out


def save(head: HydraHead, out: Path, dtype: torch.dtype = torch.float32) -> None:
    files.write(files.tensors(head), {
        "model_type": "hydra", "hydra_num_heads": len(head.hydra_mlp), "hydra_num_layers": 1,
        "hydra_head_arch": "mlp", "grounded_heads": True, "hidden_state_offset": 0,
        "hidden_size": head.hidden, "vocab_size": head.vocabulary}, out, dtype)


def load(folder: Path) -> HydraHead:
    raw, saved = files.read(folder)
    return files.put(HydraHead(raw["hidden_size"], raw["hydra_num_heads"], raw["vocab_size"]), saved)

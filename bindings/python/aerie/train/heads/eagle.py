"""The EAGLE-1/2 head: one decoder layer that continues the target's features.

Row j reads the next token and the feature of the current one, x_j = fc([embed(t_{j+1}); f_j]), and its
output h_j stands for f_{j+1}: the target's own LM head turns it into the distribution of t_{j+2}. The layer
has no input norm, nothing comes after it, and embedding and LM head are the target's.
"""

from dataclasses import dataclass, fields
from pathlib import Path

import torch
from torch import nn

from ..model import DecoderLayer, LlamaConfig, rope_tables
from ..rows import Rows
from . import files
from .base import Head


@dataclass
class HeadConfig:
    hidden_size: int = 192
    intermediate_size: int = 512
    num_attention_heads: int = 3
    num_key_value_heads: int = 3
    head_dim: int = 64
    rms_norm_eps: float = 1e-5
    rope_theta: float = 10000.0
    vocab_size: int = 4096
    max_position_embeddings: int = 512
    bias: bool = False
    qkv_bias: bool = False


INPUTS = ("shifted", "unshifted", "token", "feature")


class EagleHead(Head):
    """Parameter names are those of the EAGLE repository."""

    def __init__(self, config: HeadConfig, inputs: str = "shifted"):
        """`inputs`, the paper's ablation: row j reads f_j and t_{j+1} (`shifted`, EAGLE), f_j and t_j, or one of them."""
        super().__init__()
        if inputs not in INPUTS:
            raise ValueError(f"inputs: {inputs} is none of {', '.join(INPUTS)}")
        self.config, self.inputs = config, inputs
        shared = {f.name: getattr(config, f.name) for f in fields(LlamaConfig) if hasattr(config, f.name)}
        layer_config = LlamaConfig(**shared, num_hidden_layers=1)
        self.fc = nn.Linear(2 * config.hidden_size, config.hidden_size, bias=config.bias)
        self.layers = nn.ModuleList([DecoderLayer(layer_config, input_norm=False, qkv_bias=config.qkv_bias)])

    def forward(self, embeddings, features, positions=None, mask=None, cache=None) -> torch.Tensor:
        """Embedding of t_{j+1} and feature f_j, both [B,T,H] -> h_j [B,T,H]. `positions` are the j's."""
        if positions is None:
            positions = torch.arange(features.shape[1], device=features.device)
        if self.inputs == "token":
            features = torch.zeros_like(features)
        elif self.inputs == "feature":
            embeddings = torch.zeros_like(embeddings)
        cos, sin = rope_tables(positions, self.config.head_dim, self.config.rope_theta)
        return self.layers[0](self.fc(torch.cat((embeddings, features), dim=-1)), cos, sin, mask, cache)

    def paired(self, x: torch.Tensor) -> torch.Tensor:
        """[B,T,...] of tokens 0..T-1 -> [B,T-1,...]: those that go with rows 0..T-2."""
        return x[:, :-1] if self.inputs == "unshifted" else x[:, 1:]

    def read(self, rows: Rows) -> torch.Tensor:
        """[B,T,H]: what `forward` takes as the features of committed rows."""
        return rows.features


def save(head: EagleHead, out: Path, dtype: torch.dtype = torch.float32) -> None:
    config = {f.name: getattr(head.config, f.name) for f in fields(HeadConfig)}
    config = {"architectures": ["EagleModel"], "model_type": "llama", **config, "num_hidden_layers": 1,
              "hidden_act": "silu", "tie_word_embeddings": True, "bos_token_id": 0, "eos_token_id": 0}
    if head.inputs != "shifted":
        config["inputs"] = head.inputs  # an ablation: no runtime reads it
    files.write(files.tensors(head), config, out, dtype)


def load(folder: Path) -> EagleHead:
    raw, saved = files.read(folder)
    config = HeadConfig(**{f.name: raw[f.name] for f in fields(HeadConfig)})
    return files.put(EagleHead(config, raw.get("inputs", "shifted")), saved)

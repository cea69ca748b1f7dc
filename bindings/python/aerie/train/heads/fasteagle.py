"""FastEagle (arXiv 2509.20416): a cascade of N decoder layers that drafts N tokens in one pass.

Row t reads g_t = fc([l_t; m_t; h_t]), three taps of the target, and the embedding of the next token; layer i (1-based)
gives h_i, which the target's frozen LM head turns into the distribution of t_{t+1+i}. Every layer is a complete
pre-norm layer with keys and values of its own, causal over the rows. The paper names no output norm: there is none.
"""

from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

import torch
from torch import nn

from ..model import DecoderLayer, Llama, LlamaConfig, rope_tables
from ..rows import Rows
from . import files
from .base import Head
from .scaled import ScaledLinear


@dataclass
class FastEagleConfig:
    num_hidden_layers: int = 7
    draft_top_k: int = 10
    hidden_size: int = 192
    intermediate_size: int = 512
    num_attention_heads: int = 3
    num_key_value_heads: int = 1
    head_dim: int = 64
    rms_norm_eps: float = 1e-5
    rope_theta: float = 10000.0
    vocab_size: int = 4096
    max_position_embeddings: int = 512
    eagle_aux_hidden_state_layer_ids: list[int] = field(default_factory=lambda: [2, 8, 13])


class FastEagle(Head):
    def __init__(self, config: FastEagleConfig, cascade: bool = True):
        """Without `cascade` every layer reads the first one's input (parallel heads, the paper's ablation)."""
        super().__init__()
        self.config, self.cascade = config, cascade
        shared = {f.name: getattr(config, f.name) for f in fields(LlamaConfig)}
        hidden = config.hidden_size
        self.fc = ScaledLinear(3 * hidden, hidden)
        self.fc_in = ScaledLinear(2 * hidden, hidden)
        self.layers = nn.ModuleList(DecoderLayer(LlamaConfig(**shared)) for _ in range(config.num_hidden_layers))
        for layer in self.layers:  # each layer starts as the identity
            nn.init.zeros_(layer.self_attn.o_proj.weight)
            nn.init.zeros_(layer.mlp.down_proj.weight)

    def set_scales(self, taps: list[float], embedding: float) -> None:
        self.fc.set_scale(*taps)
        self.fc_in.set_scale(1.0, embedding)

    def forward(self, taps: torch.Tensor, embeddings: torch.Tensor) -> list[torch.Tensor]:
        """taps [B,T,3H] of t, embedding of t+1 [B,T,H] -> h_1 ... h_N, each [B,T,H]."""
        cos, sin = rope_tables(torch.arange(taps.shape[1]), self.config.head_dim, self.config.rope_theta)
        first = x = self.fc_in(torch.cat((self.fc(taps), embeddings), dim=-1))
        out = []
        for layer in self.layers:
            x = layer(x if self.cascade else first, cos, sin)
            out.append(x)
        return out

    def levels(self, target: Llama, rows: Rows) -> list[torch.Tensor]:
        """Each level without the last rows, whose token lies beyond the text."""
        states = self(rows.taps[:, :-1], rows.embeddings[:, 1:])
        return [state[:, :state.shape[1] - i] for i, state in enumerate(states)]


def save(head: FastEagle, out: Path, dtype: torch.dtype = torch.float32) -> None:
    config = {"model_type": "fasteagle", **asdict(head.config)}
    if not head.cascade:
        config["cascade"] = False  # an ablation: no runtime reads it
    files.write(files.tensors(head), config, out, dtype)


def load(folder: Path) -> FastEagle:
    raw, saved = files.read(folder)
    config = FastEagleConfig(**{f.name: raw[f.name] for f in fields(FastEagleConfig)})
    return files.put(FastEagle(config, raw.get("cascade", True)), saved)

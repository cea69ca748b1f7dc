"""The EAGLE-3 head (arXiv 2503.01840): one decoder layer over fused taps, with a reduced vocabulary of its own.

Row j reads the embedding of t_{j+1} and a feature g_j: the fused taps of the target for a committed token, the head's
own output (before its norm) of the row before for a drafted one. The attention's input is [norm(e); norm(g)], the
residual is g itself, and lm_head(norm(output)) is the distribution of t_{j+2} over the draft vocabulary.
"""

from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from .. import self_feed
from ..model import MLP, Attention, Llama, LlamaConfig, RMSNorm, rope_tables
from ..rows import Rows
from . import files
from .base import Head
from .scaled import ScaledLinear


@dataclass
class Eagle3Config:
    draft_vocab_size: int = 2048
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


class Layer(nn.Module):
    def __init__(self, config: LlamaConfig):
        super().__init__()
        hidden = config.hidden_size
        self.hidden_norm = RMSNorm(hidden, config.rms_norm_eps)
        self.input_layernorm = RMSNorm(hidden, config.rms_norm_eps)
        self.self_attn = Attention(config, inputs=2 * hidden)
        self.post_attention_layernorm = RMSNorm(hidden, config.rms_norm_eps)
        self.mlp = MLP(config)

    def forward(self, embeddings, features, attend):
        """`attend` maps the attention's input [B,T,2H] to its output [B,T,H]."""
        x = features + attend(torch.cat((self.input_layernorm(embeddings), self.hidden_norm(features)), dim=-1))
        return x + self.mlp(self.post_attention_layernorm(x))


class Eagle3Head(Head):
    """Parameter names are those of the EAGLE repository."""

    def __init__(self, config: Eagle3Config, passes: int = 1):
        """`passes`: drafted tokens per row in training (`levels`)."""
        super().__init__()
        self.config, self.passes = config, passes
        hidden = config.hidden_size
        shared = {f.name: getattr(config, f.name) for f in fields(LlamaConfig) if hasattr(config, f.name)}
        self.fc = ScaledLinear(3 * hidden, hidden)
        self.midlayer = Layer(LlamaConfig(**shared, num_hidden_layers=1))
        nn.init.zeros_(self.midlayer.self_attn.o_proj.weight)  # it starts as the identity
        nn.init.zeros_(self.midlayer.mlp.down_proj.weight)
        self.norm = RMSNorm(hidden, config.rms_norm_eps)
        self.lm_head = nn.Linear(hidden, config.draft_vocab_size, bias=False)
        self.register_buffer("d2t", torch.zeros(config.draft_vocab_size, dtype=torch.int64))
        self.register_buffer("t2d", torch.zeros(config.vocab_size, dtype=torch.bool))

    def set_vocabulary(self, ids: torch.Tensor) -> None:
        """ids [Vd], ascending: the target's tokens that the head can draft. `d2t` holds offsets: id = i + d2t[i]."""
        self.d2t.copy_(ids - torch.arange(len(ids)))
        self.t2d.zero_().index_fill_(0, ids, True)

    def vocabulary(self) -> torch.Tensor:
        return torch.arange(len(self.d2t)) + self.d2t

    def read(self, rows: Rows) -> torch.Tensor:
        return self.fc(rows.taps)

    def forward(self, embeddings, features, positions=None, mask=None, cache=None) -> torch.Tensor:
        """Embedding of t_{j+1} and g_j, both [B,T,H] -> output before the norm [B,T,H]."""
        if positions is None:
            positions = torch.arange(features.shape[1])
        cos, sin = rope_tables(positions, self.config.head_dim, self.config.rope_theta)
        return self.midlayer(embeddings, features, lambda x: self.midlayer.self_attn(x, cos, sin, mask, cache))

    def levels(self, target: Llama, rows: Rows) -> list[torch.Tensor]:
        """Training-time test: level i (0-based) is what the head says after i steps on its own outputs."""
        embeddings, features = rows.embeddings[:, 1:], self.read(rows)[:, :-1]
        cos, sin = rope_tables(torch.arange(features.shape[1]), self.config.head_dim, self.config.rope_theta)
        attention, out = self_feed.PassAttention(self.midlayer.self_attn, cos, sin), []
        for index in range(self.passes):
            x = self.midlayer(embeddings, features, attention)
            out.append(x[:, index:])
            features = torch.roll(x, 1, dims=1)
        return out

    def scores(self, target: Llama, state: torch.Tensor) -> torch.Tensor:
        return self.lm_head(self.norm(state))

    def drafted(self, index: torch.Tensor) -> torch.Tensor:
        return index + self.d2t[index]

    def teacher(self, target: Llama, features: torch.Tensor) -> torch.Tensor:
        return F.linear(features, target.embed_tokens.weight[self.vocabulary()])

    def logits(self, target: Llama, state: torch.Tensor) -> torch.Tensor:
        scores = self.scores(target, state)
        out = scores.new_full((*scores.shape[:-1], self.config.vocab_size), -torch.inf)
        return out.index_copy(-1, self.vocabulary(), scores)


def save(head: Eagle3Head, out: Path, dtype: torch.dtype = torch.float32) -> None:
    files.write(files.tensors(head), {
        "architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama", **asdict(head.config),
        "num_hidden_layers": 1, "hidden_act": "silu", "attention_bias": False, "tie_word_embeddings": False,
        "bos_token_id": 0, "eos_token_id": 0}, out, dtype)


def load(folder: Path) -> Eagle3Head:
    raw, saved = files.read(folder)
    return files.put(Eagle3Head(Eagle3Config(**{f.name: raw[f.name] for f in fields(Eagle3Config)})), saved)
